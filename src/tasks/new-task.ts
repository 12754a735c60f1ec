import { createHash } from 'node:crypto';
import type { NewTask } from './broker/broker-types.ts';
import { randomId } from './random-id.ts';
import { hasDueTime, mergeHeaders, TASK_OPTIONS, type TaskOptions } from './task-options.ts';
import type { Task } from './task.ts';

/** Returns the task to add to a broker. Options in `over` override those of the task. Both have been checked. */
export function newTaskOf(task: Task, over: TaskOptions, wallNowMs: number): NewTask {
  const base = task.options;
  const queue = over.queue ?? base.queue ?? TASK_OPTIONS.queue[1];
  const deadline = over.deadline ?? base.deadline;
  const uniqueTtlMs = over.uniqueTtlMs ?? base.uniqueTtlMs ?? TASK_OPTIONS.uniqueTtlMs[1];
  return {
    processAtMs: dueTimeOf(hasDueTime(over) ? over : base, wallNowMs),
    uniqueTtlMs,
    message: {
      id: over.taskId ?? base.taskId ?? randomId(),
      type: task.type,
      queue,
      payload: task.payload,
      headers: mergeHeaders(base, over),
      maxRetry: over.maxRetry ?? base.maxRetry ?? TASK_OPTIONS.maxRetry[1],
      retried: 0,
      lastError: '',
      lastFailedAtMs: 0,
      timeoutMs: over.timeoutMs ?? base.timeoutMs ?? (deadline === undefined ? TASK_OPTIONS.timeoutMs[1] : 0),
      deadlineMs: Number(deadline ?? TASK_OPTIONS.deadline[1]),
      uniqueKey: uniqueTtlMs > 0 ? uniqueKeyOf(queue, task) : '',
      retentionMs: over.retentionMs ?? base.retentionMs ?? TASK_OPTIONS.retentionMs[1],
      completedAtMs: 0,
      group: over.group ?? base.group ?? TASK_OPTIONS.group[1],
    },
  };
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
