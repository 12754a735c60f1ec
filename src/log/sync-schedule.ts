import type { Clock, ClockTimeout } from '../core/clock.ts';

/**
 * Decides when writes are synced: after a number of operations, or some time after the first of them. No timeout is armed
 * while there is nothing to sync.
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

  /** A sync has failed: it is due again after the timeout, or after as many operations as before. */
  retry(): void {
    if (!this.#isStopped) this.#arm();
  }

  /** Nothing is due any more. */
  stop(): void {
    this.reset();
    this.#isStopped = true;
  }

  /** Everything is synced. */
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
