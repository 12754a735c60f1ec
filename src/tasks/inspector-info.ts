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
  readonly queue: string;
  /** About how much it takes where it is kept, in bytes. */
  readonly memoryUsageBytes: number;
  /** How long the next pending task has waited, in milliseconds; 0 if there is none. */
  readonly latencyMs: number;
  /** Tasks in all states. */
  readonly size: number;
  readonly groups: number;
  readonly active: number;
  readonly pending: number;
  readonly scheduled: number;
  readonly retry: number;
  readonly archived: number;
  readonly completed: number;
  readonly aggregating: number;
  /** Runs of today, by UTC, with those that failed. */
  readonly processed: number;
  readonly failed: number;
  /** Of all days. */
  readonly processedTotal: number;
  readonly failedTotal: number;
  readonly paused: boolean;
  readonly timestamp: Date;
}

/** What a queue has done in a day. */
export interface DailyStats {
  readonly queue: string;
  /** Midnight, by UTC. */
  readonly date: Date;
  /** Runs, with those that failed. */
  readonly processed: number;
  readonly failed: number;
}

/** A server that runs. */
export interface ServerInfo {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly concurrency: number;
  /** Queues and their weights. */
  readonly queues: Readonly<Record<string, number>>;
  readonly strictPriority: boolean;
  /** `'stopped'` takes no more tasks; `'closed'` is shutting down. */
  readonly status: 'active' | 'stopped' | 'closed';
  readonly startedAt: Date;
  readonly activeWorkers: readonly WorkerInfo[];
}

/** A task that a server processes. */
export interface WorkerInfo {
  readonly taskId: string;
  readonly taskType: string;
  readonly taskPayload: Uint8Array;
  readonly queue: string;
  readonly startedAt: Date;
  /** When the run must be over; undefined if it may take any time. */
  readonly deadline: Date | undefined;
}

/** What a scheduler enqueues, again and again. */
export interface SchedulerEntryInfo {
  readonly id: string;
  /** As it was registered: `0 3 * * *`. */
  readonly spec: string;
  readonly taskType: string;
  readonly taskPayload: Uint8Array;
  /** As asynq writes them: `Queue("low")`. */
  readonly options: readonly string[];
  readonly nextEnqueueAt: Date | undefined;
  /** Undefined if there was none. */
  readonly prevEnqueueAt: Date | undefined;
}

/** An entry of a scheduler was enqueued. */
export interface SchedulerEnqueueEvent {
  readonly taskId: string;
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
