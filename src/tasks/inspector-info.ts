import type {
  DayStats,
  EnqueueEvent,
  QueueStats,
  ScheduleEntry,
  ServerState,
  WorkerState,
} from './broker/broker.ts';
import { dateOf } from './task-info.ts';

/** A queue as it was when somebody looked. */
export interface QueueInfo {
  /** Its name. */
  readonly queue: string;
  /** About how much it takes where it is kept, in bytes. */
  readonly memoryUsageBytes: number;
  /** How long the next pending task has waited, in milliseconds; 0 if there is none. */
  readonly latencyMs: number;
  /** Tasks in all states. */
  readonly size: number;
  /** Groups that have tasks. */
  readonly groups: number;
  /** Tasks that somebody processes. */
  readonly active: number;
  /** Tasks that can be processed now. */
  readonly pending: number;
  /** Tasks for later. */
  readonly scheduled: number;
  /** Tasks that have failed, and are tried again later. */
  readonly retry: number;
  /** Tasks that are not tried again. */
  readonly archived: number;
  /** Tasks that are done and retained. */
  readonly completed: number;
  /** Tasks that wait for others of their group. */
  readonly aggregating: number;
  /** Runs of today, by UTC, with those that failed. */
  readonly processed: number;
  /** Of these, those that failed. */
  readonly failed: number;
  /** Of all days. */
  readonly processedTotal: number;
  /** Of these, those that failed. */
  readonly failedTotal: number;
  /** Whether nothing is handed out. */
  readonly paused: boolean;
  /** When it was looked at. */
  readonly timestamp: Date;
}

/** What a queue has done in a day. */
export interface DailyStats {
  /** Its name. */
  readonly queue: string;
  /** Midnight, by UTC. */
  readonly date: Date;
  /** Runs, with those that failed. */
  readonly processed: number;
  /** Of these, those that failed. */
  readonly failed: number;
}

/** A server that runs. */
export interface ServerInfo {
  /** Made when it started; unique. */
  readonly id: string;
  /** Name of its machine. */
  readonly host: string;
  /** Of its process. */
  readonly pid: number;
  /** Tasks it processes at once, at most. */
  readonly concurrency: number;
  /** Queues and their weights. */
  readonly queues: Readonly<Record<string, number>>;
  /** Whether a queue of lower priority waits for the higher ones. */
  readonly strictPriority: boolean;
  /** `'stopped'` takes no more tasks; `'closed'` is shutting down. */
  readonly status: 'active' | 'stopped' | 'closed';
  /** When it started. */
  readonly startedAt: Date;
  /** What it processes now. */
  readonly activeWorkers: readonly WorkerInfo[];
}

/** A task that a server processes. */
export interface WorkerInfo {
  /** Of the task. */
  readonly taskId: string;
  /** Of the task. */
  readonly taskType: string;
  /** Of the task: bytes. */
  readonly taskPayload: Uint8Array;
  /** Where the task comes from. */
  readonly queue: string;
  /** When this run began. */
  readonly startedAt: Date;
  /** When the run must be over; undefined if it may take any time. */
  readonly deadline: Date | undefined;
}

/** What a scheduler enqueues, again and again. */
export interface SchedulerEntryInfo {
  /** Names it, as long as its scheduler runs. */
  readonly id: string;
  /** As it was registered: `0 3 * * *`. */
  readonly spec: string;
  /** Of the task. */
  readonly taskType: string;
  /** Of the task: bytes. */
  readonly taskPayload: Uint8Array;
  /** As asynq writes them: `Queue("low")`. */
  readonly options: readonly string[];
  /** Undefined if it never will be again. */
  readonly nextEnqueueAt: Date | undefined;
  /** Undefined if there was none. */
  readonly prevEnqueueAt: Date | undefined;
}

/** An entry of a scheduler was enqueued. */
export interface SchedulerEnqueueEvent {
  /** Of the task that was enqueued. */
  readonly taskId: string;
  /** When it was. */
  readonly enqueuedAt: Date;
}

export function queueInfoOf(stats: QueueStats): QueueInfo {
  const { queue, counts, groups, latencyMs, processed, failed, processedTotal, failedTotal } = stats;
  return {
    queue,
    memoryUsageBytes: stats.memoryBytes,
    latencyMs,
    size: Object.values(counts).reduce((sum, count) => sum + count, 0),
    groups,
    ...counts,
    processed,
    failed,
    processedTotal,
    failedTotal,
    paused: stats.isPaused,
    timestamp: new Date(stats.atMs),
  };
}

export function dailyStatsOf({ queue, date, processed, failed }: DayStats): DailyStats {
  return { queue, date: new Date(`${date}T00:00:00Z`), processed, failed };
}

export function serverInfoOf(server: ServerState): ServerInfo {
  const { id, host, pid, concurrency, queues, strictPriority, status, startedAtMs, workers } = server;
  return {
    ...{ id, host, pid, concurrency, queues, strictPriority, status },
    startedAt: new Date(startedAtMs),
    activeWorkers: workers.map(workerInfoOf),
  };
}

function workerInfoOf({
  taskId,
  taskType,
  payload,
  queue,
  startedAtMs,
  deadlineMs,
}: WorkerState): WorkerInfo {
  return {
    ...{ taskId, taskType, taskPayload: payload, queue },
    startedAt: new Date(startedAtMs),
    deadline: dateOf(deadlineMs),
  };
}

export function schedulerEntryInfoOf(entry: ScheduleEntry): SchedulerEntryInfo {
  const { id, spec, taskType, payload, options, nextEnqueueAtMs, prevEnqueueAtMs } = entry;
  return {
    ...{ id, spec, taskType, taskPayload: payload, options },
    nextEnqueueAt: dateOf(nextEnqueueAtMs),
    prevEnqueueAt: dateOf(prevEnqueueAtMs),
  };
}

export function enqueueEventOf({ taskId, atMs }: EnqueueEvent): SchedulerEnqueueEvent {
  return { taskId, enqueuedAt: new Date(atMs) };
}
