import type { EscapementError } from '../../core/errors.ts';
import { isThenable } from '../../core/thenable.ts';
import type { SystemTimer } from '../../timer/system-timer.ts';
import type { CancelOutcome } from '../broker/broker.ts';
import type { Handler } from './handler.ts';
import { serverClosed, taskCancelled, timedOut } from './interruptions.ts';
import type { Logger } from './logger.ts';
import type { RunReports } from './run-reports.ts';
import type { RunSettler } from './run-settler.ts';
import type { TaskRun } from './task-run.ts';

/** What a worker works with. */
export interface TaskWorkerOptions {
  readonly handler: Handler;
  readonly timer: SystemTimer;
  readonly graceMs: number;
  readonly logger: Logger;
  readonly settler: RunSettler;
  readonly reports: RunReports;
  /** A run is over, and was written: its place is free. */
  readonly onFree: (run: TaskRun) => void;
}

/**
 * Calls the handler, and sees to it that each run is settled exactly once: by what the handler says, if it is in time,
 * else with the reason of the interruption. asynq does not wait for a handler that was interrupted, ignores what it says,
 * and starts the next one beside it (B10).
 */
export class TaskWorker {
  readonly #options: TaskWorkerOptions;

  constructor(options: TaskWorkerOptions) {
    this.#options = options;
  }

  /**
   * Runs a task; its place is free when `onFree` is called. Never throws. There is a promise only if the handler has one.
   *
   * @param nowMs - the monotonic clock's.
   */
  work(run: TaskRun, nowMs: number): void {
    run.startedAtMs = nowMs;
    run.hasStarted = true;
    this.#options.reports.started(run);
    if (!this.#mayCall(run)) {
      void this.#end(run, true, run.reason);
      return;
    }
    try {
      const result = this.#options.handler(run.task, run.context);
      if (isThenable(result)) {
        void this.#waitFor(run, result);
        return;
      }
    } catch (error) {
      this.#settled(run, true, error);
      return;
    }
    this.#settled(run, false, undefined);
  }

  /**
   * Interrupts a run: its signal fires, and it has the grace to settle. One that was interrupted already keeps its first
   * reason and its grace.
   */
  interrupt(run: TaskRun, reason: EscapementError): void {
    if (run.isOver) return;
    if (reason.code === 'ERR_LEASE_LOST') run.isLeaseLost = true;
    if (run.reason !== undefined) return;
    this.#disarm(run);
    run.abort(reason);
    if (run.hasStarted) this.#armGrace(run);
  }

  /** The last request counts. @returns whether it comes in time. */
  cancel(run: TaskRun, outcome: CancelOutcome): boolean {
    if (run.isOver || run.isLeaseLost) return false;
    run.cancelOutcome = outcome;
    this.interrupt(run, taskCancelled());
    return true;
  }

  /** Gives back a run that was taken and not started. Never rejects. */
  putBack(run: TaskRun): Promise<void> {
    run.abort(serverClosed());
    return this.#end(run, true, run.reason);
  }

  /** Whether the handler is to be called at all: it may be interrupted before, and a deadline may be past. */
  #mayCall(run: TaskRun): boolean {
    const { deadlineMs } = run.leased.message;
    if (deadlineMs > 0 && deadlineMs <= this.#options.timer.clock.wallNow())
      run.abort(timedOut(run.leased.message));
    return run.reason === undefined;
  }

  async #waitFor(run: TaskRun, result: PromiseLike<unknown>): Promise<void> {
    this.#armTimeout(run);
    try {
      await result;
    } catch (error) {
      this.#settled(run, true, error);
      return;
    }
    this.#settled(run, false, undefined);
  }

  /** The handler has said what it has to say. */
  #settled(run: TaskRun, hasFailed: boolean, error: unknown): void {
    if (run.isOver) this.#tellLate(run, hasFailed, error);
    else void this.#end(run, hasFailed, error);
  }

  #armTimeout(run: TaskRun): void {
    if (run.deadlineMs === 0 || run.reason !== undefined) return;
    const waitedMs = run.startedAtMs - run.leasedAtMs;
    const leftMs = run.deadlineMs - run.startedAtWallMs - waitedMs;
    run.timerId = this.#options.timer.schedule(leftMs, this.#timeOut, run);
  }

  #armGrace(run: TaskRun): void {
    run.timerId = this.#options.timer.schedule(this.#options.graceMs, this.#giveUp, run);
  }

  #disarm(run: TaskRun): void {
    if (run.timerId !== undefined) this.#options.timer.cancel(run.timerId);
    run.timerId = undefined;
  }

  readonly #timeOut = (run: TaskRun): void => {
    run.timerId = undefined;
    this.interrupt(run, timedOut(run.leased.message));
  };

  readonly #giveUp = (run: TaskRun): void => {
    run.timerId = undefined;
    void this.#end(run, true, run.reason);
  };

  #end(run: TaskRun, hasFailed: boolean, error: unknown): Promise<void> {
    const { settler, onFree } = this.#options;
    run.isOver = true;
    this.#disarm(run);
    return (hasFailed ? settler.failed(run, error) : settler.succeeded(run)).then(onFree);
  }

  #tellLate(run: TaskRun, hasFailed: boolean, error: unknown): void {
    const { id, queue, type } = run.leased.message;
    this.#options.logger.warn(
      { taskId: id, queue, type, ...(hasFailed ? { err: error } : {}) },
      'a handler has settled after its run was given up',
    );
  }
}
