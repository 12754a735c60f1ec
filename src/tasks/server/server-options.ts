import { availableParallelism } from 'node:os';
import { outOfRange, wrongType, wrongValue } from '../../core/errors.ts';
import {
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
import { requireQueueName } from '../require-text.ts';
import type { Task } from '../task.ts';
import { guardedLogger, requireLogger, silentLogger, type Logger } from './logger.ts';
import type { ReceivedTask } from './received-task.ts';
import { defaultRetryDelayMs, type RetryDelay } from './retry-delay.ts';
import type { TaskContext } from './task-context.ts';

/**
 * Makes one task of those of a group, oldest first. It has two minutes. If it takes longer or throws, the tasks return to their
 * group then (on Redis within another minute), its answer is dropped, and it is called again, also while the call before still
 * hangs. At most three calls are waited for at once.
 */
export type GroupAggregator = (group: string, tasks: readonly ReceivedTask[]) => Task | Promise<Task>;

/** Told of every error of a handler, and of every run that was interrupted, but not of those that shutting down has. */
export type TaskErrorHandler = (error: unknown, task: ReceivedTask, context: TaskContext) => void;

/** What a server is made from. All is checked then; a wrong option is a `TypeError` or `RangeError`. */
export interface ServerOptions {
  /** Where tasks come from. The server does not close it. */
  readonly broker: Broker;
  /** Tasks in work at once: an integer of at least 1. @default os.availableParallelism() */
  readonly concurrency?: number | undefined;
  /**
   * The queues that are served, with their priorities: integers of at least 1.
   *
   * @default { default: 1 }
   * @example { critical: 6, default: 3, low: 1 } // six tenths, three tenths and one tenth of the tasks, while all have some
   */
  readonly queues?: Readonly<Record<string, number>> | undefined;
  /** Whether nothing is taken from a queue while one of higher priority has something. @default false */
  readonly strictPriority?: boolean | undefined;
  /**
   * How long to wait before a task is tried again, in milliseconds.
   *
   * @default asynq's: n⁴ + 15 + (0 … 29) · (n + 1) seconds after n earlier failures
   * @example () => 1_000
   */
  readonly retryDelayMs?: RetryDelay | undefined;
  /**
   * Whether an error counts: as a failure, and as one of the task's retries. One that does not is always tried again.
   * It is asked first, before retries are counted.
   *
   * @default every error counts
   */
  readonly isFailure?: ((error: unknown) => boolean) | undefined;
  /** @default none */
  readonly errorHandler?: TaskErrorHandler | undefined;
  /** How long `shutdown` waits for running tasks before it interrupts them, in milliseconds. @default 8_000 */
  readonly shutdownTimeoutMs?: number | undefined;
  /**
   * How long a handler has to settle after its signal has fired, in milliseconds; what it then says counts. After that the
   * run is given up, and its place is free, although the handler may still run. @default 1_000
   */
  readonly graceMs?: number | undefined;
  /** How often an empty broker is asked again, in milliseconds; not one that is self-driven. @default 1_000 */
  readonly pollIntervalMs?: number | undefined;
  /** How often tasks are looked for that are due, in milliseconds; not with a self-driven broker. @default 5_000 */
  readonly delayedTaskCheckIntervalMs?: number | undefined;
  /** Told, every so often, whether the broker answers; and at once if it does not when tasks are taken. @default none */
  readonly healthCheck?: ((error: unknown) => void) | undefined;
  /** @default 15_000 */
  readonly healthCheckIntervalMs?: number | undefined;
  /** Without one the groups of the queues are left alone. @default none */
  readonly groupAggregator?: GroupAggregator | undefined;
  /** A group is aggregated when nothing has come for that long, in milliseconds. @default 60_000 */
  readonly groupGracePeriodMs?: number | undefined;
  /** … or when its oldest task has waited for that long. @default any time */
  readonly groupMaxDelayMs?: number | undefined;
  /** … or when it has that many tasks: an integer of at least 1. @default any number */
  readonly groupMaxSize?: number | undefined;
  /** How often completed tasks are removed, in milliseconds; not with a self-driven broker. @default 8_000 */
  readonly janitorIntervalMs?: number | undefined;
  /** How many are removed at once: an integer of at least 1. @default 100 */
  readonly janitorBatchSize?: number | undefined;
  /**
   * How long a task stays ours without a sign of life, in milliseconds, at least 1000: that long after a crash somebody
   * else may have it. Renewed six times in that time. @default 30_000
   */
  readonly leaseMs?: number | undefined;
  /**
   * Whether a thread renews leases too, with a connection of its own: then a handler may hold the event loop for longer than
   * a lease. It renews none after the task's deadline and `graceMs`. The thread starts with the first task, and a server that
   * waits leaves it asleep. Only with a `RedisBroker` on the system's clock. If it cannot be had, the logger is warned.
   *
   * @default true
   */
  readonly leaseThread?: boolean | undefined;
  /** How often the worker of a task may be gone before the task is archived: an integer of at least 0. @default 3 */
  readonly maxRecoveries?: number | undefined;
  /** What handlers find in `context.values`. @default nothing */
  readonly baseContext?: Readonly<Record<string, unknown>> | undefined;
  /** A pino logger, or what has its methods. @default silent */
  readonly logger?: Logger | undefined;
  /** Gets `escapement_task_duration_seconds` and `escapement_tasks_in_progress`. @default none */
  readonly metrics?: MetricsProvider | undefined;
}

const OPTIONS: OptionNames<ServerOptions> = {
  ...{ broker: true, concurrency: true, queues: true, strictPriority: true },
  ...{ retryDelayMs: true, isFailure: true, errorHandler: true, maxRecoveries: true },
  ...{ shutdownTimeoutMs: true, graceMs: true, pollIntervalMs: true, delayedTaskCheckIntervalMs: true },
  ...{ healthCheck: true, healthCheckIntervalMs: true, leaseMs: true, leaseThread: true },
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
  readonly leaseThread: boolean;
  readonly maxRecoveries: number;
  readonly baseContext: Readonly<Record<string, unknown>> | null;
  readonly logger: Logger;
  readonly metrics: MetricsProvider | undefined;
}

/** A lease that is renewed more often than the network answers would be lost for nothing. */
const MIN_LEASE_MS = 1_000;

const DEFAULT_QUEUES = { default: 1 };

export function resolveServerOptions(options: ServerOptions): ResolvedServerOptions {
  requireOptions('Server', options, OPTIONS);
  const { broker, concurrency = availableParallelism(), queues = DEFAULT_QUEUES } = options;
  const { strictPriority = false, leaseThread = true, janitorBatchSize = 100, maxRecoveries = 3 } = options;
  const { groupMaxSize, baseContext = null, logger = silentLogger, metrics } = options;
  requireBroker('options.broker', broker);
  requireIntegerAtLeast('options.concurrency', 1, concurrency);
  requireQueues(queues);
  for (const [name, value] of Object.entries({ strictPriority, leaseThread })) {
    if (typeof value !== 'boolean') throw wrongType(`options.${name}`, 'a boolean', value);
  }
  if (groupMaxSize !== undefined) requireIntegerAtLeast('options.groupMaxSize', 1, groupMaxSize);
  requireIntegerAtLeast('options.janitorBatchSize', 1, janitorBatchSize);
  requireIntegerAtLeast('options.maxRecoveries', 0, maxRecoveries);
  if (baseContext !== null) requireObject('options.baseContext', baseContext);
  requireLogger('options.logger', logger);
  requireMetrics(metrics);
  return {
    ...{
      broker,
      concurrency,
      strictPriority,
      leaseThread,
      janitorBatchSize,
      maxRecoveries,
      baseContext,
      metrics,
    },
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

/** Every duration: what it is by default, and the least it can be, in milliseconds. */
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
