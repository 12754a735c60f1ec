import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { wrongType } from '../core/errors.ts';
import { requireBoolean, requireObject, requireString } from '../core/validate.ts';
import type {
  BrokerAdministration,
  DayStats,
  EnqueueEvent,
  QueueStats,
  ScheduleEntry,
  ServerState,
  TaskRecord,
  WorkerState,
} from './broker/broker.ts';
import { bytesJson, parseJson, printBytes, printFilled } from './payload.ts';
import { StoredTask } from './task-options.ts';
import type { TaskState } from './task-state.ts';

/* What callers get: tasks, queues, servers and schedules as they were when they were read from the broker. */

/** A task as it was when it was read from the broker. */
export class TaskInfo extends StoredTask {
  /** State of the task. */
  readonly state: TaskState;
  /** When it last failed; undefined if it never did. */
  readonly lastFailedAt: Date | undefined;
  /** When it is processed next; for a pending task, when it was read. Undefined if it is not processed again. */
  readonly nextProcessAt: Date | undefined;
  /** When it was completed; undefined if it was not. */
  readonly completedAt: Date | undefined;
  /** When the last run must end; undefined for no limit. */
  readonly deadline: Date | undefined;
  /** Name of the group; undefined if there is none. */
  readonly group: string | undefined;
  /** Whether the task is active and its lease has ended: its server is lost. */
  readonly isOrphaned: boolean;
  /** The last progress that the handler reported; undefined if there is none. */
  readonly progress: unknown;
  /** Bytes that the handler wrote; undefined if there are none. */
  readonly result: Uint8Array | undefined;

  /** @internal */
  constructor({ message, state, nextProcessAtMs, result, progress, isOrphaned }: TaskRecord) {
    super(message);
    this.state = state;
    this.lastFailedAt = dateOf(message.lastFailedAtMs);
    this.nextProcessAt = dateOf(nextProcessAtMs);
    this.completedAt = dateOf(message.completedAtMs);
    this.deadline = dateOf(message.deadlineMs);
    this.group = message.group === '' ? undefined : message.group;
    this.isOrphaned = isOrphaned;
    this.progress = progressOf(progress);
    this.result = result;
  }

  /** Parses the payload as JSON. @throws EscapementError `ERR_TASK_PAYLOAD` - the payload is not JSON, or there is none. */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller declares what it expects
  json<T = unknown>(): T {
    return parseJson(`payload of ${nameOf(this)}`, this.payload, 'TaskInfo.json') as T;
  }

  /**
   * Parses the result as JSON. Returns undefined if the handler has written none.
   *
   * @throws EscapementError `ERR_TASK_PAYLOAD` - the result is not JSON.
   */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- as above
  resultJson<T = unknown>(): T | undefined {
    const { result } = this;
    return result && (parseJson(`result of ${nameOf(this)}`, result, 'TaskInfo.resultJson') as T);
  }

  /** Returns its fields, for `JSON.stringify`. Payload and result are text, or base64 if they are not UTF-8: see `payloadEncoding`. */
  toJSON(): object {
    const { payload, result } = this;
    return Object.assign({}, this, bytesJson('payload', payload), result && bytesJson('result', result));
  }

  /** @internal Returns what a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      ...Object.fromEntries(
        Object.entries(this)
          .filter(isUnset)
          .map(([name]) => [name, undefined]),
      ),
      payload: printBytes(this.payload),
      headers: printFilled(this.headers),
      key: printFilled(this.key),
      lastError: printFilled(this.lastError),
      result: printBytes(this.result),
    }));
  }
}

function isUnset([name, value]: [string, unknown]): boolean {
  return value === false || (value === 0 && name.endsWith('Ms'));
}

function nameOf({ id, queue }: TaskInfo): string {
  return `task '${id}' of queue '${queue}'`;
}

/** Another client may have written something that is not JSON: the task and those beside it must still be readable. */
function progressOf(json: string | undefined): unknown {
  if (json === undefined) return undefined;
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Returns the date of wall-clock milliseconds, where 0 is none. */
function dateOf(wallMs: number): Date | undefined {
  return wallMs === 0 ? undefined : new Date(wallMs);
}

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
