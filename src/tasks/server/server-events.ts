import type { CancelOutcome } from '../broker/broker.ts';
import type { ReceivedTask } from './received-task.ts';

/** A run of a task, as its server tells of it. */
export interface TaskEvent {
  readonly task: ReceivedTask;
  readonly taskId: string;
  readonly queue: string;
  readonly type: string;
  /** Failures before this run. */
  readonly retryCount: number;
  readonly maxRetry: number;
}

/** … when it is over. */
export interface TaskOverEvent extends TaskEvent {
  readonly durationMs: number;
}

/** … and was not done. */
export interface TaskFailedEvent extends TaskOverEvent {
  readonly error: unknown;
}

/** … and is tried again. */
export interface TaskRetriedEvent extends TaskFailedEvent {
  readonly retryAt: Date;
  /** Whether it has counted as one of its retries. */
  readonly isFailure: boolean;
}

/** … and was cancelled while it ran. */
export interface TaskCancelledEvent extends TaskFailedEvent {
  /** What has become of it. */
  readonly outcome: CancelOutcome;
}

/** A group could not be made into a task. */
export interface GroupFailedEvent {
  /** Where the group is. */
  readonly queue: string;
  /** Its name. */
  readonly group: string;
  /** Those that were given to `groupAggregator`: they are back in their group two minutes later. */
  readonly tasks: readonly ReceivedTask[];
  /** Why. */
  readonly error: unknown;
}

/**
 * What a server tells of its runs. After each `started` there is exactly one of the others: once the broker has taken
 * what became of the run.
 */
export interface ServerEvents {
  started: [event: TaskEvent];
  /** Also of a task that was revoked. */
  completed: [event: TaskOverEvent];
  retried: [event: TaskRetriedEvent];
  archived: [event: TaskFailedEvent];
  cancelled: [event: TaskCancelledEvent];
  /** Interrupted by the shutdown, and back at the head of its queue. */
  released: [event: TaskFailedEvent];
  /** Its lease was lost, so nothing was written; or what was to be written was not until its lease was over. */
  lost: [event: TaskFailedEvent];
  /** `groupAggregator` has thrown, or what it made was not taken. It will be called again. */
  groupFailed: [event: GroupFailedEvent];
}
