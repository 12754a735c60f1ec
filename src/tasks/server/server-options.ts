import { availableParallelism } from 'node:os';
import { outOfRange, wrongValue } from '../../core/errors.ts';
import { reportUncaught } from '../../core/report-uncaught.ts';
import { DAY_MS, SECOND_MS } from '../../core/units.ts';
import {
  requireBoolean,
  requireFiniteNumber,
  requireFunction,
  requireIntegerAtLeast,
  requireObject,
  requireOptions,
  type OptionNames,
} from '../../core/validate.ts';
import type { MetricsProvider } from '../../metrics/provider.ts';
import { requireMetrics } from '../../metrics/require-metrics.ts';
import type { Broker } from '../broker/broker.ts';
import { requireBroker } from '../broker/require-broker.ts';
import { guardedLogger, requireLogger, silentLogger, type Logger } from '../logger.ts';
import { requireQueueName } from '../require-text.ts';
import type { Task } from '../task.ts';
import type { ReceivedTask, TaskContext } from './handler.ts';

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
   * Whether an error counts as a failure, and as one of the task's retries. A task whose error does not count is always retried.
   * Called before retries are counted.
   *
   * @default every error counts
   */
  readonly isFailure?: ((error: unknown) => boolean) | undefined;
  /** Called for errors of handlers. @default none */
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
  /** How often the server checks for tasks that are due, in milliseconds; only if the broker needs it. @default 5_000 */
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
   * Length of a lease, in milliseconds, at least 1000: that long after a crash another worker may take the task. A lease is renewed
   * six times in that time. @default 30_000
   */
  readonly leaseMs?: number | undefined;
  /** How often a task may lose its lease before it is archived: an integer of at least 0. @default 3 */
  readonly maxRecoveries?: number | undefined;
  /** The values that `context.values` inherits from. @default nothing */
  readonly baseContext?: Readonly<Record<string, unknown>> | undefined;
  /** A pino logger, or an object with its methods. @default silent */
  readonly logger?: Logger | undefined;
  /** Receives `escapement_task_duration_seconds` and `escapement_tasks_in_progress`. @default none */
  readonly metrics?: MetricsProvider | undefined;
}

const OPTIONS: OptionNames<ServerOptions> = {
  ...{ broker: true, concurrency: true, queues: true, strictPriority: true },
  ...{ retryDelayMs: true, isFailure: true, errorHandler: true, maxRecoveries: true },
  ...{ shutdownTimeoutMs: true, graceMs: true, pollIntervalMs: true, delayedTaskCheckIntervalMs: true },
  ...{ healthCheck: true, healthCheckIntervalMs: true, leaseMs: true },
  ...{ groupAggregator: true, groupGracePeriodMs: true, groupMaxDelayMs: true, groupMaxSize: true },
  ...{ janitorIntervalMs: true, janitorBatchSize: true, baseContext: true, logger: true, metrics: true },
};

/** The options with every default filled in. */
export interface ResolvedServerOptions {
  readonly broker: Broker;
  readonly concurrency: number;
  readonly queues: Readonly<Record<string, number>>;
  readonly queueNames: readonly string[];
  readonly strictPriority: boolean;
  readonly retryDelayMs: RetryDelay;
  readonly isFailure: ((error: unknown) => boolean) | undefined;
  readonly errorHandler: TaskErrorHandler | undefined;
  readonly shutdownTimeoutMs: number;
  readonly graceMs: number;
  readonly pollIntervalMs: number;
  readonly delayedTaskCheckIntervalMs: number;
  readonly healthCheck: ((error: unknown) => void) | undefined;
  readonly healthCheckIntervalMs: number;
  readonly groupAggregator: GroupAggregator | undefined;
  readonly groupGracePeriodMs: number;
  /** 0 for any. */
  readonly groupMaxDelayMs: number;
  /** 0 for any. */
  readonly groupMaxSize: number;
  readonly janitorIntervalMs: number;
  readonly janitorBatchSize: number;
  readonly leaseMs: number;
  readonly maxRecoveries: number;
  readonly baseContext: Readonly<Record<string, unknown>> | null;
  readonly logger: Logger;
  readonly metrics: MetricsProvider | undefined;
}

/** A shorter lease could end while a slow network delays its renewal. */
const MIN_LEASE_MS = SECOND_MS;

const DEFAULT_QUEUES = { default: 1 };

export function resolveServerOptions(options: ServerOptions): ResolvedServerOptions {
  requireOptions('Server', options, OPTIONS);
  const { broker, concurrency = availableParallelism(), queues = DEFAULT_QUEUES } = options;
  const { strictPriority = false, janitorBatchSize = 100, maxRecoveries = 3 } = options;
  const { groupMaxSize, baseContext = null, logger = silentLogger, metrics } = options;
  requireBroker('options.broker', broker);
  requireIntegerAtLeast('options.concurrency', 1, concurrency);
  requireQueues(queues);
  requireBoolean('options.strictPriority', strictPriority);
  if (groupMaxSize !== undefined) requireIntegerAtLeast('options.groupMaxSize', 1, groupMaxSize);
  requireIntegerAtLeast('options.janitorBatchSize', 1, janitorBatchSize);
  requireIntegerAtLeast('options.maxRecoveries', 0, maxRecoveries);
  if (baseContext !== null) requireObject('options.baseContext', baseContext);
  requireLogger('options.logger', logger);
  if (metrics !== undefined) requireMetrics('options.metrics', metrics);
  return {
    ...{ broker, concurrency, strictPriority, janitorBatchSize, maxRecoveries, baseContext, metrics },
    ...callbacksOf(options),
    ...durationsOf(options),
    queues: { ...queues },
    queueNames: Object.keys(queues),
    groupMaxSize: groupMaxSize ?? 0,
    logger: guardedLogger(logger),
  };
}

type Callbacks = 'retryDelayMs' | 'isFailure' | 'errorHandler' | 'healthCheck' | 'groupAggregator';

function callbacksOf(options: ServerOptions): Pick<ResolvedServerOptions, Callbacks> {
  const {
    retryDelayMs = defaultRetryDelayMs,
    isFailure,
    errorHandler,
    healthCheck,
    groupAggregator,
  } = options;
  const callbacks = { retryDelayMs, isFailure, errorHandler, healthCheck, groupAggregator };
  for (const [name, callback] of Object.entries(callbacks)) {
    if (callback !== undefined) requireFunction(`options.${name}`, callback);
  }
  return callbacks;
}

/** Default and minimum of each duration, in milliseconds. */
const DURATIONS = {
  shutdownTimeoutMs: [8_000, 0],
  graceMs: [1_000, 0],
  pollIntervalMs: [1_000, 1],
  delayedTaskCheckIntervalMs: [5_000, 1],
  healthCheckIntervalMs: [15_000, 1],
  groupGracePeriodMs: [60_000, 1],
  groupMaxDelayMs: [0, 0],
  janitorIntervalMs: [8_000, 1],
  leaseMs: [30_000, MIN_LEASE_MS],
} as const;

type Duration = keyof typeof DURATIONS;

function durationsOf(options: ServerOptions): Pick<ResolvedServerOptions, Duration> {
  const durations: Partial<Record<Duration, number>> = {};
  for (const name of Object.keys(DURATIONS) as Duration[]) {
    const [byDefault, least] = DURATIONS[name];
    const value = options[name] ?? byDefault;
    requireFiniteNumber(`options.${name}`, value);
    if (value < least) throw outOfRange(`options.${name}`, `at least ${least} ms`, value);
    durations[name] = value;
  }
  return durations as Record<Duration, number>;
}

function requireQueues(queues: Readonly<Record<string, number>>): void {
  requireObject('options.queues', queues);
  const entries = Object.entries(queues);
  if (entries.length === 0) throw wrongValue('options.queues', 'an object with a queue', queues);
  for (const [name, priority] of entries) {
    requireQueueName('a name of options.queues', name);
    requireIntegerAtLeast(`options.queues.${name}`, 1, priority);
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
    if (typeof delayMs === 'number' && delayMs >= 0) return Math.min(delayMs, LONGEST_MS);
    if (typeof delayMs === 'number' && delayMs < 0) return 0;
  } catch (thrown) {
    reportUncaught(thrown);
  }
  return defaultRetryDelayMs(retried);
}
