import { requireAsyncContext } from '../core/async-context.ts';
import { readClock, requireClock, systemClock, type Clock } from '../core/clock.ts';
import { outOfRange } from '../core/errors.ts';
import {
  integer,
  milliseconds,
  oneOf,
  orInfinity,
  readOptions,
  type OptionTable,
  type Resolved,
} from '../core/options.ts';
import { requireBoolean, requireFunction, requireString } from '../core/validate.ts';
import { counter, gauges } from '../metrics/measure.ts';
import { requireMetrics, type MetricsProvider } from '../metrics/provider.ts';
import type { TimerTask } from './timer-task.ts';

/** Runs tasks after a delay. After Kafka's interface of this name. */
export interface Timer {
  /** Adds a task; one that is pending, here or in another timer, is moved. Never runs user code. O(levels). */
  add(task: TimerTask): void;
  /**
   * Waits at most `timeoutMs` for a bucket to fall due, and runs what is due. The argument bounds the wait, it is
   * not a step; 0 or less does not wait.
   *
   * @returns whether a bucket fell due; false at once if the timer is closed.
   */
  advanceClock(timeoutMs: number): Promise<boolean>;
  /** Number of tasks that were added and have neither started to run nor been cancelled. */
  readonly size: number;
  /** Closes the timer. Idempotent: a second call returns an empty array. @returns the tasks that were pending. */
  close(options?: TimerCloseOptions): TimerTask[];
}

/** Options of `close`. */
export interface TimerCloseOptions {
  /**
   * What happens to pending tasks.
   *
   * - `'drop'`: they do not run, and are not cancelled either: `close` returns them.
   * - `'run'`: they run in order of expiration, before `close` returns.
   *
   * @default 'drop'
   */
  readonly pending?: 'drop' | 'run' | undefined;
}

export const TIMER_CLOSE_OPTIONS = {
  pending: [oneOf('drop', 'run'), 'drop'],
} satisfies OptionTable<TimerCloseOptions>;

/** How a deadline becomes a multiple of the tick: `'up'` is never early, `'down'` is Kafka's. */
export type Rounding = 'up' | 'down';

/** Called with each error of user code; `task` is undefined for a scheduled callback. */
export type TimerErrorHandler = (error: unknown, task: TimerTask | undefined) => void;

/** Options of a `SystemTimer`, checked by its constructor: a wrong one is a `TypeError` or `RangeError`. */
export interface SystemTimerOptions {
  /** Name of the timer in errors and metrics. @default 'timer' */
  readonly name?: string | undefined;
  /**
   * The finest time span, in milliseconds: an integer of at least 1. Tasks of one span run together, so a
   * coarser tick means fewer wake-ups and more lateness.
   *
   * @default 1
   * @example 100 // session timeouts of minutes: a tenth of a second does not matter
   */
  readonly tickMs?: number | undefined;
  /**
   * Buckets per wheel: an integer from 2 to 2^20. More means fewer levels, so fewer moves per task, and more
   * memory. The default reaches 4 s with two levels, 4 min with three, 4.7 h with four.
   *
   * @default 64
   */
  readonly wheelSize?: number | undefined;
  /** Where the wheels start, in milliseconds on `clock`; not after its current time. @default clock.now() */
  readonly startMs?: number | undefined;
  /** The source of time. @default systemClock */
  readonly clock?: Clock | undefined;
  /**
   * `'up'`: never early, up to `tickMs` late. `'down'`: as Kafka, up to `tickMs - 1` ms early.
   *
   * @default 'up'
   */
  readonly rounding?: Rounding | undefined;
  /**
   * Whether the timer arms a wake-up for the earliest bucket by itself. With false the program calls `poll` or
   * `advanceClock`.
   *
   * @default true
   */
  readonly autoStart?: boolean | undefined;
  /**
   * Decides where due tasks run: it receives a function that runs those of one turn, to be called once, now or later. If it
   * throws or rejects, `onError` gets the error, and the tasks run at once.
   *
   * @default the wake-up's own turn
   * @example setImmediate // after the I/O that is ready
   */
  readonly executor?: ((run: () => void) => unknown) | undefined;
  /**
   * Most tasks that one wake-up runs, so that a mass expiry cannot hold the event loop; the others run in
   * turns that follow at once. An integer of at least 1, or `Infinity`. It does not bound `poll` and `advanceClock`.
   * One wake-up also moves at most 65 536 tasks between wheels, unless this is `Infinity`.
   *
   * @default 10_000
   */
  readonly maxTasksPerTurn?: number | undefined;
  /**
   * Whether tasks and callbacks run in the async context of the call that added them: in its stores of
   * `AsyncLocalStorage`. It costs one object and some 30 ns for each. A runtime without `node:async_hooks` throws
   * `ERR_FEATURE_UNAVAILABLE`.
   *
   * @default false
   */
  readonly asyncContext?: boolean | undefined;
  /**
   * Called with each error that a task, a callback or the executor throws, and with that of a clock that is invalid when the
   * timer should wake.
   *
   * @default the error is thrown in a turn of its own: an uncaught exception of the host
   */
  readonly onError?: TimerErrorHandler | undefined;
  /**
   * Receives `timer_size`, `timer_tasks_run_total` and `timer_wakeups_total`, labelled with the timer's name.
   *
   * @default none
   */
  readonly metrics?: MetricsProvider | undefined;
}

/** A ring is an array: beyond this size it would cost more than the levels it saves. */
const MAX_WHEEL_SIZE = 2 ** 20;

const OPTIONS = {
  name: [requireString, 'timer'],
  tickMs: [integer(1), 1],
  wheelSize: [integer(2, MAX_WHEEL_SIZE), 64],
  startMs: [milliseconds(0), undefined],
  clock: [requireClock, systemClock],
  rounding: [oneOf('up', 'down'), 'up'],
  autoStart: [requireBoolean, true],
  executor: [requireFunction, undefined],
  maxTasksPerTurn: [orInfinity(integer(1)), 10_000],
  asyncContext: [requireAsyncContext, false],
  onError: [requireFunction, undefined],
  metrics: [requireMetrics, undefined],
} satisfies OptionTable<SystemTimerOptions>;

/** The options with every default filled in. */
export interface ResolvedSystemTimerOptions extends Resolved<SystemTimerOptions, typeof OPTIONS> {
  readonly startMs: number;
}

export function resolveOptions(options: SystemTimerOptions): ResolvedSystemTimerOptions {
  const resolved = readOptions('SystemTimer', options, OPTIONS);
  const nowMs = readClock(resolved.clock);
  const { startMs = nowMs } = resolved;
  // A wheel ahead of the clock would run tasks that are not due.
  if (startMs > nowMs) {
    throw outOfRange('options.startMs', `at most the clock's now, which is ${nowMs}`, startMs);
  }
  return { ...resolved, startMs };
}

/**
 * Metrics of a timer. Nothing is measured per task: a turn is counted as a whole, and the size is read when metrics are collected.
 * A provider is called when the timer is consistent, so that it may use the timer.
 */
export interface TimerMetrics {
  /** Counts a wake-up. */
  readonly woke: () => void;
  /** Counts tasks that were run. */
  readonly ran: (tasks: number) => void;
  /** Removes the gauge, which would keep a closed timer in memory. */
  readonly remove: () => void;
}

export function timerMetrics(provider: MetricsProvider, timer: string, readSize: () => number): TimerMetrics {
  const labels = { timer };
  return {
    woke: counter(provider, 'timer_wakeups_total', 'Wake-ups.', labels),
    ran: counter(provider, 'timer_tasks_run_total', 'Tasks run.', labels),
    remove: gauges(provider, [['timer_size', 'Pending tasks.', readSize, labels]]),
  };
}
