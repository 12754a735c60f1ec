import { CoalescedRun } from '../core/coalesced-run.ts';
import { SECOND_MS } from '../core/units.ts';
import type { SystemTimer, TimerId } from '../timer/system-timer.ts';
import { isUnavailable } from './broker/broker-errors.ts';

/** How long after the broker was unavailable a job without an interval runs again, in milliseconds. */
const RETRY_MS = SECOND_MS;

export interface PeriodicJob {
  /** From the end of one run to the start of the next, in milliseconds; undefined: only when it is triggered. */
  readonly intervalMs: number | undefined;
  readonly run: () => Promise<void>;
  /** Called when `run` rejects. Must not throw. */
  readonly failed: (error: unknown) => void;
}

/**
 * Runs a job after each interval, and when it is triggered: never twice at once, and once more after a trigger that comes during a
 * run.
 */
export class Periodic {
  readonly #job: PeriodicJob;
  readonly #timer: SystemTimer;
  readonly #runs = new CoalescedRun(() => this.#run());
  #id: TimerId | undefined;
  #isStopped = true;

  constructor(job: PeriodicJob, timer: SystemTimer) {
    this.#job = job;
    this.#timer = timer;
  }

  /** The first run is after the interval. */
  start(): void {
    this.#isStopped = false;
    this.#arm(this.#job.intervalMs);
  }

  /** Runs the job now. Resolves when it has run; does nothing if it is stopped. */
  async trigger(): Promise<void> {
    if (!this.#isStopped) this.#runs.trigger();
    await this.#runs.running;
  }

  /** Moves the run after the interval to the next turn: one run for all changes of this turn. During a run, there is one more after it. */
  hasten(): void {
    if (this.#id !== undefined) this.#timer.reschedule(this.#id, 0);
    else if (this.#runs.running !== undefined) this.#runs.trigger();
  }

  /** Resolves when the current run has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#disarm();
    await this.#runs.running;
  }

  async #run(): Promise<void> {
    const { run, failed, intervalMs } = this.#job;
    this.#disarm();
    if (this.#isStopped) return;
    let nextInMs = intervalMs;
    try {
      await run();
    } catch (error) {
      if (isUnavailable(error)) nextInMs ??= RETRY_MS; // there may be no other trigger
      failed(error);
    }
    this.#arm(nextInMs);
  }

  readonly #elapsed = (): void => {
    void this.trigger();
  };

  #arm(inMs: number | undefined): void {
    if (!this.#isStopped && inMs !== undefined)
      this.#id = this.#timer.schedule(inMs, this.#elapsed, undefined);
  }

  #disarm(): void {
    if (this.#id !== undefined) this.#timer.cancel(this.#id);
    this.#id = undefined;
  }
}
