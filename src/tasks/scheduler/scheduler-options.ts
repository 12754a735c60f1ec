import { outOfRange, wrongType } from '../../core/errors.ts';
import {
  requireFiniteNumber,
  requireFunction,
  requireOptions,
  type OptionNames,
} from '../../core/validate.ts';
import type { Broker } from '../broker/broker.ts';
import { requireBroker } from '../broker/require-broker.ts';
import { TimeZone } from '../cron/time-zone.ts';
import { requireText } from '../require-text.ts';
import { guardedLogger, requireLogger, silentLogger, type Logger } from '../server/logger.ts';
import type { TaskInfo } from '../task-info.ts';
import { requireTaskOptions, TASK_OPTIONS, type TaskOptions } from '../task-options.ts';
import type { Task } from '../task.ts';
import { resolveBackfill, type Backfill, type BackfillOptions } from './backfill.ts';

/** What a scheduler is made from. */
export interface SchedulerOptions {
  /** Where tasks go. The scheduler does not close it. */
  readonly broker: Broker;
  /** The time zone of specs that name none. @default 'UTC' @example 'Europe/Berlin' */
  readonly location?: string | undefined;
  /**
   * Whether ticks that were missed are made up for: see {@link Scheduler}. An entry may say otherwise.
   *
   * @default false
   * @example { maxAgeMs: 86_400_000, maxTicks: 10 }
   */
  readonly backfill?: BackfillOptions | boolean | undefined;
  /** Called before a task is enqueued. */
  readonly preEnqueue?: PreEnqueue | undefined;
  /** Called when that is over. */
  readonly postEnqueue?: PostEnqueue | undefined;
  /** Called when a task was not enqueued. */
  readonly enqueueErrorHandler?: EnqueueErrorHandler | undefined;
  /**
   * How often the scheduler shows that it is there, in milliseconds, at least 1000; only where the broker cannot tell
   * by itself.
   *
   * @default 10_000
   */
  readonly heartbeatIntervalMs?: number | undefined;
  /** Is told what happens. @default silent */
  readonly logger?: Logger | undefined;
}

export const SCHEDULER_OPTIONS: OptionNames<SchedulerOptions> = {
  ...{ broker: true, location: true, backfill: true, preEnqueue: true, postEnqueue: true },
  ...{ enqueueErrorHandler: true, heartbeatIntervalMs: true, logger: true },
};

/** What an entry is registered with: how its tasks are processed, and how it is scheduled. */
export interface ScheduleOptions extends TaskOptions {
  /** Names the entry. @default made from all there is to it: the same in every scheduler, and after a restart */
  readonly id?: string | undefined;
  /** Whether its missed ticks are made up for. @default as the scheduler's */
  readonly backfill?: BackfillOptions | boolean | undefined;
}

const SCHEDULE_OPTIONS: OptionNames<ScheduleOptions> = { ...TASK_OPTIONS, id: true, backfill: true };

/** A moment of an entry. */
export interface ScheduleTick {
  /** What `register` has returned. */
  readonly entryId: string;
  /** When it is. */
  readonly at: Date;
}

/** What it returns is not waited for. What it throws stops nothing: it is an `error` event, or uncaught. */
export type PreEnqueue = (task: Task, options: TaskOptions, tick: ScheduleTick) => unknown;

/**
 * Given what was enqueued, or why nothing was; with neither, another scheduler has enqueued this tick. As of errors, see
 * {@link PreEnqueue}. The parameters have the order of asynq's `PostEnqueueFunc`.
 */
export type PostEnqueue = (info: TaskInfo | undefined, error: unknown, tick: ScheduleTick) => unknown;

/** As of errors, see {@link PreEnqueue}. The parameters have the order of asynq's `EnqueueErrorHandler`. */
export type EnqueueErrorHandler = (
  task: Task,
  options: TaskOptions,
  error: unknown,
  tick: ScheduleTick,
) => unknown;

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

/** asynq's. */
const HEARTBEAT_INTERVAL_MS = 10_000;

/** What is shown lives for whole seconds in Redis. */
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
  if (typeof location !== 'string') throw wrongType('options.location', 'a string', location);
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
  if (options.id !== undefined) requireText('options.id', options.id);
  if (options.backfill !== undefined) resolveBackfill(subject, options.backfill);
}
