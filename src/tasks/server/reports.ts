import type { EventEmitter } from 'node:events';
import { guarded } from '../../core/report-uncaught.ts';
import { duration, gauges } from '../../metrics/measure.ts';
import type { MetricsProvider } from '../../metrics/provider.ts';
import type { CancelOutcome } from '../broker/broker.ts';
import { emit } from '../reporting.ts';
import type { TaskMessage } from '../task-options.ts';
import type { ReceivedTask, TaskContext } from '../handler.ts';
import { MessageTask, type RunTable, type TaskRun } from './run.ts';
import type { ResolvedServerOptions } from './server-options.ts';

/** Event about a run of a task. */
export interface TaskEvent
  extends Pick<ReceivedTask, 'type'>, Pick<TaskContext, 'taskId' | 'queue' | 'retryCount' | 'maxRetry'> {
  /** The task, as its handler receives it. */
  readonly task: ReceivedTask;
}

/** Event about a run that has ended. */
export interface TaskOverEvent extends TaskEvent {
  /** Time from the start of the run until its handler settled, or until the run was given up. */
  readonly durationMs: number;
}

/** Event about a run that has ended without success. */
export interface TaskFailedEvent extends TaskOverEvent {
  /** What the handler has thrown, or the reason of the interruption. */
  readonly error: unknown;
}

/** Event about a run whose task is retried. */
export interface TaskRetriedEvent extends TaskFailedEvent {
  /** When the task runs again. */
  readonly retryAt: Date;
  /** Whether the run has counted as one of the task's retries. */
  readonly isFailure: boolean;
}

/** Event about a run that was cancelled. */
export interface TaskCancelledEvent extends TaskFailedEvent {
  /** What has become of the task. */
  readonly outcome: CancelOutcome;
}

/** Event about a task that has lost its worker: its process has died, or it has lost its lease. */
export interface TaskRecoveredEvent extends TaskEvent {
  /** How many workers the task has lost, this one included. */
  readonly recoveries: number;
  /** When the task runs again; undefined if it was archived, because `recoveries` is greater than `maxRecoveries`. */
  readonly retryAt: Date | undefined;
}

/** Event about a group that was not aggregated. */
export interface GroupFailedEvent {
  /** Queue of the group. */
  readonly queue: string;
  /** Name of the group. */
  readonly group: string;
  /** The tasks that were passed to `groupAggregator`: they return to their group two minutes later. */
  readonly tasks: readonly ReceivedTask[];
  /** Why it was not aggregated. */
  readonly error: unknown;
}

/**
 * Events of a server. Each `started` is followed by exactly one of `completed`, `retried`, `archived`, `cancelled`, `released` and
 * `lost`, as soon as the broker has recorded the outcome of the run.
 */
export interface ServerEvents {
  /** A run begins: its handler is about to be called, unless the deadline of the task has passed. */
  started: [event: TaskEvent];
  /** The task is done, or was revoked. */
  completed: [event: TaskOverEvent];
  /** The task has failed, and is retried. */
  retried: [event: TaskRetriedEvent];
  /** The task has failed for the last time. */
  archived: [event: TaskFailedEvent];
  /** The run was cancelled. */
  cancelled: [event: TaskCancelledEvent];
  /** The run was interrupted by the shutdown, and its task is back at the head of its queue. */
  released: [event: TaskFailedEvent];
  /** The lease was lost, so no outcome was written; or the outcome could not be written before the lease was over. */
  lost: [event: TaskFailedEvent];
  /** This server has found a task that has lost its worker, in any process. It is retried, or archived after too many recoveries. */
  recovered: [event: TaskRecoveredEvent];
  /**
   * `groupAggregator` has thrown, has not settled within two minutes (`ERR_OPERATION_EXPIRED`) or before the server was shut down
   * (`ERR_SERVER_CLOSED`), or the task it returned was refused. It will be called again.
   */
  groupFailed: [event: GroupFailedEvent];
}

/** How a run ends. */
export interface Ending {
  readonly kind: 'completed' | 'revoked' | 'retried' | 'archived' | 'discarded' | 'released' | 'lost';
  readonly error: unknown;
  /** Whether the error counts as one of the task's retries. */
  readonly isFailure: boolean;
  /** When the task is retried, in wall-clock milliseconds; 0 if it is not. */
  readonly atMs: number;
  /** What has become of the task, if the run was cancelled. */
  readonly cancelOutcome: CancelOutcome | undefined;
}

/** Reports what a server does: to the listeners of its events, to its metrics, and to `healthCheck`. Never throws. */
export class Reports {
  readonly #emitter: EventEmitter<ServerEvents>;
  readonly #metrics: RunMetrics | undefined;
  readonly #healthCheck: ((error: unknown) => void) | undefined;

  constructor(
    emitter: EventEmitter<ServerEvents>,
    { metrics, healthCheck, queueNames }: ResolvedServerOptions,
    runs: RunTable,
  ) {
    this.#emitter = emitter;
    this.#metrics = metrics === undefined ? undefined : new RunMetrics(metrics, queueNames, runs);
    this.#healthCheck = healthCheck;
  }

  started(run: TaskRun): void {
    if (this.#emitter.listenerCount('started') > 0)
      emit(this.#emitter, 'started', eventOf(run.leased.message, run.task));
  }

  /** @param endedAtMs - when the handler settled, or the run was given up; on the monotonic clock. */
  ended(run: TaskRun, ending: Ending, endedAtMs: number): void {
    if (!run.hasStarted) return;
    const durationMs = endedAtMs - run.startedAtMs;
    const name = eventNameOf(ending);
    this.#metrics?.ended(run.leased.message, name, durationMs);
    if (this.#emitter.listenerCount(name) === 0) return;
    const { error, isFailure, atMs, cancelOutcome } = ending;
    const over = overEventOf(run, durationMs);
    if (name === 'completed') emit(this.#emitter, name, over);
    else if (name === 'retried') {
      emit(this.#emitter, name, { ...over, error, retryAt: new Date(atMs), isFailure });
    } else if (name === 'cancelled') {
      emit(this.#emitter, name, { ...over, error, outcome: cancelOutcome ?? 'retry' });
    } else emit(this.#emitter, name, { ...over, error });
  }

  recovered(message: TaskMessage, recoveries: number, retryAt: Date | undefined): void {
    emit(this.#emitter, 'recovered', {
      ...eventOf(message, new MessageTask(message)),
      recoveries,
      retryAt,
    });
  }

  groupFailed(event: GroupFailedEvent): void {
    emit(this.#emitter, 'groupFailed', event);
  }

  /** @param error - undefined if the broker answers. */
  health(error: unknown): void {
    guarded(() => {
      this.#healthCheck?.(error);
    });
  }

  /** Removes the gauges, which would otherwise keep the server in memory. */
  close(): void {
    this.#metrics?.remove();
  }
}

type EndedEvent = Exclude<keyof ServerEvents, 'started' | 'recovered' | 'groupFailed'>;

function eventNameOf({ kind, cancelOutcome }: Ending): EndedEvent {
  if (cancelOutcome !== undefined || kind === 'discarded') return 'cancelled';
  return kind === 'revoked' ? 'completed' : kind;
}

function eventOf({ id, queue, type, retried, maxRetry }: TaskMessage, task: ReceivedTask): TaskEvent {
  return { task, taskId: id, queue, type, retryCount: retried, maxRetry };
}

/** Names each field: a spread of `eventOf` takes longer than the rest of a report. */
function overEventOf({ leased, task }: TaskRun, durationMs: number): TaskOverEvent {
  const { id, queue, type, retried, maxRetry } = leased.message;
  return { task, taskId: id, queue, type, retryCount: retried, maxRetry, durationMs };
}

/** In seconds: from a quick query to half an hour, which is asynq's default timeout. */
const BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800];

/** Observes a duration in milliseconds. */
type Observe = (durationMs: number) => void;

class RunMetrics {
  readonly #provider: MetricsProvider;
  /** By queue, type and outcome; each is created at its first observation. */
  readonly #durations = new Map<string, Map<string, Map<string, Observe>>>();
  readonly remove: () => void;

  constructor(provider: MetricsProvider, queues: readonly string[], runs: RunTable) {
    this.#provider = provider;
    const help = 'Tasks that the servers of this process are processing.';
    const inProgress = (queue: string): number =>
      runs.list().filter(({ leased }) => leased.message.queue === queue).length;
    this.remove = gauges(
      provider,
      queues.map((queue) => ['escapement_tasks_in_progress', help, () => inProgress(queue), { queue }]),
    );
  }

  ended({ queue, type }: TaskMessage, outcome: string, durationMs: number): void {
    guarded(() => {
      this.#duration(queue, type, outcome)(durationMs);
    });
  }

  #duration(queue: string, type: string, outcome: string): Observe {
    const byType = childOf(this.#durations, queue, () => new Map<string, Map<string, Observe>>());
    const byOutcome = childOf(byType, type, () => new Map<string, Observe>());
    return childOf(byOutcome, outcome, () =>
      duration(
        this.#provider,
        'escapement_task_duration_seconds',
        'Duration of the runs of tasks, by outcome.',
        BUCKETS,
        { queue, type, outcome },
      ),
    );
  }
}

function childOf<V>(parent: Map<string, V>, key: string, make: () => V): V {
  let child = parent.get(key);
  if (child === undefined) {
    child = make();
    parent.set(key, child);
  }
  return child;
}
