import { MAX_HOST_TIMEOUT_MS } from '../../core/clock.ts';
import {
  checkOptions,
  integer,
  milliseconds,
  orInfinity,
  readOptions,
  type OptionTable,
  type Resolved,
} from '../../core/options.ts';
import { SECOND_MS } from '../../core/units.ts';
import { requireFunction, requireString } from '../../core/validate.ts';
import { requireBroker, requireText } from '../argument-checks.ts';
import type { Broker } from '../broker/broker.ts';
import { TimeZone } from './wall-schedule.ts';
import { guardedLogger, requireLogger, silentLogger, type Logger } from '../reporting.ts';
import type { TaskInfo } from '../info.ts';
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
   * How often the scheduler announces itself to the broker, in milliseconds, at least 1000 and at most 2 147 483 647 (24 days); only if the
   * broker needs it.
   *
   * @default 10_000
   */
  readonly heartbeatIntervalMs?: number | undefined;
  /** A pino logger, or an object with its methods. @default silent */
  readonly logger?: Logger | undefined;
}

/** Limits for the ticks that are enqueued later because no scheduler ran at their time, or all were suspended. */
export interface BackfillOptions {
  /** Maximum age of a tick, in milliseconds; may be `Infinity`. @default Infinity */
  readonly maxAgeMs?: number | undefined;
  /** Maximum number of ticks: the newest ones, oldest first. An integer of at least 1. @default 100 */
  readonly maxTicks?: number | undefined;
}

const BACKFILL_OPTIONS = {
  maxAgeMs: [orInfinity(milliseconds(0)), Infinity],
  maxTicks: [integer(1), 100],
} satisfies OptionTable<BackfillOptions>;

export type Backfill = Resolved<BackfillOptions, typeof BACKFILL_OPTIONS>;

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
  backfill: [() => undefined, undefined], // requireScheduleOptions checks it, with the subject
} satisfies OptionTable<ScheduleOptions>;

/** A tick of an entry. */
export interface ScheduleTick {
  /** The id that `register` has returned. */
  readonly entryId: string;
  /** Time of the tick. */
  readonly at: Date;
}

/** Its result is not awaited. An error that it throws is emitted as an `error` event, or is an uncaught exception, and stops nothing. */
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

/** Redis keeps an announcement for whole seconds. */
const MIN_HEARTBEAT_INTERVAL_MS = SECOND_MS;

export const SCHEDULER_OPTIONS = {
  broker: [requireBroker],
  location: [requireTimeZone, 'UTC'],
  backfill: [requireBackfill, false],
  preEnqueue: [requireFunction, undefined],
  postEnqueue: [requireFunction, undefined],
  enqueueErrorHandler: [requireFunction, undefined],
  heartbeatIntervalMs: [milliseconds(MIN_HEARTBEAT_INTERVAL_MS, MAX_HOST_TIMEOUT_MS), 10_000], // as asynq
  logger: [requireLogger, silentLogger],
} satisfies OptionTable<SchedulerOptions>;

export interface ResolvedSchedulerOptions extends Omit<
  Resolved<SchedulerOptions, typeof SCHEDULER_OPTIONS>,
  'backfill'
> {
  readonly backfill: Backfill | undefined;
}

export function resolveSchedulerOptions(options: SchedulerOptions): ResolvedSchedulerOptions {
  const resolved = readOptions('Scheduler', options, SCHEDULER_OPTIONS);
  return {
    ...resolved,
    backfill: resolveBackfill(resolved.backfill),
    logger: guardedLogger(resolved.logger),
  };
}

export function requireScheduleOptions(subject: string, options: ScheduleOptions): void {
  requireTaskOptions(subject, options, SCHEDULE_OPTIONS);
  if (options.backfill !== undefined) requireBackfill('options.backfill', options.backfill, subject);
}

/** @returns undefined if missed ticks are not enqueued. */
export function resolveBackfill(backfill: BackfillOptions | boolean): Backfill | undefined {
  if (backfill === false) return undefined;
  return readOptions('Scheduler', backfill === true ? {} : backfill, BACKFILL_OPTIONS, 'options.backfill');
}

function requireBackfill(argument: string, value: unknown, subject = 'Scheduler'): void {
  if (typeof value !== 'boolean') checkOptions(subject, value, BACKFILL_OPTIONS, argument);
}

function requireTimeZone(argument: string, value: unknown): void {
  requireString(argument, value);
  new TimeZone(argument, value);
}
