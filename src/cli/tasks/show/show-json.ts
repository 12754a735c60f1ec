import type { DailyStats, SchedulerEnqueueEvent } from '../../../tasks/inspector-info.ts';
import type { EntryView, QueueView, ServerView, TaskView, WorkerView } from '../target/tasks-target.ts';
import { contentJson } from './show-content.ts';

/*
 * What `--json` promises. Names do not change; a time is text by RFC 3339; what there is none of is null, and what the
 * target does not know is left out.
 */

const TASK_FIELDS = [
  ...(['lastFailedAt', 'nextProcessAt', 'completedAt', 'timeoutMs', 'deadline', 'retentionMs'] as const),
  ...(['group', 'isOrphaned', 'progress', 'headers'] as const),
];

export function taskJson(task: TaskView): object {
  const { id, queue, type, state, maxRetry, retried, lastError } = task;
  return {
    ...{ id, queue, type, state },
    ...contentJson('payload', task.payload),
    ...{ maxRetry, retried, lastError },
    ...known(task, TASK_FIELDS),
    ...('result' in task ? contentJson('result', task.result) : {}),
  };
}

export function queueJson(view: QueueView): object {
  const { queue, paused, size, groups, latencyMs, memoryUsageBytes, processed, failed, timestamp } = view;
  return {
    ...{ queue, paused, size, groups },
    ...countsJson(view),
    ...{ latencyMs, memoryUsageBytes, processed, failed },
    ...known(view, ['processedTotal', 'failedTotal']),
    timestamp,
  };
}

/** Tasks by state. */
export function countsJson(view: Omit<QueueView, 'queue' | 'paused' | 'timestamp'>): object {
  const { active, pending, aggregating, scheduled, retry, archived, completed } = view;
  return { active, pending, aggregating, scheduled, retry, archived, completed };
}

export function dayJson({ date, processed, failed }: DailyStats): object {
  return { date: date.toISOString().slice(0, 'yyyy-mm-dd'.length), processed, failed };
}

export function serverJson(server: ServerView): object {
  const { id, host, pid, status, concurrency, queues, strictPriority, startedAt, activeWorkers } = server;
  return {
    ...{ id, host, pid, status, concurrency, queues, strictPriority, startedAt },
    activeWorkers: activeWorkers.map(workerJson),
  };
}

function workerJson(worker: WorkerView): object {
  const { taskId, taskType, queue, startedAt, taskPayload } = worker;
  return {
    ...{ taskId, taskType, queue },
    ...contentJson('taskPayload', taskPayload),
    startedAt,
    ...known(worker, ['deadline']),
  };
}

export function entryJson(entry: EntryView): object {
  const { id, spec, taskType, taskPayload, options, nextEnqueueAt, prevEnqueueAt } = entry;
  return {
    ...{ id, spec, taskType },
    ...contentJson('taskPayload', taskPayload),
    ...{ options, nextEnqueueAt: nextEnqueueAt ?? null, prevEnqueueAt: prevEnqueueAt ?? null },
  };
}

export function eventJson({ taskId, enqueuedAt }: SchedulerEnqueueEvent): object {
  return { taskId, enqueuedAt };
}

function known<V extends object>(view: V, names: readonly (keyof V)[]): object {
  const there = names.filter((name) => name in view);
  return Object.fromEntries(there.map((name) => [name, view[name] ?? null]));
}
