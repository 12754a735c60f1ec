import { readClock, type Clock } from '../core/clock.ts';
import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError, wrongType } from '../core/errors.ts';
import { readOptions } from '../core/options.ts';
import { signalOf, type SignalOptions } from '../core/signal-options.ts';
import { invalidDelay, requireFunction } from '../core/validate.ts';
import {
  callInContext,
  ContextCall,
  isTaskCallback,
  keepContext,
  runTaskInContext,
} from './async-context.ts';
import type { EntryCallback } from './reference-page.ts';
import { Sleeper, wakeSleeper } from './sleeper.ts';
import { takeSnapshot, type TimerSnapshot } from './snapshot.ts';
import {
  resolveOptions,
  type ResolvedSystemTimerOptions,
  type SystemTimerOptions,
} from './system-timer-options.ts';
import { TaskRunner } from './task-runner.ts';
import { TimerDriver } from './timer-driver.ts';
import { INTERNALS, type TimerInternals } from './timer-internals.ts';
import { timerMetrics, type TimerMetrics } from './timer-metrics.ts';
import { TIMER_CLOSE_OPTIONS, type Timer, type TimerCloseOptions } from './timer.ts';
import { NO_SLOT } from './timer-table.ts';
import { attach, drop, entryIn, isTimerTask, runTask, type TimerTask } from './timer-task.ts';
import { TimerWheels } from './timer-wheels.ts';

/** Names one scheduled callback of one timer, for {@link SystemTimer.cancel}. Never 0, never used twice. */
export type TimerId = number & {
  /** Only for the compiler: no other number is an id. */
  readonly __timerId: unique symbol;
};

/**
 * Runs millions of delayed tasks with one host timeout.
 *
 * HOW. Tasks hang in hierarchical timing wheels (timing-wheel.ts), so adding, cancelling and moving one is
 * O(1). The timer arms one wake-up of its clock for the earliest bucket that holds tasks, and sleeps. When it
 * wakes it moves what is due to a queue, and only then runs user code, a bounded number of tasks a turn:
 *
 *      add, schedule ──► wheels ──(bucket expires)──► due queue ──(fence)──► run
 *           │                                             ▲
 *           └───────────── delay ≤ 0 ─────────────────────┘          cancel works up to the last arrow
 *
 * WHY. A host timer each, for a million requests that nearly all answer in time, is a million objects for the
 * collector and a heap or list insert each. The wheel is after Varghese and Lauck (1987), by way of Kafka's
 * class of this name; what differs from Kafka is in docs/timer.md.
 *
 * @example
 * ```ts
 * const timer = new SystemTimer();
 * const id = timer.schedule(30_000, (request: Request) => request.fail('timed out'), request);
 * // … the answer came
 * timer.cancel(id);
 * ```
 */
export class SystemTimer implements Timer {
  /** For metrics and errors. */
  readonly name: string;
  readonly #options: ResolvedSystemTimerOptions;
  readonly #wheels: TimerWheels;
  readonly #runner: TaskRunner;
  readonly #driver: TimerDriver;
  readonly #metrics: TimerMetrics | undefined;
  readonly #keepsContext: boolean;
  /** The callback of the entries of tasks. */
  readonly #runTask: EntryCallback;

  /**
   * @throws RangeError `ERR_OUT_OF_RANGE` - `tickMs` below 1, `wheelSize` below 2, either not an integer, or
   * `startMs` after the clock's now.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` or `ERR_INVALID_ARG_VALUE` - an option of another type or word.
   * `ERR_UNKNOWN_OPTION` - an unknown option.
   * @throws EscapementError `ERR_CLOCK_INVALID` - the clock returned something that is not a time. Every method that reads the
   * clock throws this, and has changed nothing. A wake-up reports it to `onError` once, and reads the clock again every second.
   */
  constructor(options: SystemTimerOptions = {}) {
    const resolved = resolveOptions(options);
    const { name, clock, tickMs, wheelSize, startMs, rounding, autoStart, onError } = resolved;
    this.name = name;
    this.#options = resolved;
    this.#wheels = new TimerWheels(tickMs, wheelSize, startMs, rounding);
    this.#runner = new TaskRunner(this.#wheels.table, this.#wheels.due, onError);
    this.#driver = new TimerDriver(
      this.#wheels,
      clock,
      autoStart,
      (nowMs) => {
        this.#wake(nowMs);
      },
      (error) => {
        this.#runner.report(error, undefined);
      },
    );
    this.#keepsContext = resolved.asyncContext;
    this.#runTask = this.#keepsContext ? runTaskInContext : runTask;
    const { metrics } = resolved;
    if (metrics !== undefined) this.#metrics = timerMetrics(metrics, name, () => this.size);
  }

  /** Where its time comes from. */
  get clock(): Clock {
    return this.#options.clock;
  }

  /** Tasks, callbacks and sleeps that wait: added, and neither started nor cancelled. O(1). */
  get size(): number {
    return this.#wheels.table.size;
  }

  /**
   * Adds a task, to run when its `delayMs` is over. One that already waits, here or in another timer, is moved.
   * A delay of 0 or less runs at the next turn, never inside this call.
   *
   * @throws EscapementError `ERR_TIMER_CLOSED` - after `close`. The task stays where it was.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - not a `TimerTask`.
   */
  add(task: TimerTask): void {
    if (this.#driver.isClosed) throw this.#closedError('add');
    if (!isTimerTask(task)) throw wrongType('task', 'a TimerTask', task);
    const { delayMs } = task;
    // The constructor checked it, but a subclass may compute it anew.
    if (!Number.isFinite(delayMs)) throw invalidDelay('task.delayMs', delayMs);
    if (this.#keepsContext) keepContext(task);
    const entry = entryIn(task, this.#driver);
    if (entry !== undefined) {
      this.#driver.move(entry, delayMs);
      return;
    }
    attach(task, this.#driver, this.#driver.enter(this.#runTask, task, delayMs));
  }

  /**
   * Calls `callback(arg)` after `delayMs` milliseconds: a timer without an object. With one shared callback, which learns
   * from `arg` what it is about, it costs 32 bytes, however many wait.
   *
   * @param delayMs - finite; 0 or less means the next turn, never inside this call.
   * @returns an id for `cancel` and `reschedule`. It is stale once the callback has started.
   * @throws RangeError `ERR_OUT_OF_RANGE` - `delayMs` is `NaN` or infinite.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - `callback` is not a function, or `delayMs` not a number.
   * @throws EscapementError `ERR_TIMER_CLOSED` - after `close`.
   */
  schedule(delayMs: number, callback: (arg: undefined) => void): TimerId;
  schedule<A>(delayMs: number, callback: (arg: A) => void, arg: A): TimerId;
  schedule<A>(delayMs: number, callback: (arg?: A) => void, arg?: A): TimerId {
    if (this.#driver.isClosed) throw this.#closedError('schedule');
    if (!Number.isFinite(delayMs)) throw invalidDelay('delayMs', delayMs);
    requireFunction('callback', callback);
    if (this.#keepsContext) return this.#schedule(delayMs, callInContext, new ContextCall(callback, arg));
    return this.#schedule(delayMs, callback, arg);
  }

  /**
   * Moves the deadline to `delayMs` from now. The id stays the same.
   *
   * @returns false for an id that no longer waits, and after `close`: nothing changed.
   * @throws RangeError `ERR_OUT_OF_RANGE` or TypeError `ERR_INVALID_ARG_TYPE` - as in `schedule`.
   */
  reschedule(id: TimerId, delayMs: number): boolean {
    if (typeof id !== 'number') throw wrongType('id', 'a number from schedule()', id);
    if (!Number.isFinite(delayMs)) throw invalidDelay('delayMs', delayMs);
    const slot = this.#wheels.table.slotOf(id);
    if (slot === NO_SLOT || this.#driver.isClosed) return false;
    this.#driver.move(slot, delayMs);
    return true;
  }

  /**
   * Takes a scheduled callback out. O(1).
   *
   * @returns true if it waited: it will not run. False for an id that has run, was cancelled, belongs to a slot
   * in use again, or to another timer; then nothing changed.
   */
  cancel(id: TimerId): boolean {
    if (typeof id !== 'number') throw wrongType('id', 'a number from schedule()', id);
    const slot = this.#wheels.table.slotOf(id);
    if (slot === NO_SLOT) return false;
    this.#driver.withdraw(slot);
    return true;
  }

  /**
   * Resolves with `value` after `delayMs` milliseconds. Rejects with the signal's reason if that fires first,
   * and with `ERR_TIMER_CLOSED` if the timer is closed first; bad arguments reject too.
   */
  sleep<T = void>(delayMs: number, value?: T, options: SignalOptions = {}): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#driver.isClosed) throw this.#closedError('sleep');
      if (!Number.isFinite(delayMs)) throw invalidDelay('delayMs', delayMs);
      const signal = signalOf('SystemTimer.sleep', options);
      signal?.throwIfAborted();
      const sleeper = new Sleeper(
        () => {
          resolve(value as T);
        },
        reject,
        signal,
      );
      const id = this.#schedule(delayMs, wakeSleeper, sleeper);
      sleeper.watch(() => this.cancel(id));
    });
  }

  /**
   * Runs everything that is due, now, however much it is. What falls due meanwhile is left to the next call.
   *
   * @returns how many tasks and callbacks ran; 0 inside a task, after `close`, and when the executor runs later.
   */
  poll(): number {
    return this.#pump(readClock(this.#options.clock), Infinity).ran;
  }

  async advanceClock(timeoutMs: number): Promise<boolean> {
    if (typeof timeoutMs !== 'number' || Number.isNaN(timeoutMs)) throw invalidDelay('timeoutMs', timeoutMs);
    if (this.#driver.isClosed) return false;
    if (this.#pump(readClock(this.#options.clock), Infinity).fellDue) return true;
    return timeoutMs > 0 ? this.#driver.wait(timeoutMs) : false;
  }

  /** When the next wake-up is due, in milliseconds on the clock; undefined if nothing waits. */
  nextExpirationMs(): number | undefined {
    return this.#wheels.earliest()?.expirationMs;
  }

  /** Waiting tasks keep the process alive. This is the default. */
  ref(): void {
    this.#driver.setRef(true);
  }

  /** Waiting tasks do not keep the process alive. */
  unref(): void {
    this.#driver.setRef(false);
  }

  /** Whether waiting tasks keep the process alive. */
  hasRef(): boolean {
    return this.#driver.hasRef;
  }

  /** The wheels as they stand: a copy. O(buckets), however many tasks wait. */
  inspect(): TimerSnapshot {
    return takeSnapshot(this.#wheels, readClock(this.#options.clock));
  }

  /**
   * Stops for good: nothing can be added, pending sleeps reject with `ERR_TIMER_CLOSED`, a waiting
   * `advanceClock` resolves false. Idempotent; also from inside a task.
   *
   * @returns the tasks that waited, in order of expiration; scheduled callbacks and sleeps are not among them.
   */
  close(options: TimerCloseOptions = {}): TimerTask[] {
    const { pending } = readOptions('SystemTimer.close', options, TIMER_CLOSE_OPTIONS);
    if (this.#driver.isClosed) return [];
    this.#driver.close();
    const tasks = this.#gatherPending(pending === 'drop');
    if (pending === 'run') this.#runner.run(Infinity);
    this.#metrics?.remove();
    return tasks;
  }

  /** `close()`, for `using`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      size: this.size,
      levels: this.#wheels.levels,
      nextExpirationMs: this.nextExpirationMs(),
      closed: this.#driver.isClosed,
    }));
  }

  /** @internal For the integrity checker. */
  [INTERNALS](): TimerInternals {
    return { wheels: this.#wheels, driver: this.#driver };
  }

  #schedule<A>(delayMs: number, callback: (arg: A) => void, arg: A): TimerId {
    return this.#wheels.table.idOf(this.#driver.enter(callback, arg, delayMs)) as TimerId;
  }

  /** The wake-up fired. */
  #wake(nowMs: number): void {
    this.#pump(nowMs, this.#options.autoStart ? this.#options.maxTasksPerTurn : Infinity);
    this.#driver.waits.settleExpired(nowMs);
    this.#driver.rearm();
    this.#metrics?.woke();
  }

  /** Moves what is due to the due queue, runs at most `limit` of it, and tells who waits for that. */
  #pump(nowMs: number, limit: number): { fellDue: boolean; ran: number } {
    const { due } = this.#wheels;
    if (!this.#driver.mayRun) return { fellDue: false, ran: 0 };
    const wasDue = !due.isEmpty && !this.#driver.isHandedOver;
    const fellDue = this.#wheels.startTurn(nowMs, limit !== Infinity) || wasDue;
    if (fellDue) this.#driver.waits.settleAll(true);
    const ran = due.isEmpty ? 0 : this.#dispatch(limit);
    this.#driver.rearm();
    return { fellDue, ran };
  }

  #dispatch(limit: number): number {
    const { executor } = this.#options;
    if (executor === undefined) return this.#runTurn(limit);
    if (this.#driver.isHandedOver) return 0;
    this.#driver.handOver();
    let ran = 0;
    const run = (): void => {
      if (this.#driver.isHandedOver) ran = this.#runTurn(limit);
    };
    try {
      executor(run);
    } catch (error) {
      this.#runner.report(error, undefined);
      run();
    }
    return ran;
  }

  #runTurn(limit: number): number {
    if (!this.#driver.mayRun) return 0;
    this.#driver.pause();
    const ran = this.#runner.run(limit);
    this.#driver.resume();
    this.#metrics?.ran(ran);
    return ran;
  }

  /** Brings everything that waits into the due queue, in order, and wakes the sleepers; may drop the rest. */
  #gatherPending(isDropped: boolean): TimerTask[] {
    const { due, table } = this.#wheels;
    const tasks: TimerTask[] = [];
    const closed = this.#closedError('sleep');
    due.lowerFence();
    this.#wheels.expireAll();
    for (let slot = due.list.first, next; slot !== due.list.sentinel; slot = next) {
      next = table.next(slot);
      const callback = table.callbackOf(slot);
      const argument = table.argumentOf(slot);
      const isAsleep = callback === wakeSleeper;
      if (isAsleep || isDropped) table.discard(slot);
      if (isAsleep) (argument as Sleeper).fail(closed);
      else if (isTaskCallback(callback)) tasks.push(argument as TimerTask);
    }
    if (isDropped) tasks.forEach(drop);
    return tasks;
  }

  #closedError(operation: string): EscapementError {
    return new EscapementError('ERR_TIMER_CLOSED', `timer '${this.name}' is closed`, {
      op: `SystemTimer.${operation}`,
    });
  }
}
