import type { NewTask } from './broker/broker.ts';
import { randomId } from './random-id.ts';
import { resolveTaskOptions, type TaskOptions } from './task-options.ts';
import type { Task } from './task.ts';
import { uniqueKeyOf } from './unique-key.ts';

/** What a broker is given for a task. Both options were required to be right. */
export function newTaskOf(task: Task, options: TaskOptions, wallNowMs: number): NewTask {
  const resolved = resolveTaskOptions(task.options, options, wallNowMs);
  const { queue, uniqueTtlMs, processAtMs } = resolved;
  return {
    processAtMs,
    uniqueTtlMs,
    message: {
      id: resolved.taskId ?? randomId(),
      type: task.type,
      queue,
      payload: task.payload,
      headers: resolved.headers,
      maxRetry: resolved.maxRetry,
      retried: 0,
      lastError: '',
      lastFailedAtMs: 0,
      timeoutMs: resolved.timeoutMs,
      deadlineMs: resolved.deadlineMs,
      uniqueKey: uniqueTtlMs > 0 ? uniqueKeyOf(queue, task) : '',
      retentionMs: resolved.retentionMs,
      completedAtMs: 0,
      group: resolved.group,
    },
  };
}
