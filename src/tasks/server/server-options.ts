import { availableParallelism } from 'node:os';
import { MAX_HOST_TIMEOUT_MS } from '../../core/clock.ts';
import { wrongValue } from '../../core/errors.ts';
import { integer, milliseconds, readOptions, type OptionTable, type Resolved } from '../../core/options.ts';
import { reportUncaught } from '../../core/report-uncaught.ts';
import { DAY_MS, SECOND_MS } from '../../core/units.ts';
import {
  requireBoolean,
  requireFunction,
  requireIntegerAtLeast,
  requireObject,
  requireRecord,
} from '../../core/validate.ts';
import { requireMetrics, type MetricsProvider } from '../../metrics/provider.ts';
import { requireBroker, requireQueueName } from '../argument-checks.ts';
import type { Broker, QueueLimits } from '../broker/broker.ts';
import { requireLimitsByQueue } from '../broker/broker-settings.ts';
import { guardedLogger, requireLogger, silentLogger, type Logger } from '../reporting.ts';
import type { Task } from '../task.ts';
import type { ReceivedTask, TaskContext } from '../handler.ts';

/**
 * Makes one task of the tasks of a group, which are passed oldest first. It has two minutes. If it takes longer or throws, the tasks
 * return to their group at the end of that time (on Redis within another minute), its result is ignored, and it is called again,
 * even if the first call still has not settled. At most three calls are awaited at once.
 */
export type GroupAggregator = (group: string, tasks: readonly ReceivedTask[]) => Task | Promise<Task>;

/** Called for every handler error and every interrupted run, except interruptions by shutdown. */
export type TaskErrorHandler = (error: unknown, task: ReceivedTask, context: TaskContext) => void;

/**
 * Returns how long to wait, in milliseconds, before a task is retried that has failed `retried` times before. The parameters have the
 * order of asynq's `RetryDelayFunc`.
 */
export type RetryDelay = (retried: number, error: unknown, task: ReceivedTask) => number;

/** Options of a `Server`. All are validated by the constructor; a wrong option is a `TypeError` or `RangeError`. */
export interface ServerOptions {
  /** Broker of the tasks. The server does not close it. */
  readonly broker: Broker;
  /** Number of tasks that are processed at once: an integer of at least 1. @default os.availableParallelism() */
  readonly concurrency?: number | undefined;
  /**
   * The queues to serve, with their priorities: integers of at least 1.
   *
   * @default { default: 1 }
   * @example { critical: 6, default: 3, low: 1 } // six tenths, three tenths and one tenth of the tasks, while all have some
   */
  readonly queues?: Readonly<Record<string, number>> | undefined;
  /**
   * Limits of queues, by their names: see `QueueLimits`. They are stored in the broker when the server starts, and hold for all servers
   * of the broker together. @default those that the broker has
   */
  readonly limits?: Readonly<Record<string, QueueLimits>> | undefined;
  /** Whether no task is taken from a queue while one of higher priority has tasks. @default false */
  readonly strictPriority?: boolean | undefined;
  /**
   * How long to wait before a failed task is retried, in milliseconds.
   *
   * @default asynq's: n⁴ + 15 + (0 … 29) · (n + 1) seconds after n earlier failures
   * @example () => 1_000
   */
  readonly retryDelayMs?: RetryDelay | undefined;
  /**
   * Whether an error counts as a failure, and as one of the task's retries; only `false` means that it does not. A task whose error
   * does not count is always retried. Called before retries are counted.
   *
   * @default every error counts
   */
  readonly isFailure?: ((error: unknown) => boolean) | undefined;
  /** Called for errors of handlers, before the outcome is written. @default none: `logger` has them */
  readonly errorHandler?: TaskErrorHandler | undefined;
  /** How long `shutdown` waits for running tasks before it interrupts them, in milliseconds. @default 8_000 */
  readonly shutdownTimeoutMs?: number | undefined;
  /**
   * How long a handler has to settle after its signal has fired, in milliseconds; its outcome then counts. After that the run is
   * given up, and the server takes another task, although the handler may still run. @default 1_000
   */
  readonly graceMs?: number | undefined;
  /** How often an empty queue is polled, in milliseconds; only if the broker needs it. @default 1_000 */
  readonly pollIntervalMs?: number | undefined;
  /** How often the server checks for tasks that are due, in milliseconds; only if the broker needs it. @default 1_000 */
  readonly delayedTaskCheckIntervalMs?: number | undefined;
  /**
   * Called with undefined or an error, after each check whether the broker answers, and with an error when tasks cannot be taken.
   *
   * @default none
   */
  readonly healthCheck?: ((error: unknown) => void) | undefined;
  /** How often the broker is checked for `healthCheck`, in milliseconds. @default 15_000 */
  readonly healthCheckIntervalMs?: number | undefined;
  /** Aggregates the groups of the queues. @default none: this server does not aggregate */
  readonly groupAggregator?: GroupAggregator | undefined;
  /** A group is aggregated when no task was added to it for that long, in milliseconds. @default 60_000 */
  readonly groupGracePeriodMs?: number | undefined;
  /** A group is also aggregated when its oldest task has waited for that long, in milliseconds. @default any time */
  readonly groupMaxDelayMs?: number | undefined;
  /** A group is also aggregated when it has that many tasks: an integer of at least 1. @default any number */
  readonly groupMaxSize?: number | undefined;
  /** How often expired completed tasks are removed, in milliseconds; only if the broker needs it. @default 8_000 */
  readonly janitorIntervalMs?: number | undefined;
  /** How many are removed at once: an integer of at least 1. @default 100 */
  readonly janitorBatchSize?: number | undefined;
  /**
   * Length of a lease, in milliseconds, at least 1000 and at most 2 147 483 647 (24 days). A lease is renewed six times in that time. After
   * a crash its task is retried when the lease has ended, after the delay of `retryDelayMs`. On Redis a server notices it 30 to 90 s later:
   * clocks may differ by 30 s, and each server checks once a minute, and when it starts. @default 30_000
   */
  readonly leaseMs?: number | undefined;
  /** How often a task may lose its lease; the next time it is archived. An integer of at least 0. @default 3 */
  readonly maxRecoveries?: number | undefined;
  /** The values that `context.values` inherits from. @default nothing */
  readonly baseContext?: Readonly<Record<string, unknown>> | undefined;
  /** A pino logger, or an object with its methods. @default silent */
  readonly logger?: Logger | undefined;
  /** Receives `escapement_task_duration_seconds` and `escapement_tasks_in_progress`. @default none */
  readonly metrics?: MetricsProvider | undefined;
}

/** A shorter lease could end while a slow network delays its renewal. */
const MIN_LEASE_MS = SECOND_MS;

const OPTIONS = {
  broker: [requireBroker],
  concurrency: [integer(1), undefined],
  queues: [requireQueues, { default: 1 }],
  limits: [requireLimitsByQueue, {}],
  strictPriority: [requireBoolean, false],
  retryDelayMs: [requireFunction, defaultRetryDelayMs],
  isFailure: [requireFunction, undefined],
  errorHandler: [requireFunction, undefined],
  shutdownTimeoutMs: [milliseconds(0), 8_000],
  graceMs: [milliseconds(0), 1_000],
  pollIntervalMs: [milliseconds(1), 1_000],
  delayedTaskCheckIntervalMs: [milliseconds(1), 1_000],
  healthCheck: [requireFunction, undefined],
  healthCheckIntervalMs: [milliseconds(1), 15_000],
  groupAggregator: [requireFunction, undefined],
  groupGracePeriodMs: [milliseconds(1), 60_000],
  groupMaxDelayMs: [milliseconds(0), 0], // 0 for any
  groupMaxSize: [integer(1), 0], // 0 for any
  janitorIntervalMs: [milliseconds(1), 8_000],
  janitorBatchSize: [integer(1), 100],
  leaseMs: [milliseconds(MIN_LEASE_MS, MAX_HOST_TIMEOUT_MS), 30_000],
  maxRecoveries: [integer(0), 3],
  baseContext: [requireObject, null],
  logger: [requireLogger, silentLogger],
  metrics: [requireMetrics, undefined],
} satisfies OptionTable<ServerOptions>;

export interface ResolvedServerOptions extends Omit<Resolved<ServerOptions, typeof OPTIONS>, 'concurrency'> {
  readonly concurrency: number;
  readonly queueNames: readonly string[];
}

export function resolveServerOptions(options: ServerOptions): ResolvedServerOptions {
  const resolved = readOptions('Server', options, OPTIONS);
  const { queues, limits } = resolved;
  // The limits of each key have the form of the limits of a queue: those of a queue that is forgotten would limit no task.
  if ('perKey' in limits && !('perKey' in queues)) {
    throw wrongValue('options.limits', 'an object of queues, such as { mail: { perKey: … } }', limits);
  }
  return {
    ...resolved,
    concurrency: resolved.concurrency ?? availableParallelism(),
    queues: { ...queues },
    queueNames: Object.keys(queues),
    logger: guardedLogger(resolved.logger),
  };
}

function requireQueues(argument: string, queues: unknown): void {
  requireRecord(argument, '{ mail: 1 }', queues);
  const entries = Object.entries(queues as object);
  if (entries.length === 0) throw wrongValue(argument, 'an object with a queue', queues);
  for (const [name, priority] of entries) {
    requireQueueName(`a name of ${argument}`, name);
    requireIntegerAtLeast(`${argument}.${name}`, 1, priority);
  }
}

/** Spreads tasks that have failed together, in seconds. */
const SPREAD_S = 30;
/** The shortest default delay, in seconds. */
const LEAST_S = 15;
/** A hundred years: the longest delay, so that the time of the retry is still a valid date. */
const LONGEST_MS = 100 * 365 * DAY_MS;

/**
 * Returns asynq's delay, in milliseconds: n⁴ + 15 + (0 … 29) · (n + 1) seconds after n earlier failures. That is 15 to 44 s at first,
 * and about 20 days over all of the default 25 retries.
 */
export function defaultRetryDelayMs(retried: number): number {
  const spread = Math.floor(Math.random() * SPREAD_S) * (retried + 1);
  return Math.min((retried ** 4 + LEAST_S + spread) * SECOND_MS, LONGEST_MS);
}

/** Returns the delay of the user's function, or asynq's if that throws or returns no valid delay. */
export function retryDelayOf(delay: RetryDelay, retried: number, error: unknown, task: ReceivedTask): number {
  try {
    const delayMs: unknown = delay(retried, error, task);
    if (typeof delayMs === 'number' && !Number.isNaN(delayMs))
      return Math.min(Math.max(delayMs, 0), LONGEST_MS);
  } catch (thrown) {
    reportUncaught(thrown);
  }
  return defaultRetryDelayMs(retried);
}
