import type { DiskQueueSnapshot } from '../diskqueue/message-log.ts';
import type { PurgatorySnapshot } from '../purgatory/purgatory.ts';
import type { GroupInfo, QueueLimits } from '../tasks/broker/broker-types.ts';
import type {
  Content,
  DayJson,
  EntryView,
  QueueView,
  ServerView,
  TaskView,
  WorkerView,
} from '../tasks/http/asynqmon-json.ts';
import type { SchedulerEnqueueEvent } from '../tasks/info.ts';
import type { TaskOptionValue } from '../tasks/task-options.ts';
import type { TaskChange, TaskState } from '../tasks/task-state.ts';
import type { TimerSnapshot } from '../timer/timer-wheels.ts';
import type { WorkQueueSnapshot } from '../workqueue/work-queue.ts';

/*
 * The JSON between the page and the handler of the dashboard. Both import these types, and neither imports the other.
 *
 * All paths are below `{rootPath}/api/`. Queues, tasks, servers and schedules have the fields of an inspector's infos: see `JsonOf`. Every
 * time is a number of milliseconds since the Unix epoch; what is not known is undefined, and so it is left out. An error is the status and an `ErrorJson`. A write has the header
 * `x-escapement-token` with the token of the session, and `content-type: application/json`, if it has a body. Names in paths are
 * written by `pathSegment`.
 *
 *   GET    session                                    SessionJson
 *   GET    live                                       server-sent events; the data of each is a LiveJson
 *   GET    history?queue=&span=minutes|day            HistoryJson; without a queue, of all queues together
 *   GET    queues/{queue}                             QueueDetailJson
 *   POST   queues/{queue}/pause, /resume              204
 *   DELETE queues/{queue}?force=1                     204
 *   PUT    queues/{queue}/limits                      QueueLimits in the body; 204
 *   DELETE queues/{queue}/limits                      204
 *   GET    queues/{queue}/tasks?state=&group=&page=&size=   TaskListJson
 *   POST   queues/{queue}/tasks/change                { state, group?, change } in the body; ChangedJson
 *   GET    queues/{queue}/tasks/{id}                  TaskDetailJson
 *   POST   queues/{queue}/tasks/{id}/{action}         run, archive, delete or cancel; 204
 *   GET    queues/{queue}/keys?page=&size=            KeyStats[]
 *   GET    servers                                    ServerJson[]
 *   GET    schedules                                  ScheduleJson[]
 *   GET    schedules/{id}/events?page=&size=          ScheduleEventJson[]
 *   GET    health                                     HealthJson
 *   GET    search?type=&id=&payload=&error=&result=&text=&state=&queue=&from=&to=   lines of JSON, each a SearchLine
 *   POST   search/change                              { filter, change } in the body; lines of JSON, each a ChangeLine
 *   GET    runtime                                    RuntimeJson
 */

/**
 * Returns a name as a part of a path. URL parsers take `.` and `..` for steps, however they are encoded, so these have a tilde in front,
 * which the handler removes; and so have `~.`, `~..`, `~~.` and so on.
 */
export function pathSegment(name: string): string {
  return /^~*\.\.?$/.test(name) ? `~${name}` : encodeURIComponent(name);
}

/** Returns the name that {@link pathSegment} wrote, of a part that is decoded. */
export function nameOfSegment(part: string): string {
  return /^~+\.\.?$/.test(part) ? part.slice(1) : part;
}

/** A change that a session may make: a value of `{ actions }` in the result of `authorize`. */
export type DashboardAction =
  | 'run'
  | 'archive'
  | 'delete'
  | 'cancel'
  | 'pause'
  | 'resume'
  | 'limits'
  | 'delete-queue';

/** All changes, in the order of their type, which is written out for the documentation of the API. */
export const DASHBOARD_ACTIONS: readonly DashboardAction[] = [
  'run',
  'archive',
  'delete',
  'cancel',
  'pause',
  'resume',
  'limits',
  'delete-queue',
];

export interface SessionJson {
  readonly title: string;
  readonly version: string;
  /** Where the tasks are: `redis://host:6379/0`, a folder, `memory`; undefined if no broker is shown. */
  readonly source?: string;
  /** What the session may change; none if it may only read. */
  readonly actions: readonly DashboardAction[];
  /** Sent back with every write. */
  readonly token: string;
  /** Which pages have content. */
  readonly has: Readonly<Record<'tasks' | keyof RuntimeJson, boolean>>;
}

export interface ErrorJson {
  /** A sentence for people. */
  readonly message: string;
  /** Code of the error: `ERR_QUEUE_NOT_FOUND`. */
  readonly code?: string;
}

/** An info as the page gets it: a Date `startedAt` is a number, `startedAtMs`, and bytes are a `ContentJson`. */
export type JsonOf<Info> = {
  readonly [
    Name in keyof Info as Info[Name] extends Date | undefined ? `${Name & string}Ms` : Name
  ]: FieldJson<Info[Name]>;
};

type FieldJson<Field> = Field extends Date ? number : Field extends Content ? ContentJson : Field;

// Live.

/** What every page shows or checks once a second. One event; every reader gets the same. */
export interface LiveJson {
  readonly atMs: number;
  /** Why the broker cannot be read now; the queues are then those that were read last. */
  readonly unavailable?: string;
  /** By name; at most `MAX_LIVE_QUEUES`, those with the most tasks; empty without a broker. */
  readonly queues: readonly QueueJson[];
  /** Number of all queues. */
  readonly queueCount: number;
  readonly serverCount: number;
  /** Pending timers of all timers that are shown. */
  readonly pendingTimers: number;
}

export const MAX_LIVE_QUEUES = 500;

export interface QueueJson extends JsonOf<Omit<QueueView, 'timestamp'>> {
  /** Whether a server processes this queue. */
  readonly hasServer: boolean;
  /** Runs that ended, and failed, a second: since the sample before; undefined until there are two. */
  readonly processedPerS?: number;
  readonly failedPerS?: number;
}

/** What is kept of a queue at one time. */
export const SAMPLED = ['processedPerS', 'failedPerS', 'pending', 'active', 'latencyMs'] as const;

/** Samples of a queue, or of all together, as columns of the same length, the oldest first. */
export type HistoryJson = Readonly<Record<'atMs' | (typeof SAMPLED)[number], readonly number[]>>;

// Queues and tasks.

export interface QueueDetailJson {
  readonly queue: QueueJson;
  readonly limits: QueueLimits | undefined;
  /** The last 90 days by UTC, today first. */
  readonly days: readonly DayJson[];
  /** At most a thousand. */
  readonly groups: readonly GroupInfo[];
}

export interface TaskListJson {
  /** Number of tasks in that state. */
  readonly total: number;
  readonly tasks: readonly TaskJson[];
}

/** Bytes, as far as they are sent. */
export interface ContentJson {
  /** Length of the whole, in bytes; undefined if only a text of them is known, over the HTTP API. */
  readonly bytes?: number;
  /** The beginning as text, if it is UTF-8. Numbers in it are exact: it is not parsed on the way. */
  readonly text?: string;
  /** The beginning as base64, if it is not. */
  readonly base64?: string;
  /** Whether that is not all. */
  readonly isCut: boolean;
}

/** Fields of a task in a list. */
export const LISTED_FIELDS = [
  ...(['id', 'queue', 'type', 'state', 'payload', 'result', 'group', 'key', 'isOrphaned'] as const),
  ...(['retried', 'maxRetry', 'lastError', 'lastFailedAt', 'nextProcessAt', 'completedAt'] as const),
  'deadline',
] as const;

/** A task in a list: of payload, result and error only the beginning. */
export interface TaskJson extends JsonOf<Pick<TaskView, (typeof LISTED_FIELDS)[number]>> {
  /** The run in progress, if a server has announced it. */
  readonly run: RunJson | undefined;
  /** The last progress that the handler reported, as JSON text. */
  readonly progress: string | undefined;
}

/** A task with everything that is known of it; of payload and result up to 1 MB. */
export interface TaskDetailJson extends TaskJson {
  /** The options that it was enqueued with; a time is a number. */
  readonly options: readonly TaskOptionValue[];
  readonly uniqueKey: string | undefined;
  /** When a completed task is removed. */
  readonly expiresAtMs: number | undefined;
  /** What can be done with it in its state, of what the session may do. */
  readonly actions: readonly (TaskChange | 'cancel')[];
}

export interface ChangedJson {
  readonly changed: number;
}

// Servers, schedules, health.

export interface RunJson extends JsonOf<Omit<WorkerView, 'taskPayload'>> {
  /** Id of its server. */
  readonly server: string;
}

export interface ServerJson extends JsonOf<Omit<ServerView, 'activeWorkers'>> {
  readonly runs: readonly RunJson[];
}

export type ScheduleJson = JsonOf<EntryView>;

export type ScheduleEventJson = JsonOf<SchedulerEnqueueEvent>;

export interface HealthJson {
  readonly process: {
    readonly pid: number;
    readonly node: string;
    readonly uptimeMs: number;
    readonly heapBytes: number;
    readonly residentBytes: number;
    /** Share of one core that this process has used since the previous reading: 0 to 1, more with threads. */
    readonly cpu?: number;
    /** How late the event loop is: median and longest of the last minute. */
    readonly loopDelayMs: { readonly median: number; readonly longest: number };
  };
  /** What Redis reports about itself (INFO), if the tasks are there. */
  readonly redis?: Readonly<Record<string, string>>;
  /** What the folder of an embedded broker takes, if it has one. */
  readonly folder?: { readonly path: string; readonly files: number; readonly bytes: number };
}

// Search.

/** The texts of a filter: in any field, or in one. */
export const FILTER_TEXTS = ['text', 'type', 'id', 'payload', 'error', 'result'] as const;

/** A filter: a task matches if every field that is there matches. Texts are found anywhere in a field, whatever their case. */
export interface SearchFilter extends Readonly<Partial<Record<(typeof FILTER_TEXTS)[number], string>>> {
  /** States; all if there is none. In a URL: `state=retry&state=archived`. */
  readonly state?: readonly TaskState[];
  /** Queues; all if there is none. */
  readonly queue?: readonly string[];
  /** The task's own time is in that range: last failed, completed, due; active: started. */
  readonly from?: number;
  readonly to?: number;
}

/** Tasks that are sent of those that match; the rest is only counted. */
export const MAX_MATCHES = 500;

/** A line of the response: progress a few times a second, tasks as they are found; `isDone` in the last one. */
export interface SearchLine {
  readonly scanned: number;
  /** Number of tasks to scan, as it was at the beginning. */
  readonly total: number;
  /** Number of tasks that match so far. */
  readonly matched: number;
  /** Those that are new since the line before. */
  readonly tasks?: readonly TaskJson[];
  readonly isDone?: boolean;
  /** The search ended early. */
  readonly error?: ErrorJson;
}

export interface ChangeLine extends Omit<SearchLine, 'tasks'> {
  readonly changed: number;
  /** Tasks that match and could not be changed: the state had changed, or refuses it. */
  readonly refused: number;
}

// Timers, purgatories, work queues, disk queues: of the process that serves the dashboard.

export interface RuntimeJson {
  readonly timers: readonly TimerJson[];
  readonly purgatories: readonly PurgatoryJson[];
  readonly workQueues: readonly WorkQueueJson[];
  readonly diskQueues: readonly DiskQueueJson[];
}

export interface TimerJson extends Omit<TimerSnapshot, 'delayQueue'> {
  readonly name: string;
  /** Its sizes in the last five minutes, the oldest first. */
  readonly history: readonly number[];
  /** How late the timer's tasks run: of a probe of the dashboard's own, once a second; the last five minutes. */
  readonly lateness: { readonly medianMs: number; readonly longestMs: number };
}

/** Keys are text. */
export interface PurgatoryJson extends Omit<PurgatorySnapshot, 'keys'> {
  readonly keys: readonly { readonly key: string; readonly operations: number }[];
}

/** Keys are text. */
export interface WorkQueueJson extends Omit<WorkQueueSnapshot, 'retries'> {
  readonly retries: readonly { readonly key: string; readonly retries: number }[];
}

/** Files are names, not paths. */
export type DiskQueueJson = DiskQueueSnapshot;
