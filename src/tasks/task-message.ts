import { createHash } from 'node:crypto';
import type { NewTask } from './broker/broker-types.ts';
import { randomId } from './random-id.ts';
import { requireQueueName } from './require-text.ts';
import {
  mergeTaskOptions,
  NO_TASK_OPTIONS,
  requireDuration,
  TASK_OPTIONS,
  type TaskOptions,
} from './task-options.ts';
import type { Task } from './task.ts';

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

const NO_HEADERS: TaskMessage['headers'] = Object.freeze({});

/** A message without content. */
export const BLANK_MESSAGE: TaskMessage = {
  id: '',
  type: '',
  queue: '',
  payload: new Uint8Array(0),
  headers: NO_HEADERS,
  maxRetry: 0,
  retried: 0,
  lastError: '',
  lastFailedAtMs: 0,
  timeoutMs: 0,
  deadlineMs: 0,
  uniqueKey: '',
  retentionMs: 0,
  completedAtMs: 0,
  group: '',
};

/** Returns the task to add to a broker. Options in `over` override those of the task. Both have been checked. */
export function newTaskOf(task: Task, over: TaskOptions, wallNowMs: number): NewTask {
  const options = optionsOf(task.options, over);
  const {
    deadline,
    headers,
    queue = TASK_OPTIONS.queue[1],
    uniqueTtlMs = TASK_OPTIONS.uniqueTtlMs[1],
  } = options;
  return {
    processAtMs: dueTimeOf(options, wallNowMs),
    uniqueTtlMs,
    message: {
      id: options.taskId ?? randomId(),
      type: task.type,
      queue,
      payload: task.payload,
      // Frozen: the handler receives the same object in each run.
      headers: headers === undefined ? NO_HEADERS : Object.freeze({ ...headers }),
      maxRetry: options.maxRetry ?? TASK_OPTIONS.maxRetry[1],
      retried: 0,
      lastError: '',
      lastFailedAtMs: 0,
      timeoutMs: options.timeoutMs ?? (deadline === undefined ? TASK_OPTIONS.timeoutMs[1] : 0),
      deadlineMs: Number(deadline ?? TASK_OPTIONS.deadline[1]),
      uniqueKey: uniqueTtlMs > 0 ? uniqueKeyOf(queue, task) : '',
      retentionMs: options.retentionMs ?? TASK_OPTIONS.retentionMs[1],
      completedAtMs: 0,
      group: options.group ?? TASK_OPTIONS.group[1],
    },
  };
}

/** Mostly one of them is empty, and nothing has to be merged. */
function optionsOf(base: TaskOptions, over: TaskOptions): TaskOptions {
  if (over === NO_TASK_OPTIONS) return base;
  return base === NO_TASK_OPTIONS ? over : mergeTaskOptions(base, over);
}

function dueTimeOf({ processAt, processInMs }: TaskOptions, wallNowMs: number): number {
  if (processInMs !== undefined) return processInMs > 0 ? wallNowMs + processInMs : 0;
  return processAt === undefined ? 0 : Number(processAt);
}

/** As asynq: two tasks of a queue are duplicates if their types and the bytes of their payloads are equal. */
function uniqueKeyOf(queue: string, { type, payload, hasPayload }: Task): string {
  const digest = hasPayload ? createHash('md5').update(payload).digest('hex') : '';
  return `asynq:{${queue}}:unique:${type}:${digest}`;
}

/**
 * Checks a task that a broker is to add: here, and not when a value is used, because the change would then be half done.
 *
 * @throws TypeError or RangeError - the name of the queue or one of the times is not valid.
 */
export function requireNewTask({ message, processAtMs, uniqueTtlMs }: NewTask): void {
  requireQueueName('task.message.queue', message.queue);
  requireDuration('processAtMs', processAtMs);
  requireDuration('uniqueTtlMs', uniqueTtlMs);
  requireDuration('message.retentionMs', message.retentionMs);
}

/** Returns whether the task is kept after its completion. */
export function isRetained({ retentionMs }: Pick<TaskMessage, 'retentionMs'>): boolean {
  return retentionMs > 0;
}

/** Returns when a task that is completed at that time is removed. */
export function retainedUntilMs(
  { retentionMs }: Pick<TaskMessage, 'retentionMs'>,
  completedAtMs: number,
): number {
  return completedAtMs + retentionMs;
}

/** Returns the message of a task that is removed when it is completed. */
export function withoutRetention(message: TaskMessage): TaskMessage {
  return { ...message, retentionMs: 0 };
}
