import { utcDay } from '../../core/units.ts';
import type { KeyStats } from '../broker/broker.ts';
import { formatGoDuration } from '../go-text.ts';
import {
  countsOf,
  type DailyStats,
  type QueueInfo,
  type SchedulerEnqueueEvent,
  type SchedulerEntryInfo,
  type ServerInfo,
  type TaskInfo,
  type WorkerInfo,
} from '../info.ts';
import { expiryMsOf } from '../task-options.ts';
import type { TaskChange, TaskState } from '../task-state.ts';

/*
 * Infos in the JSON of asynqmon's REST interface: `tasksHandler` writes it, and the command reads it back. The JSON has less than
 * the infos, and instead of the bytes of payloads and results only a text for people. So what is read back is a view: an info in
 * which some fields may be missing and bytes may be such a text.
 */

/** Bytes, or the text that the API shows of them: it may be cut short, or a note that they are not text. */
export type Content = Uint8Array | { readonly shown: string };

type NotOfAsynqmon = 'processedTotal' | 'failedTotal' | 'held' | 'runnableMs';

/** A queue; over the HTTP API without totals, and over asynqmon's own without what asynq does not have. */
export type QueueView = Omit<QueueInfo, NotOfAsynqmon> & Partial<Pick<QueueInfo, NotOfAsynqmon>>;

type Listed = 'id' | 'queue' | 'type' | 'state' | 'maxRetry' | 'retried' | 'lastError';

/** A task. Over the HTTP API it has the common fields and those of its list; more if it is read alone. */
export type TaskView = Pick<TaskInfo, Listed> &
  Partial<Omit<TaskInfo, Listed | 'payload' | 'result'>> & {
    readonly payload: Content;
    readonly result?: Content | undefined;
  };

/** A run; over the HTTP API without its deadline. */
export type WorkerView = Omit<WorkerInfo, 'taskPayload' | 'deadline'> &
  Partial<Pick<WorkerInfo, 'deadline'>> & { readonly taskPayload: Content };

export type ServerView = Omit<ServerInfo, 'activeWorkers'> & {
  readonly activeWorkers: readonly WorkerView[];
};

export type EntryView = Omit<SchedulerEntryInfo, 'taskPayload'> & { readonly taskPayload: Content };

/** How the handler shows bytes, and its time. */
export interface Presenter {
  readonly nowMs: number;
  showPayload(bytes: Uint8Array, taskType: string): string;
  showResult(bytes: Uint8Array, taskType: string): string;
}

/** The zero time of Go: asynqmon writes it for a time that is not set. */
const GO_ZERO_TIME = '0001-01-01T00:00:00Z';

/** asynqmon's text for the times of an active task that no server has announced. */
const UNKNOWN_TIME = '-';

/** Returns a time in RFC 3339 by UTC, or `otherwise` if it is not set. */
function writeTime(time: Date | undefined, otherwise = ''): string {
  return time === undefined || Number.isNaN(time.getTime()) ? otherwise : time.toISOString();
}

/** Reads {@link writeTime} back, whatever it wrote for a time that is not set. */
function readTime(text: string | undefined): Date | undefined {
  const date = new Date(text ?? '');
  return Number.isNaN(date.getTime()) || date.getUTCFullYear() <= 1 ? undefined : date;
}

// Queues.

/** Number of days in `/queues/{queue}`, as in asynqmon; `/queue_stats` has all that are kept. */
export const SHORT_HISTORY_DAYS = 10;

export interface AsynqmonQueue extends Pick<
  QueueInfo,
  'queue' | 'size' | 'groups' | 'processed' | 'failed' | 'paused' | TaskState
> {
  readonly memory_usage_bytes: number;
  readonly latency_msec: number;
  readonly display_latency: string;
  readonly succeeded: number;
  readonly timestamp: string;
  /** Ours, as are all that follow: asynqmon's server does not send them. */
  readonly runnable?: number;
  readonly runnable_msec?: number;
  readonly held?: QueueInfo['held'];
}

export interface DayJson extends Omit<DailyStats, 'date'> {
  readonly succeeded: number;
  readonly date: string;
}

export function queueToJson(info: QueueInfo): AsynqmonQueue {
  const { queue, size, groups, latencyMs, processed, failed, paused, timestamp } = info;
  return {
    queue,
    memory_usage_bytes: info.memoryUsageBytes,
    ...{ size, groups },
    latency_msec: Math.round(latencyMs),
    display_latency: formatGoDuration(Math.round(latencyMs / 10) * 10),
    ...countsOf(info),
    ...{ processed, succeeded: processed - failed, failed, paused },
    timestamp: timestamp.toISOString(),
    runnable: runnableOf(info),
    runnable_msec: Math.round(info.runnableMs),
    held: info.held,
  };
}

export function queueFromJson(json: AsynqmonQueue): QueueView {
  const { queue, paused, size, groups, processed, failed } = json;
  return {
    ...{ queue, paused, size, groups, ...countsOf(json) },
    latencyMs: json.latency_msec,
    memoryUsageBytes: json.memory_usage_bytes,
    ...(json.held !== undefined && { held: json.held }),
    ...(json.runnable_msec !== undefined && { runnableMs: json.runnable_msec }),
    ...{ processed, failed },
    timestamp: new Date(json.timestamp),
  };
}

/** Returns the number of tasks that a free worker could start. */
function runnableOf({ pending, held, paused }: QueueInfo): number {
  return paused ? 0 : Math.max(0, pending - held.concurrency - held.rate);
}

interface KeyJson extends Pick<KeyStats, 'key' | 'pending' | 'active'> {
  readonly held_by: KeyStats['heldBy'] | null;
  readonly again_in_msec: number | null;
}

export function keyToJson({ key, pending, active, heldBy, againInMs }: KeyStats): KeyJson {
  const again_in_msec = againInMs === undefined ? null : Math.ceil(againInMs);
  return { key, pending, active, held_by: heldBy ?? null, again_in_msec };
}

export function keyFromJson({ key, pending, active, ...json }: KeyJson): KeyStats {
  const [heldBy, againInMs] = [json.held_by ?? undefined, json.again_in_msec ?? undefined];
  return { key, pending, active, heldBy, againInMs };
}

export function dayToJson({ queue, processed, failed, date }: DailyStats): DayJson {
  return { queue, processed, succeeded: processed - failed, failed, date: utcDay(date.getTime()) };
}

// Tasks.

/** The common fields of a task, and those that only some lists have. */
export interface AsynqmonTask extends Pick<TaskInfo, 'id' | 'type' | 'queue' | 'retried'> {
  readonly payload: string;
  readonly max_retry: number;
  readonly error_message: string;
  readonly state?: TaskState;
  readonly group?: string;
  /** Ours: asynqmon's server does not send it. */
  readonly key?: string;
  readonly start_time?: string;
  readonly deadline?: string;
  readonly is_orphaned?: boolean;
  readonly last_failed_at?: string;
  readonly next_process_at?: string;
  readonly completed_at?: string;
  readonly timeout_seconds?: number;
  readonly result?: string;
  readonly ttl_seconds?: number;
}

type Write = (task: TaskInfo, by: Presenter, worker: WorkerInfo | undefined) => Partial<AsynqmonTask>;

const writeNextProcessAt: Write = ({ nextProcessAt }) => ({
  next_process_at: writeTime(nextProcessAt, GO_ZERO_TIME),
});

/** The fields that the list of a state has besides the common ones. */
const FIELDS_OF_LIST: Readonly<Record<TaskState, Write>> = {
  active: ({ isOrphaned }, _by, worker) => ({
    start_time: writeTime(worker?.startedAt, UNKNOWN_TIME),
    deadline: writeTime(worker?.deadline, UNKNOWN_TIME),
    is_orphaned: isOrphaned,
  }),
  pending: () => ({}),
  scheduled: writeNextProcessAt,
  retry: writeNextProcessAt,
  archived: ({ lastFailedAt }) => ({ last_failed_at: writeTime(lastFailedAt, GO_ZERO_TIME) }),
  completed: (task, by) => ({
    completed_at: writeTime(task.completedAt, GO_ZERO_TIME),
    result: writeResult(task, by),
    ttl_seconds: secondsToKeep(task, by),
  }),
  aggregating: ({ group = '' }) => ({ group }),
};

/** Returns a task as an entry of the list of its state. @param worker - the run of an active task, if it is known. */
export function listedTaskToJson(
  state: TaskState,
  task: TaskInfo,
  by: Presenter,
  worker?: WorkerInfo,
): AsynqmonTask {
  const { id, type, queue, retried } = task;
  return {
    ...{ id, type, payload: by.showPayload(task.payload, type), queue },
    ...{ max_retry: task.maxRetry, retried, error_message: task.lastError },
    ...FIELDS_OF_LIST[state](task, by, worker),
  };
}

export function taskToJson(task: TaskInfo, by: Presenter): AsynqmonTask {
  return {
    ...listedTaskToJson('pending', task, by),
    state: task.state,
    last_failed_at: writeTime(task.lastFailedAt),
    timeout_seconds: Math.ceil(task.timeoutMs / 1_000),
    deadline: writeTime(task.deadline),
    group: task.group ?? '',
    key: task.key,
    next_process_at: writeTime(task.nextProcessAt),
    completed_at: writeTime(task.completedAt),
    result: writeResult(task, by),
    ttl_seconds: secondsToKeep(task, by),
  };
}

/** @param state - state of the list that the task is in. */
export function taskFromJson(json: AsynqmonTask, state: TaskState): TaskView {
  const { id, type, queue, retried } = json;
  return {
    ...{ id, queue, type, state: json.state ?? state, payload: { shown: json.payload } },
    ...{ maxRetry: json.max_retry, retried, lastError: json.error_message },
    ...ifKnown(json.last_failed_at, (text) => ({ lastFailedAt: readTime(text) })),
    ...ifKnown(json.next_process_at, (text) => ({ nextProcessAt: readTime(text) })),
    ...ifKnown(json.completed_at, (text) => ({ completedAt: readTime(text) })),
    ...ifKnown(json.timeout_seconds, (seconds) => ({ timeoutMs: seconds * 1_000 })),
    ...ifKnown(json.deadline, (text) => ({ deadline: readTime(text) })),
    ...ifKnown(json.group, (group) => ({ group: group === '' ? undefined : group })),
    ...ifKnown(json.key, (key) => ({ key })),
    ...ifKnown(json.is_orphaned, (isOrphaned) => ({ isOrphaned })),
    // asynqmon's JSON has the same text for no result and for an empty one.
    ...ifKnown(json.result, (shown) => ({ result: shown === '' ? undefined : { shown } })),
  };
}

function ifKnown<T>(field: T | undefined, read: (field: T) => Partial<TaskView>): Partial<TaskView> {
  return field === undefined ? {} : read(field);
}

function writeResult({ result, type }: TaskInfo, by: Presenter): string {
  return result === undefined ? '' : by.showResult(result, type);
}

function secondsToKeep(info: TaskInfo, { nowMs }: Presenter): number {
  return Math.max(0, Math.floor(((expiryMsOf(info) ?? 0) - nowMs) / 1_000));
}

// Changes of tasks.

/** Names of results: the number of tasks that were changed, and the ids of a batch. */
export const CHANGE_RESULTS: Readonly<
  Record<TaskChange, readonly [all: string, done: string, failed: string]>
> = {
  delete: ['deleted', 'deleted_ids', 'failed_ids'],
  run: ['scheduled', 'pending_ids', 'error_ids'],
  archive: ['archived', 'archived_ids', 'error_ids'],
};

// Servers and schedulers.

interface AsynqmonServer extends Pick<ServerInfo, 'id' | 'host' | 'pid' | 'concurrency' | 'status'> {
  readonly queue_priorities: ServerInfo['queues'];
  readonly strict_priority_enabled: boolean;
  readonly start_time: string;
  readonly active_workers: readonly WorkerJson[] | null;
}

interface WorkerJson {
  readonly task_id: string;
  readonly queue: string;
  readonly task_type: string;
  readonly task_payload: string;
  readonly start_time: string;
}

export function serverToJson(server: ServerInfo, by: Presenter): AsynqmonServer {
  const { id, host, pid, concurrency, status } = server;
  return {
    ...{ id, host, pid, concurrency },
    queue_priorities: server.queues,
    strict_priority_enabled: server.strictPriority,
    start_time: writeTime(server.startedAt),
    status,
    active_workers: server.activeWorkers.map(({ taskId, queue, taskType, taskPayload, startedAt }) => ({
      ...{ task_id: taskId, queue, task_type: taskType },
      task_payload: by.showPayload(taskPayload, taskType),
      start_time: writeTime(startedAt),
    })),
  };
}

/** Go writes null for an empty list. */
export function serverFromJson(json: AsynqmonServer): ServerView {
  const { id, host, pid, concurrency, status } = json;
  return {
    ...{ id, host, pid, status, concurrency, queues: json.queue_priorities },
    strictPriority: json.strict_priority_enabled,
    startedAt: new Date(json.start_time),
    activeWorkers: (json.active_workers ?? []).map((worker) => ({
      ...{ taskId: worker.task_id, taskType: worker.task_type, queue: worker.queue },
      taskPayload: { shown: worker.task_payload },
      startedAt: new Date(worker.start_time),
    })),
  };
}

interface EntryJson extends Pick<SchedulerEntryInfo, 'id' | 'spec'> {
  readonly task_type: string;
  readonly task_payload: string;
  readonly options: readonly string[] | null;
  readonly next_enqueue_at: string;
  readonly prev_enqueue_at?: string;
}

/** The previous tick is left out if there was none. */
export function entryToJson(entry: SchedulerEntryInfo, by: Presenter): EntryJson {
  const { id, spec, taskType, taskPayload, options, nextEnqueueAt, prevEnqueueAt } = entry;
  return {
    ...{ id, spec, task_type: taskType, task_payload: by.showPayload(taskPayload, taskType), options },
    next_enqueue_at: writeTime(nextEnqueueAt, GO_ZERO_TIME),
    ...(prevEnqueueAt === undefined ? {} : { prev_enqueue_at: writeTime(prevEnqueueAt) }),
  };
}

export function entryFromJson(json: EntryJson): EntryView {
  return {
    ...{ id: json.id, spec: json.spec, taskType: json.task_type },
    ...{ taskPayload: { shown: json.task_payload }, options: json.options ?? [] },
    nextEnqueueAt: readTime(json.next_enqueue_at),
    prevEnqueueAt: readTime(json.prev_enqueue_at),
  };
}

interface EventJson {
  readonly task_id: string;
  readonly enqueued_at: string;
}

export function eventToJson({ taskId, enqueuedAt }: SchedulerEnqueueEvent): EventJson {
  return { task_id: taskId, enqueued_at: writeTime(enqueuedAt) };
}

export function eventFromJson(json: EventJson): SchedulerEnqueueEvent {
  return { taskId: json.task_id, enqueuedAt: new Date(json.enqueued_at) };
}
