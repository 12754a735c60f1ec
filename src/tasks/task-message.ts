import { requireQueueName } from './require-text.ts';
import { requireDuration } from './task-options.ts';

/**
 * A task as a broker stores it. Immutable: a change is written as another message.
 *
 * Times are wall-clock milliseconds since the epoch; 0 means never, none or not yet. A broker that stores whole seconds
 * rounds up: a time, so that no task is due early, and a duration, so that none becomes 0.
 */
export interface TaskMessage {
  /** Unique in its queue. */
  readonly id: string;
  /** Type, by which a server finds the handler. */
  readonly type: string;
  /** Name of the queue. */
  readonly queue: string;
  /** Payload; empty if there is none. */
  readonly payload: Uint8Array;
  /** Headers, which the handler receives. */
  readonly headers: Readonly<Record<string, string>>;
  /** Maximum number of retries: the task runs at most once more than that. */
  readonly maxRetry: number;
  /** Number of retries so far. */
  readonly retried: number;
  /** Error message of the last failure; empty if there is none. */
  readonly lastError: string;
  /** When it last failed. */
  readonly lastFailedAtMs: number;
  /** Maximum duration of a run, in milliseconds; 0 for no limit. */
  readonly timeoutMs: number;
  /** When the last run must end. */
  readonly deadlineMs: number;
  /** Name of the unique lock, which no two tasks hold at once; empty if there is none. */
  readonly uniqueKey: string;
  /** How long the completed task is kept, in milliseconds; 0 if it is removed. */
  readonly retentionMs: number;
  /** When it was completed. */
  readonly completedAtMs: number;
  /** Name of the group; empty if there is none. */
  readonly group: string;
}

/** Returns the message of a task that is removed when it is completed. */
export function withoutRetention(message: TaskMessage): TaskMessage {
  return { ...message, retentionMs: 0 };
}

/** Whether the task is kept when it is completed. */
export function isRetained({ retentionMs }: TaskMessage): boolean {
  return retentionMs > 0;
}

/** Returns when a task is removed that is completed now, in wall-clock milliseconds. */
export function retainedUntilMs({ retentionMs }: Pick<TaskMessage, 'retentionMs'>, nowMs: number): number {
  return nowMs + retentionMs;
}

/** @throws TypeError or RangeError - the name of the queue, or a time, is not valid. */
export function requireMessage(message: TaskMessage): void {
  requireQueueName('task.message.queue', message.queue);
  requireDuration('message.retentionMs', message.retentionMs);
}
