import { CoalescedRun } from '../core/coalesced-run.ts';
import { SECOND_MS } from '../core/units.ts';
import type { SystemTimer, TimerId } from '../timer/system-timer.ts';
import { isUnavailable } from './broker/broker-errors.ts';

/* What servers and schedulers do with their timer: jobs that are repeated, and waits with a limit. */

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

/**
 * How long a shutdown waits for a broker that does not answer, in milliseconds, if nothing depends on the answer: what the broker
 * keeps expires by itself. Containers are killed ten seconds after SIGTERM.
 */
export const UNANSWERED_MS = 1_000;

/**
 * Waits until a promise has settled, `limitMs` have passed, or the signal has fired. Leaves no timer and no listener.
 *
 * @returns whether it has settled.
 */
export async function settledWithin(
  timer: SystemTimer,
  limitMs: number,
  promise: Promise<unknown>,
  signal?: AbortSignal,
): Promise<boolean> {
  const controller = new AbortController();
  const giveUp = (): void => {
    controller.abort();
  };
  const settled = promise.then(
    () => true,
    () => true,
  );
  const late = timer.sleep(limitMs, false, { signal: controller.signal }).catch(() => false);
  signal?.addEventListener('abort', giveUp);
  if (signal?.aborted === true) giveUp();
  try {
    return await Promise.race([settled, late]);
  } finally {
    giveUp();
    signal?.removeEventListener('abort', giveUp);
  }
}

/**
 * Waits until a component has ended: up to `limitMs` while it works, and at most {@link UNANSWERED_MS} if it only waits for the
 * broker. @returns whether it has ended.
 */
export async function endedWithin(
  timer: SystemTimer,
  limitMs: number,
  ended: Promise<unknown>,
  isWorking: () => boolean,
): Promise<boolean> {
  if (await settledWithin(timer, Math.min(limitMs, UNANSWERED_MS), ended)) return true;
  return isWorking() && (await settledWithin(timer, Math.max(limitMs - UNANSWERED_MS, 0), ended));
}
