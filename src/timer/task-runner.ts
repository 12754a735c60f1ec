import { reportUncaught } from '../core/report-uncaught.ts';
import { isTaskCallback } from './async-context.ts';
import type { DueQueue } from './due-queue.ts';
import { NO_SLOT, type TimerTable } from './timer-table.ts';
import type { TimerTask } from './timer-task.ts';

/** Called with what user code throws; `task` is undefined for a scheduled callback. */
export type TimerErrorHandler = (error: unknown, task: TimerTask | undefined) => void;

/** Runs what is due. Whatever user code does in there, the next task still runs. */
export class TaskRunner {
  readonly #table: TimerTable;
  readonly #due: DueQueue;
  readonly #onError: TimerErrorHandler;

  constructor(table: TimerTable, due: DueQueue, onError: TimerErrorHandler | undefined) {
    this.#table = table;
    this.#due = due;
    this.#onError = onError ?? reportUncaught;
  }

  /**
   * Runs, in order, what is due when it is called, and at most `limit` of it.
   *
   * @returns how many ran.
   */
  run(limit: number): number {
    let ran = 0;
    this.#due.raiseFence();
    try {
      while (ran < limit) {
        const slot = this.#due.take();
        if (slot === NO_SLOT) break;
        ran++;
        this.#runEntry(slot);
      }
    } finally {
      this.#due.lowerFence();
    }
    return ran;
  }

  /** An error handler that throws is an error in user code like any other. */
  report(error: unknown, task: TimerTask | undefined): void {
    try {
      this.#onError(error, task);
    } catch (handlerError) {
      reportUncaught(handlerError);
    }
  }

  /** The entry is given back first: its id is stale inside its own callback, and the callback may add at will. */
  #runEntry(slot: number): void {
    const callback = this.#table.callbackOf(slot) as (argument: unknown) => void;
    const argument = this.#table.argumentOf(slot);
    this.#table.release(slot);
    try {
      callback(argument);
    } catch (error) {
      this.report(error, isTaskCallback(callback) ? (argument as TimerTask) : undefined);
    }
  }
}
