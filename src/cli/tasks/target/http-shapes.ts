import type { DailyStats, SchedulerEnqueueEvent } from '../../../tasks/inspector-info.ts';
import type { TaskState } from '../../../tasks/task-state.ts';
import type { Content, EntryView, QueueView, ServerView, TaskView, WorkerView } from './tasks-target.ts';

/* What the HTTP API says, as it is written in its JSON. */

export interface QueueJson {
  readonly queue: string;
  readonly memory_usage_bytes: number;
  readonly size: number;
  readonly groups: number;
  readonly latency_msec: number;
  readonly active: number;
  readonly pending: number;
  readonly aggregating: number;
  readonly scheduled: number;
  readonly retry: number;
  readonly archived: number;
  readonly completed: number;
  readonly processed: number;
  readonly failed: number;
  readonly paused: boolean;
  readonly timestamp: string;
}

export interface DayJson {
  readonly queue: string;
  readonly date: string;
  readonly processed: number;
  readonly failed: number;
}

/** What is not in all lists may be missing. */
export interface TaskJson {
  readonly id: string;
  readonly type: string;
  readonly payload: string;
  readonly queue: string;
  readonly max_retry: number;
  readonly retried: number;
  readonly error_message: string;
  readonly state?: TaskState;
  readonly group?: string;
  readonly is_orphaned?: boolean;
  readonly last_failed_at?: string;
  readonly next_process_at?: string;
  readonly completed_at?: string;
  readonly deadline?: string;
  readonly timeout_seconds?: number;
  readonly result?: string;
}

export interface ServerJson {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly concurrency: number;
  readonly queue_priorities: Readonly<Record<string, number>>;
  readonly strict_priority_enabled: boolean;
  readonly start_time: string;
  readonly status: ServerView['status'];
  readonly active_workers: readonly WorkerJson[] | null;
}

interface WorkerJson {
  readonly task_id: string;
  readonly queue: string;
  readonly task_type: string;
  readonly task_payload: string;
  readonly start_time: string;
}

export interface EntryJson {
  readonly id: string;
  readonly spec: string;
  readonly task_type: string;
  readonly task_payload: string;
  readonly options: readonly string[] | null;
  readonly next_enqueue_at: string;
  readonly prev_enqueue_at?: string;
}

export interface EventJson {
  readonly task_id: string;
  readonly enqueued_at: string;
}

export function queueView(json: QueueJson): QueueView {
  const { queue, size, groups, active, pending, aggregating, scheduled, retry, archived, completed } = json;
  return {
    ...{ queue, size, groups, active, pending, aggregating, scheduled, retry, archived, completed },
    memoryUsageBytes: json.memory_usage_bytes,
    latencyMs: json.latency_msec,
    processed: json.processed,
    failed: json.failed,
    paused: json.paused,
    timestamp: new Date(json.timestamp),
  };
}

export function dayView({ queue, date, processed, failed }: DayJson): DailyStats {
  return { queue, date: new Date(`${date}T00:00:00Z`), processed, failed };
}

/** @param state - of the list that it is in. */
export function taskView(json: TaskJson, state: TaskState): TaskView {
  const { id, type, queue, retried, group } = json;
  return {
    ...{ id, type, queue, retried },
    state: json.state ?? state,
    payload: { shown: json.payload },
    maxRetry: json.max_retry,
    lastError: json.error_message,
    ...(group === undefined ? {} : { group: group === '' ? undefined : group }),
    ...(json.is_orphaned === undefined ? {} : { isOrphaned: json.is_orphaned }),
    ...timeOf('lastFailedAt', json.last_failed_at),
    ...timeOf('nextProcessAt', json.next_process_at),
    ...timeOf('completedAt', json.completed_at),
    ...timeOf('deadline', json.deadline),
    ...(json.timeout_seconds === undefined ? {} : { timeoutMs: json.timeout_seconds * 1_000 }),
    ...(json.result === undefined ? {} : { result: resultOf(json.result) }),
  };
}

export function serverView(json: ServerJson): ServerView {
  const { id, host, pid, concurrency, status } = json;
  return {
    ...{ id, host, pid, concurrency, status },
    queues: json.queue_priorities,
    strictPriority: json.strict_priority_enabled,
    startedAt: new Date(json.start_time),
    activeWorkers: (json.active_workers ?? []).map(workerView),
  };
}

function workerView(json: WorkerJson): WorkerView {
  return {
    taskId: json.task_id,
    taskType: json.task_type,
    taskPayload: { shown: json.task_payload },
    queue: json.queue,
    startedAt: new Date(json.start_time),
  };
}

export function entryView(json: EntryJson): EntryView {
  return {
    id: json.id,
    spec: json.spec,
    taskType: json.task_type,
    taskPayload: { shown: json.task_payload },
    options: json.options ?? [],
    nextEnqueueAt: dateOf(json.next_enqueue_at),
    prevEnqueueAt: dateOf(json.prev_enqueue_at),
  };
}

export function eventView({ task_id: taskId, enqueued_at: at }: EventJson): SchedulerEnqueueEvent {
  return { taskId, enqueuedAt: new Date(at) };
}

/** A handler that has written nothing, and one that has written an empty result, look the same. */
function resultOf(shown: string): Content | undefined {
  return shown === '' ? undefined : { shown };
}

type TimeName = 'lastFailedAt' | 'nextProcessAt' | 'completedAt' | 'deadline';

function timeOf(name: TimeName, text: string | undefined): Partial<Pick<TaskView, TimeName>> {
  return text === undefined ? {} : { [name]: dateOf(text) };
}

/** What is not set is empty, a dash, or the zero time of Go. */
function dateOf(text: string | undefined): Date | undefined {
  const date = new Date(text ?? '');
  return Number.isNaN(date.getTime()) || date.getUTCFullYear() <= 1 ? undefined : date;
}
