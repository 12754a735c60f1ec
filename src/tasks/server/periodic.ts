import type { SystemTimer, TimerId } from '../../timer/system-timer.ts';
import { isUnavailable } from '../broker/is-unavailable.ts';

/** When something is done again that is only done when asked for, and has not reached the broker: nobody asks twice. */
const AGAIN_MS = 1_000;

/** What a {@link Periodic} does, and when. */
export interface PeriodicOptions {
  readonly timer: SystemTimer;
  /** From the end of one time to the next, in milliseconds; undefined: only when it is asked for. */
  readonly intervalMs: number | undefined;
  readonly job: () => Promise<void>;
  /** Told of what goes wrong. Must not throw. */
  readonly onError: (error: unknown) => void;
}

/** Does something again and again, and when it is asked for: never two at once. */
export class Periodic {
  readonly #options: PeriodicOptions;
  #id: TimerId | undefined;
  #running: Promise<void> | undefined;
  #isWanted = false;
  /** Whether the last time has not reached the broker. */
  #isOwed = false;
  #isStopped = true;

  constructor(options: PeriodicOptions) {
    this.#options = options;
  }

  /** The first time is after the interval. */
  start(): void {
    this.#isStopped = false;
    this.#arm();
  }

  /** Does it now; or once more, if it is being done: it may have passed by what it is wanted for. */
  trigger(): void {
    this.#isWanted = true;
    if (this.#isStopped || this.#running !== undefined) return;
    this.#disarm();
    this.#running = this.#runWhileWanted();
  }

  /** Resolves when the job that runs has ended. */
  async shutdown(): Promise<void> {
    this.#isStopped = true;
    this.#disarm();
    await this.#running;
  }

  async #runWhileWanted(): Promise<void> {
    const { job, onError } = this.#options;
    while (this.#isWanted && !this.#isStopped) {
      this.#isWanted = false;
      this.#isOwed = false;
      try {
        await job();
      } catch (error) {
        this.#isOwed = isUnavailable(error);
        onError(error);
      }
    }
    this.#running = undefined;
    this.#arm();
  }

  #arm(): void {
    const { timer, intervalMs = this.#isOwed ? AGAIN_MS : undefined } = this.#options;
    if (this.#isStopped || intervalMs === undefined) return;
    this.#id = timer.schedule(intervalMs, trigger, this);
  }

  #disarm(): void {
    if (this.#id !== undefined) this.#options.timer.cancel(this.#id);
    this.#id = undefined;
  }
}

const trigger = (periodic: Periodic): void => {
  periodic.trigger();
};
