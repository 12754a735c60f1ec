import type { CancelOutcome } from '../broker/broker.ts';
import type { ReceivedTask } from './received-task.ts';

/** A run of a task, as its server tells of it. */
export interface TaskEvent {
  /** As its handler gets it. */
  readonly task: ReceivedTask;
  /** Unique in its queue. */
  readonly taskId: string;
  /** Where the task is from. */
  readonly queue: string;
  /** Of the task. */
  readonly type: string;
  /** Failures before this run. */
  readonly retryCount: number;
  /** Failures that are tried again. */
  readonly maxRetry: number;
}

/** … when it is over. */
export interface TaskOverEvent extends TaskEvent {
  /** From when it was started until its handler had settled, or was given up. */
  readonly durationMs: number;
}

/** … and was not done. */
export interface TaskFailedEvent extends TaskOverEvent {
  /** What the handler has thrown, or why the run was interrupted. */
  readonly error: unknown;
}

/** … and is tried again. */
export interface TaskRetriedEvent extends TaskFailedEvent {
  /** When it runs again. */
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
  /** A handler is about to be called. */
  started: [event: TaskEvent];
  /** Also of a task that was revoked. */
  completed: [event: TaskOverEvent];
  /** It has failed, and is tried again. */
  retried: [event: TaskRetriedEvent];
  /** It has failed for the last time. */
  archived: [event: TaskFailedEvent];
  /** Somebody has cancelled it. */
  cancelled: [event: TaskCancelledEvent];
  /** Interrupted by the shutdown, and back at the head of its queue. */
  released: [event: TaskFailedEvent];
  /** Its lease was lost, so nothing was written; or what was to be written was not until its lease was over. */
  lost: [event: TaskFailedEvent];
  /**
   * `groupAggregator` has thrown, has not settled within two minutes (`ERR_OPERATION_EXPIRED`) or before the server was shut down
   * (`ERR_SERVER_CLOSED`), or what it made was not taken. It will be called again.
   */
  groupFailed: [event: GroupFailedEvent];
}
