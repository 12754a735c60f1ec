import { wrongType } from '../core/errors.ts';
import { requireBoolean, requireObject, requireString } from '../core/validate.ts';
import type {
  BrokerAdministration,
  DayStats,
  EnqueueEvent,
  QueueStats,
  ScheduleEntry,
  ServerState,
  WorkerState,
} from './broker/broker.ts';
import { dateOf } from './task-info.ts';
import type { TaskState } from './task-state.ts';

/** A queue as it was when it was read from the broker. */
export interface QueueInfo
  extends
    Omit<QueueStats, 'counts' | 'memoryBytes' | 'isPaused' | 'atMs'>,
    Readonly<Record<TaskState, number>> {
  /** Whether it is paused: none of its tasks is started. */
  readonly paused: boolean;
  /** Number of tasks in all states. */
  readonly size: number;
  /** Tasks that a server processes. */
  readonly active: number;
  /** Tasks that can be processed now. */
  readonly pending: number;
  /** Tasks that wait for others of their group. */
  readonly aggregating: number;
  /** Tasks to be processed later. */
  readonly scheduled: number;
  /** Tasks that failed and will run again later. */
  readonly retry: number;
  /** Tasks that will not run again. */
  readonly archived: number;
  /** Tasks that are done and retained. */
  readonly completed: number;
  /** Estimate of the memory it takes, in bytes. */
  readonly memoryUsageBytes: number;
  /** When it was read. */
  readonly timestamp: Date;
}

/** Counts of a queue on one day. */
export interface DailyStats extends Omit<DayStats, 'date'> {
  /** Midnight by UTC. */
  readonly date: Date;
}

/** A server that is running. */
export interface ServerInfo extends Omit<ServerState, 'startedAtMs' | 'workers'> {
  /** When it started. */
  readonly startedAt: Date;
  /** The runs in progress. */
  readonly activeWorkers: readonly WorkerInfo[];
}

/** A run of a server. */
export interface WorkerInfo extends Pick<WorkerState, 'taskId' | 'taskType' | 'queue'> {
  /** Payload of its task. */
  readonly taskPayload: Uint8Array;
  /** When it started. */
  readonly startedAt: Date;
  /** When it must be over; undefined if it may take any time. */
  readonly deadline: Date | undefined;
}

/** An entry of a scheduler: a task that is enqueued periodically. */
export interface SchedulerEntryInfo extends Pick<ScheduleEntry, 'id' | 'spec' | 'taskType' | 'options'> {
  /** Payload of its tasks. */
  readonly taskPayload: Uint8Array;
  /** Next tick; undefined if there is none: the scheduler has not started, or the schedule has ended. */
  readonly nextEnqueueAt: Date | undefined;
  /** Previous tick; undefined if there was none. */
  readonly prevEnqueueAt: Date | undefined;
}

/** A tick of a scheduler entry that was enqueued. */
export interface SchedulerEnqueueEvent extends Pick<EnqueueEvent, 'taskId'> {
  /** When it was enqueued. */
  readonly enqueuedAt: Date;
}

export function queueInfoOf(stats: QueueStats): QueueInfo {
  const { queue, groups, latencyMs, processed, failed, processedTotal, failedTotal } = stats;
  const { held, runnableMs } = stats;
  const counts = countsOf(stats.counts);
  const size = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return {
    ...{ queue, paused: stats.isPaused, size, groups, ...counts },
    ...{ latencyMs, runnableMs, held, memoryUsageBytes: stats.memoryBytes },
    ...{ processed, failed, processedTotal, failedTotal },
    timestamp: new Date(stats.atMs),
  };
}

/** Counts the queues of a broker, and their tasks in all states. */
export async function countTasks(broker: BrokerAdministration): Promise<{ queues: number; tasks: number }> {
  const queues = await broker.queues();
  let tasks = 0;
  for (const queue of queues) {
    for (const count of Object.values((await broker.queueStats(queue)).counts)) tasks += count;
  }
  return { queues: queues.length, tasks };
}

/** Returns the counts alone, in the order in which asynqmon lists them. */
export function countsOf(counts: Readonly<Record<TaskState, number>>): Pick<QueueInfo, TaskState> {
  const { active, pending, aggregating, scheduled, retry, archived, completed } = counts;
  return { active, pending, aggregating, scheduled, retry, archived, completed };
}

export function dailyStatsOf({ queue, date, processed, failed }: DayStats): DailyStats {
  return { queue, date: new Date(`${date}T00:00:00Z`), processed, failed };
}

export function serverInfoOf(server: ServerState): ServerInfo {
  const { id, host, pid, status, concurrency, queues, strictPriority, startedAtMs, workers } = server;
  return {
    ...{ id, host, pid, status, concurrency, queues, strictPriority },
    startedAt: new Date(startedAtMs),
    activeWorkers: workers.map(workerInfoOf),
  };
}

function workerInfoOf(worker: WorkerState): WorkerInfo {
  const { taskId, taskType, queue, payload, startedAtMs, deadlineMs } = worker;
  return {
    ...{ taskId, taskType, queue, taskPayload: payload },
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

/** The content of asynqmon's page on Redis, under asynqmon's names. `RedisBroker.redisInfo` returns it. */
export interface RedisInfo {
  /** Address of Redis without a password: `localhost:6379`; those of the nodes of a cluster, separated by commas. */
  readonly address: string;
  /** What Redis reports about itself, by name: `INFO`, or `CLUSTER INFO`. */
  readonly info: Readonly<Record<string, string>>;
  /** The same text as Redis writes it. */
  readonly raw_info: string;
  /** Whether it is a cluster. */
  readonly cluster: boolean;
  /** `CLUSTER NODES` as Redis writes it. @default '' */
  readonly raw_cluster_nodes?: string;
  /** The nodes of each queue. @default null */
  readonly queue_locations?: readonly QueueLocation[] | null;
}

/** The nodes of a cluster that keep a queue. */
export interface QueueLocation {
  /** Its name. */
  readonly queue: string;
  /** Hash slot of its keys. */
  readonly keyslot: number;
  /** Addresses, the primary first. */
  readonly nodes: readonly string[];
}

/** Returns a result of `redisInfo` with its defaults. @throws TypeError - asynqmon's page cannot show it. */
export function redisInfoOf(result: unknown): Required<RedisInfo> {
  requireObject('the result of redisInfo', result);
  const { raw_cluster_nodes: nodes = '', queue_locations: locations = null, ...given } = result as RedisInfo;
  const { address, raw_info, info, cluster } = given;
  const texts = { address, raw_info, raw_cluster_nodes: nodes };
  for (const [name, text] of Object.entries(texts)) requireString(`redisInfo().${name}`, text);
  requireObject('redisInfo().info', info);
  for (const [name, text] of Object.entries(info)) requireString(`redisInfo().info.${name}`, text);
  requireBoolean('redisInfo().cluster', cluster);
  if (locations !== null && !Array.isArray(locations))
    throw wrongType('redisInfo().queue_locations', 'an array or null', locations);
  return { ...texts, info, cluster, queue_locations: locations };
}
