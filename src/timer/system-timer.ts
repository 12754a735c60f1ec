import { readClock, type Clock } from '../core/clock.ts';
import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError, wrongType, wrongValue } from '../core/errors.ts';
import { readOptions } from '../core/options.ts';
import { signalOf, type SignalOptions } from '../core/signal-options.ts';
import { invalidTimeout, requireFiniteNumber, requireFunction } from '../core/validate.ts';
import { TaskRunner } from './task-runner.ts';
import { TimerDriver } from './timer-driver.ts';
import { NO_SLOT, type EntryCallback } from './timer-table.ts';
import {
  attach,
  callInContext,
  ContextCall,
  drop,
  entryIn,
  isTaskCallback,
  isTimerTask,
  keepContext,
  runTask,
  runTaskInContext,
  type TimerTask,
} from './timer-task.ts';
import { TimerWheels, type TimerSnapshot } from './timer-wheels.ts';
import {
  resolveOptions,
  TIMER_CLOSE_OPTIONS,
  timerMetrics,
  type SystemTimerOptions,
  type Timer,
  type TimerCloseOptions,
  type TimerMetrics,
} from './timer.ts';

/** The name of the method that returns the internals of a timer, which may come from another loaded copy of the package. */
export const INTERNALS: unique symbol = Symbol.for('escapement.timer.internals');

/** What the integrity checkers read. */
export interface TimerInternals {
  readonly wheels: TimerWheels;
  readonly driver: TimerDriver;
  readonly runner: TaskRunner;
}

/** Identifies one scheduled callback of one timer, for {@link SystemTimer.cancel}. Never 0, never used twice. */
export type TimerId = number & {
  /** Only for the compiler: no other number is an id. */
  readonly __timerId: unique symbol;
};

/**
 * Runs millions of delayed tasks with one host timeout.
 *
 * HOW. Pending tasks are in hierarchical timing wheels (timing-wheel.ts), so adding, cancelling and moving one is
 * O(1). The timer arms one wake-up of its clock for the earliest bucket that holds tasks. When it fires, the timer
 * moves what is due to a queue, and only then runs user code, a bounded number of tasks a turn:
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
 * // … the answer arrived
 * timer.cancel(id);
 * ```
 */
export class SystemTimer implements Timer {
  /** Name of the timer in metrics and errors. */
  readonly name: string;
  readonly #clock: Clock;
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
   * clock throws this, and changes nothing. A wake-up reports it to `onError` once, and reads the clock again every second.
   */
  constructor(options: SystemTimerOptions = {}) {
    const resolved = resolveOptions(options);
    const { name, clock, tickMs, wheelSize, startMs, rounding, metrics } = resolved;
    this.name = name;
    this.#clock = clock;
    this.#wheels = new TimerWheels(tickMs, wheelSize, startMs, rounding);
    this.#metrics = metrics && timerMetrics(metrics, name, () => this.size);
    this.#runner = new TaskRunner(this.#wheels, resolved);
    this.#driver = new TimerDriver(this.#wheels, this.#runner, resolved, this.#metrics);
    this.#keepsContext = resolved.asyncContext;
    this.#runTask = this.#keepsContext ? runTaskInContext : runTask;
  }

  /** The source of time. */
  get clock(): Clock {
    return this.#clock;
  }

  /** Number of pending tasks, callbacks and sleeps: added, and neither started nor cancelled. O(1). */
  get size(): number {
    return this.#wheels.table.size;
  }

  /**
   * Adds a task, to run when its `delayMs` is over. A task that is pending, here or in another timer, is moved.
   * A task with a delay of 0 or less runs in the next turn, never inside this call.
   *
   * @param deadlineMs - runs the task at that time of the timer's clock instead, as `scheduleAt` does.
   * @throws EscapementError `ERR_TIMER_CLOSED` - after `close`. `ERR_TIMER_FULL` - 66 million are pending. The task stays where it was.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - not a `TimerTask`. `ERR_INVALID_ARG_VALUE` - it is frozen, or sealed and the timer has
   * `asyncContext`.
   */
  add(task: TimerTask, deadlineMs?: number): void {
    this.#requireOpen('add');
    if (!isTimerTask(task)) throw wrongType('task', 'a TimerTask', task);
    const isAbsolute = deadlineMs !== undefined;
    const ms = isAbsolute ? deadlineMs : task.delayMs;
    // The constructor has checked the delay, but a subclass may override it with a getter.
    requireFiniteNumber(isAbsolute ? 'deadlineMs' : 'task.delayMs', ms);
    const driver = this.#driver;
    const entry = entryIn(task, driver);
    if (entry === undefined) {
      const slot = isAbsolute
        ? driver.enterAt(this.#runTask, task, ms)
        : driver.enter(this.#runTask, task, ms);
      try {
        if (this.#keepsContext) keepContext(task);
        attach(task, driver, slot);
      } catch (error) {
        // If the clock of the timer that it was in before has thrown, the task is in this one already.
        if (entryIn(task, driver) !== undefined) throw error;
        driver.withdraw(slot);
        throw wrongValue('task', 'a TimerTask that is not frozen', task);
      }
    } else {
      if (isAbsolute) driver.moveAt(entry, ms);
      else driver.move(entry, ms);
      if (this.#keepsContext) keepContext(task);
    }
  }

  /**
   * Calls `callback(arg)` after `delayMs` milliseconds: a timer without an object. With one callback for all, which gets
   * what differs in `arg`, it costs 32 bytes, however many are pending.
   *
   * @param delayMs - finite; 0 or less means the next turn, never inside this call.
   * @returns an id for `cancel` and `reschedule`. It is stale once the callback has started.
   * @throws RangeError `ERR_OUT_OF_RANGE` - `delayMs` is `NaN` or infinite.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` - `callback` is not a function, or `delayMs` not a number.
   * @throws EscapementError `ERR_TIMER_CLOSED` - after `close`. `ERR_TIMER_FULL` - 66 million are pending.
   */
  schedule(delayMs: number, callback: (arg: undefined) => void): TimerId;
  schedule<A>(delayMs: number, callback: (arg: A) => void, arg: A): TimerId;
  schedule<A>(delayMs: number, callback: (arg?: A) => void, arg?: A): TimerId {
    this.#requireOpen('schedule');
    requireFiniteNumber('delayMs', delayMs);
    requireFunction('callback', callback);
    if (this.#keepsContext) return this.#schedule(delayMs, callInContext, new ContextCall(callback, arg));
    return this.#schedule(delayMs, callback, arg);
  }

  /**
   * Moves the deadline to `delayMs` from now. The id stays the same.
   *
   * @returns false for an id that is no longer pending, and after `close`: nothing changed.
   * @throws RangeError `ERR_OUT_OF_RANGE` or TypeError `ERR_INVALID_ARG_TYPE` - as in `schedule`.
   */
  reschedule(id: TimerId, delayMs: number): boolean {
    const slot = this.#slotOf(id);
    requireFiniteNumber('delayMs', delayMs);
    if (slot === NO_SLOT || this.#runner.isStopped) return false;
    this.#driver.move(slot, delayMs);
    return true;
  }

  /**
   * Calls `callback(arg)` at a time of the timer's clock. A program that has read the clock once arms any number of deadlines from
   * it: this method reads the clock only if it must arm or move the wake-up.
   *
   * @param deadlineMs - milliseconds on the timer's clock, finite. A time in the past means the next turn, never inside this call; a
   * time in the current tick, past or not, means its end.
   * @returns an id, as `schedule` does.
   * @throws as `schedule` does.
   * @example
   * ```ts
   * const nowMs = systemClock.now();
   * timer.scheduleAt(nowMs + 5_000, abort, request);
   * timer.scheduleAt(nowMs + 30_000, disconnect, request);
   * ```
   */
  scheduleAt(deadlineMs: number, callback: (arg: undefined) => void): TimerId;
  scheduleAt<A>(deadlineMs: number, callback: (arg: A) => void, arg: A): TimerId;
  scheduleAt<A>(deadlineMs: number, callback: (arg?: A) => void, arg?: A): TimerId {
    this.#requireOpen('scheduleAt');
    requireFiniteNumber('deadlineMs', deadlineMs);
    requireFunction('callback', callback);
    const slot = this.#keepsContext
      ? this.#driver.enterAt(callInContext, new ContextCall(callback, arg), deadlineMs)
      : this.#driver.enterAt(callback, arg, deadlineMs);
    return this.#wheels.table.idOf(slot) as TimerId;
  }

  /**
   * Moves the deadline to a time of the timer's clock. The id stays the same. Reads the clock as seldom as `scheduleAt`.
   *
   * @returns false for an id that is no longer pending, and after `close`: nothing changed.
   * @throws RangeError `ERR_OUT_OF_RANGE` or TypeError `ERR_INVALID_ARG_TYPE` - as in `scheduleAt`.
   */
  rescheduleAt(id: TimerId, deadlineMs: number): boolean {
    const slot = this.#slotOf(id);
    requireFiniteNumber('deadlineMs', deadlineMs);
    if (slot === NO_SLOT || this.#runner.isStopped) return false;
    this.#driver.moveAt(slot, deadlineMs);
    return true;
  }

  /**
   * Cancels a scheduled callback. O(1).
   *
   * @returns true if it was pending: it will not run. False for an id that has run, was cancelled, belongs to a slot
   * in use again, or to another timer; then nothing changed.
   */
  cancel(id: TimerId): boolean {
    const slot = this.#slotOf(id);
    if (slot === NO_SLOT) return false;
    this.#driver.withdraw(slot);
    return true;
  }

  /**
   * Resolves with `value` after `delayMs` milliseconds. Rejects with the signal's reason if it is aborted first,
   * with `ERR_TIMER_CLOSED` if the timer is closed first, and for invalid arguments.
   */
  sleep<T = void>(delayMs: number, value?: T, options: SignalOptions = {}): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#requireOpen('sleep');
      requireFiniteNumber('delayMs', delayMs);
      const signal = signalOf('SystemTimer.sleep', options);
      signal?.throwIfAborted();
      const sleeper = new Sleeper(this, resolve as (value: unknown) => void, reject, value, signal);
      sleeper.id = this.#schedule(delayMs, wakeSleeper, sleeper);
      signal?.addEventListener('abort', sleeper);
    });
  }

  /**
   * Runs everything that is due. What falls due meanwhile is left to the next call.
   *
   * @returns how many tasks and callbacks ran; 0 inside a task, after `close`, and when the executor runs later.
   */
  poll(): number {
    return this.#driver.pump(Infinity).ran;
  }

  async advanceClock(timeoutMs: number): Promise<boolean> {
    if (typeof timeoutMs !== 'number' || Number.isNaN(timeoutMs))
      throw invalidTimeout('timeoutMs', timeoutMs);
    if (this.#runner.isStopped) return false;
    if (this.#driver.pump(Infinity).fellDue) return true;
    return timeoutMs > 0 ? this.#driver.wait(timeoutMs) : false;
  }

  /** When the next wake-up is due, in milliseconds on the clock; undefined if nothing is pending. */
  nextExpirationMs(): number | undefined {
    return this.#wheels.earliest()?.expirationMs;
  }

  /** Lets pending tasks keep the process alive. This is the default. */
  ref(): void {
    this.#driver.wakeup.setRef(true);
  }

  /** Lets the process end although tasks are pending. */
  unref(): void {
    this.#driver.wakeup.setRef(false);
  }

  /** Whether pending tasks keep the process alive. */
  hasRef(): boolean {
    return this.#driver.wakeup.hasRef;
  }

  /** Returns a copy of the state of the wheels. O(buckets), however many tasks are pending. */
  inspect(): TimerSnapshot {
    return this.#wheels.snapshot(readClock(this.#clock));
  }

  /**
   * Closes the timer: nothing can be added, pending sleeps reject with `ERR_TIMER_CLOSED`, a pending
   * `advanceClock` resolves false. Idempotent; a task may call it, too.
   *
   * @returns the tasks that were pending, in order of expiration; scheduled callbacks and sleeps are not among them.
   */
  close(options: TimerCloseOptions = {}): TimerTask[] {
    const { pending } = readOptions('SystemTimer.close', options, TIMER_CLOSE_OPTIONS);
    if (this.#runner.isStopped) return [];
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

  /** @internal Returns what a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      size: this.size,
      levels: this.#wheels.levels.length,
      nextExpirationMs: this.nextExpirationMs(),
      closed: this.#runner.isStopped,
    }));
  }

  /** @internal For the integrity checkers. */
  [INTERNALS](): TimerInternals {
    return { wheels: this.#wheels, driver: this.#driver, runner: this.#runner };
  }

  #schedule<A>(delayMs: number, callback: (arg: A) => void, arg: A): TimerId {
    return this.#wheels.table.idOf(this.#driver.enter(callback, arg, delayMs)) as TimerId;
  }

  #slotOf(id: TimerId): number {
    if (typeof id !== 'number') throw wrongType('id', 'a number from schedule()', id);
    return this.#wheels.table.slotOf(id);
  }

  /** Moves everything that is pending to the due queue, in order, and rejects the sleeps; may drop the rest. */
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
      const isSleep = callback === wakeSleeper;
      if (isSleep || isDropped) table.discard(slot);
      if (isSleep) (argument as Sleeper).fail(closed);
      else if (isTaskCallback(callback)) tasks.push(argument as TimerTask);
    }
    if (isDropped) tasks.forEach(drop);
    return tasks;
  }

  #requireOpen(operation: string): void {
    if (this.#runner.isStopped) throw this.#closedError(operation);
  }

  #closedError(operation: string): EscapementError {
    return new EscapementError('ERR_TIMER_CLOSED', `timer '${this.name}' is closed`, {
      op: `SystemTimer.${operation}`,
    });
  }
}

/** A pending sleep: a promise that settles at its deadline or when its signal is aborted. It leaves no listener behind. */
class Sleeper {
  /** The id of its entry, from the time it is in the timer on. */
  id: TimerId | undefined;
  readonly #timer: SystemTimer;
  readonly #resolve: (value: unknown) => void;
  readonly #reject: (reason: unknown) => void;
  readonly #value: unknown;
  readonly #signal: AbortSignal | undefined;

  constructor(
    timer: SystemTimer,
    resolve: (value: unknown) => void,
    reject: (reason: unknown) => void,
    value: unknown,
    signal: AbortSignal | undefined,
  ) {
    this.#timer = timer;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#value = value;
    this.#signal = signal;
  }

  wake(): void {
    this.#signal?.removeEventListener('abort', this);
    this.#resolve(this.#value);
  }

  fail(reason: unknown): void {
    this.#signal?.removeEventListener('abort', this);
    this.#reject(reason);
  }

  /** Called when the signal is aborted. */
  handleEvent(): void {
    this.#timer.cancel(this.id as TimerId);
    this.fail(this.#signal?.reason);
  }
}

/** The callback of the entries of sleeps; the sleeper is the argument. */
const wakeSleeper = (sleeper: Sleeper): void => {
  sleeper.wake();
};
