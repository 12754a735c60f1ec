import type { Clock, ClockTimeout } from '../core/clock.ts';

/**
 * When what is with the host is to be brought to the disk: after so many operations, or so many milliseconds after the
 * first of them. Nothing is armed while there is nothing to bring.
 */
export class SyncSchedule {
  readonly #clock: Clock;
  readonly #every: number;
  readonly #timeoutMs: number;
  readonly #onDue: () => void;
  #operations = 0;
  #isStopped = false;
  #timeout: ClockTimeout | undefined;

  constructor(clock: Clock, every: number, timeoutMs: number, onDue: () => void) {
    this.#clock = clock;
    this.#every = every;
    this.#timeoutMs = timeoutMs;
    this.#onDue = onDue;
  }

  count(operations: number): void {
    if (this.#isStopped) return;
    this.#operations += operations;
    if (this.#operations >= this.#every) this.#due();
    else if (this.#operations > 0) this.#arm();
  }

  /** It has failed: once more when the time is over, however many operations come. */
  retry(): void {
    if (!this.#isStopped) this.#arm();
  }

  /** Nobody will bring anything there any more. */
  stop(): void {
    this.reset();
    this.#isStopped = true;
  }

  /** All is on the disk. */
  reset(): void {
    this.#operations = 0;
    this.#timeout?.cancel();
    this.#timeout = undefined;
  }

  #arm(): void {
    this.#timeout ??= this.#clock.setTimeout(() => {
      this.#due();
    }, this.#timeoutMs);
  }

  #due(): void {
    this.reset();
    this.#onDue();
  }
}
