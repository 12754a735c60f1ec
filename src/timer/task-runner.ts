import { reportUncaught } from '../core/report-uncaught.ts';
import { isThenable } from '../core/validate.ts';
import { NO_SLOT, type TimerTable } from './timer-table.ts';
import { isTaskCallback, type TimerTask } from './timer-task.ts';
import type { DueQueue } from './timer-task-list.ts';
import type { TimerWheels } from './timer-wheels.ts';
import type { ResolvedSystemTimerOptions, TimerErrorHandler } from './timer.ts';

/**
 * Runs what is due, in the turns that the driver begins: the only part of the timer that calls tasks, callbacks and the executor.
 * An error in one of them stops none of the others.
 */
export class TaskRunner {
  readonly #table: TimerTable;
  readonly #due: DueQueue;
  readonly #onError: TimerErrorHandler;
  readonly #executor: ResolvedSystemTimerOptions['executor'];
  /** Whether tasks run now: then no other turn begins, and no wake-up is armed. */
  isRunning = false;
  /** Whether the executor has a turn that it has not run yet. */
  isHandedOver = false;
  /** Whether the timer is closed: no turn begins any more. */
  isStopped = false;

  constructor(
    { table, due }: Pick<TimerWheels, 'table' | 'due'>,
    { onError = reportUncaught, executor }: Pick<ResolvedSystemTimerOptions, 'onError' | 'executor'>,
  ) {
    this.#table = table;
    this.#due = due;
    this.#onError = onError;
    this.#executor = executor;
  }

  /**
   * Runs a turn of at most `limit` tasks, or hands it over to the executor, which may run it later.
   *
   * @param onEnd - called at the end of the turn with the number of tasks that ran.
   * @returns how many tasks have run.
   */
  dispatch(limit: number, onEnd: (ran: number) => void): number {
    if (this.#executor === undefined) return this.#runTurn(limit, onEnd);
    if (this.isHandedOver) return 0;
    this.isHandedOver = true;
    let ran = 0;
    const run = (): void => {
      if (this.isHandedOver) ran = this.#runTurn(limit, onEnd);
    };
    const fail = (error: unknown): void => {
      this.report(error, undefined);
      run();
    };
    try {
      const result = this.#executor(run);
      if (isThenable(result)) void result.then(undefined, fail);
    } catch (error) {
      fail(error);
    }
    return ran;
  }

  /**
   * Runs, in order, at most `limit` of the tasks that are due when it is called.
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

  /** Calls `onError`. What that throws is an uncaught exception. */
  report(error: unknown, task: TimerTask | undefined): void {
    try {
      this.#onError(error, task);
    } catch (handlerError) {
      reportUncaught(handlerError);
    }
  }

  #runTurn(limit: number, onEnd: (ran: number) => void): number {
    if (this.isRunning || this.isStopped) return 0;
    this.isRunning = true;
    this.isHandedOver = false;
    const ran = this.run(limit);
    this.isRunning = false;
    onEnd(ran);
    return ran;
  }

  /** The entry is released first: its id is stale inside its own callback, and the callback may add any entry. */
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
