import { outOfRange, wrongType } from '../../core/errors.ts';
import type { OptionTable } from '../../core/options.ts';
import {
  requireFiniteNumber,
  requireFunction,
  requireIntegerAtLeast,
  requireOptions,
  requireString,
  type OptionNames,
} from '../../core/validate.ts';
import type { Broker } from '../broker/broker.ts';
import { requireBroker } from '../broker/require-broker.ts';
import { TimeZone } from '../cron/time-zone.ts';
import { requireText } from '../require-text.ts';
import { guardedLogger, requireLogger, silentLogger, type Logger } from '../logger.ts';
import type { TaskInfo } from '../task-info.ts';
import { requireTaskOptions, TASK_OPTIONS, type TaskOptions } from '../task-options.ts';
import type { Task } from '../task.ts';

/** Options of a `Scheduler`. */
export interface SchedulerOptions {
  /** Broker of the tasks. The scheduler does not close it. */
  readonly broker: Broker;
  /** Time zone of the specs without one. @default 'UTC' @example 'Europe/Berlin' */
  readonly location?: string | undefined;
  /**
   * Whether missed ticks are enqueued later: see {@link Scheduler}. An entry may have its own setting.
   *
   * @default false
   * @example { maxAgeMs: 86_400_000, maxTicks: 10 }
   */
  readonly backfill?: BackfillOptions | boolean | undefined;
  /** Called before a task is enqueued. */
  readonly preEnqueue?: PreEnqueue | undefined;
  /** Called after a task was enqueued, or was not. */
  readonly postEnqueue?: PostEnqueue | undefined;
  /** Called when a task was not enqueued. */
  readonly enqueueErrorHandler?: EnqueueErrorHandler | undefined;
  /**
   * How often the scheduler announces itself to the broker, in milliseconds, at least 1000; only if the broker needs it.
   *
   * @default 10_000
   */
  readonly heartbeatIntervalMs?: number | undefined;
  /** A pino logger, or an object with its methods. @default silent */
  readonly logger?: Logger | undefined;
}

export const SCHEDULER_OPTIONS: OptionNames<SchedulerOptions> = {
  ...{ broker: true, location: true, backfill: true, preEnqueue: true, postEnqueue: true },
  ...{ enqueueErrorHandler: true, heartbeatIntervalMs: true, logger: true },
};

/** Limits for the ticks that are enqueued later because no scheduler ran at their time, or all were suspended. */
export interface BackfillOptions {
  /** Maximum age of a tick, in milliseconds; may be `Infinity`. @default Infinity */
  readonly maxAgeMs?: number | undefined;
  /** Maximum number of ticks: the newest ones, oldest first. An integer of at least 1. @default 100 */
  readonly maxTicks?: number | undefined;
}

const BACKFILL_OPTIONS: OptionNames<BackfillOptions> = { maxAgeMs: true, maxTicks: true };

/** Options of an entry: how its tasks are processed, and how it is scheduled. */
export interface ScheduleOptions extends TaskOptions {
  /** Id of the entry. @default a hash of its spec, task and options: the same in every scheduler, and after a restart */
  readonly id?: string | undefined;
  /** Whether its missed ticks are enqueued later. @default that of the scheduler */
  readonly backfill?: BackfillOptions | boolean | undefined;
}

const SCHEDULE_OPTIONS = {
  ...TASK_OPTIONS,
  id: [requireText, undefined],
  backfill: [() => undefined, undefined],
} satisfies OptionTable<ScheduleOptions>;

/** A tick of an entry. */
export interface ScheduleTick {
  /** The id that `register` has returned. */
  readonly entryId: string;
  /** Time of the tick. */
  readonly at: Date;
}

/**
 * Its result is not awaited. An error that it throws is emitted as an `error` event, or is an uncaught exception, and stops nothing.
 */
export type PreEnqueue = (task: Task, options: TaskOptions, tick: ScheduleTick) => unknown;

/**
 * Receives the task that was enqueued, or the error; with neither, another scheduler has enqueued this tick. For errors that it
 * throws, see {@link PreEnqueue}. The parameters have the order of asynq's `PostEnqueueFunc`.
 */
export type PostEnqueue = (info: TaskInfo | undefined, error: unknown, tick: ScheduleTick) => unknown;

/** For errors that it throws, see {@link PreEnqueue}. The parameters have the order of asynq's `EnqueueErrorHandler`. */
export type EnqueueErrorHandler = (
  task: Task,
  options: TaskOptions,
  error: unknown,
  tick: ScheduleTick,
) => unknown;

/** Backfill options with every default filled in. */
export interface Backfill {
  readonly maxAgeMs: number;
  readonly maxTicks: number;
}

/** The options with every default filled in. */
export interface ResolvedSchedulerOptions {
  readonly broker: Broker;
  readonly location: string;
  readonly backfill: Backfill | undefined;
  readonly preEnqueue: PreEnqueue | undefined;
  readonly postEnqueue: PostEnqueue | undefined;
  readonly enqueueErrorHandler: EnqueueErrorHandler | undefined;
  readonly heartbeatIntervalMs: number;
  readonly logger: Logger;
}

const DEFAULT_MAX_TICKS = 100;

/** As asynq. */
const HEARTBEAT_INTERVAL_MS = 10_000;

/** Redis keeps an announcement for whole seconds. */
const MIN_HEARTBEAT_INTERVAL_MS = 1_000;

export function resolveSchedulerOptions(
  subject: string,
  options: SchedulerOptions,
  names: OptionNames<SchedulerOptions>,
): ResolvedSchedulerOptions {
  requireOptions(subject, options, names);
  const {
    broker,
    location = 'UTC',
    backfill = false,
    preEnqueue,
    postEnqueue,
    enqueueErrorHandler,
  } = options;
  const { heartbeatIntervalMs = HEARTBEAT_INTERVAL_MS, logger = silentLogger } = options;
  requireBroker('options.broker', broker);
  requireString('options.location', location);
  new TimeZone('options.location', location);
  if (preEnqueue !== undefined) requireFunction('options.preEnqueue', preEnqueue);
  if (postEnqueue !== undefined) requireFunction('options.postEnqueue', postEnqueue);
  if (enqueueErrorHandler !== undefined) requireFunction('options.enqueueErrorHandler', enqueueErrorHandler);
  requireFiniteNumber('options.heartbeatIntervalMs', heartbeatIntervalMs);
  if (heartbeatIntervalMs < MIN_HEARTBEAT_INTERVAL_MS) {
    throw outOfRange(
      'options.heartbeatIntervalMs',
      `at least ${MIN_HEARTBEAT_INTERVAL_MS} ms`,
      heartbeatIntervalMs,
    );
  }
  requireLogger('options.logger', logger);
  return {
    ...{ broker, location, preEnqueue, postEnqueue, enqueueErrorHandler, heartbeatIntervalMs },
    backfill: resolveBackfill(subject, backfill),
    logger: guardedLogger(logger),
  };
}

/** @throws TypeError or RangeError - an option is wrong. */
export function requireScheduleOptions(subject: string, options: ScheduleOptions): void {
  requireTaskOptions(subject, options, SCHEDULE_OPTIONS);
  if (options.backfill !== undefined) resolveBackfill(subject, options.backfill);
}

/** @returns undefined if no missed ticks are enqueued. @throws TypeError or RangeError - an option is wrong. */
export function resolveBackfill(subject: string, value: BackfillOptions | boolean): Backfill | undefined {
  if (value === false) return undefined;
  if (value !== true) requireOptions(subject, value, BACKFILL_OPTIONS, 'options.backfill');
  const { maxAgeMs = Infinity, maxTicks = DEFAULT_MAX_TICKS } = value === true ? {} : value;
  if (typeof maxAgeMs !== 'number')
    throw wrongType('options.backfill.maxAgeMs', 'a number of milliseconds', maxAgeMs);
  if (!(maxAgeMs >= 0)) throw outOfRange('options.backfill.maxAgeMs', 'at least 0 milliseconds', maxAgeMs);
  requireIntegerAtLeast('options.backfill.maxTicks', 1, maxTicks);
  return { maxAgeMs, maxTicks };
}
