import type { TaskMessage } from '../task-options.ts';
import type { TaskState } from '../task-state.ts';

export type { NewTask } from '../task-options.ts';

/* Arguments and results of broker operations: see broker.ts. */

/** All maintenance jobs: for a broker that does nothing by itself. */
export const MAINTENANCE_JOBS = [
  'dequeue', // servers call it: there may be tasks without a notification
  'forward', // servers call it: tasks become due
  'deleteExpired', // servers call it: the retention of completed tasks ends
  'recover', // servers call it: leases end
  'reclaimSets', // servers call it: some sets are held for too long
  'groups', // servers call it: groups become due
  'announceServer', // servers call it: otherwise they are no longer listed
  'announceScheduler', // schedulers call it: otherwise they are no longer listed
  'task', // callers that wait for the end of a task call it: the task may end without a notification
] as const;

/** An operation of a broker that must be called periodically: see `Broker.maintenance`. */
export type MaintenanceJob = (typeof MAINTENANCE_JOBS)[number];

/** One occurrence of a schedule. */
export interface Tick {
  /** Identifies the entry in its queue; the same in every scheduler that has the entry. */
  readonly entryKey: string;
  /** When it occurs, in wall-clock milliseconds. */
  readonly atMs: number;
}

/** A task that a server processes. */
export interface LeasedTask {
  /** The task. */
  readonly message: TaskMessage;
  /**
   * Grows with every lease of tasks with this id, removed ones included: with the id it identifies the lease. Handlers can use
   * it as a fencing token.
   */
  readonly epoch: number;
  /** How often it was recovered because its worker was lost; since it was archived, if it was. */
  readonly recoveries: number;
}

/** Why a run did not succeed. */
export interface TaskFailure {
  /** Error message; may be empty. */
  readonly error: string;
  /** Whether it counts as failed and as a retry. */
  readonly isFailure: boolean;
  /** Whether it counts as a recovery, if the task is retried: its worker was lost. */
  readonly isRecovery?: boolean;
}

/** A task as a broker returns it. */
export interface TaskRecord {
  /** The task. */
  readonly message: TaskMessage;
  /** Its state. */
  readonly state: TaskState;
  /** When it is processed next, in wall-clock milliseconds; for a pending task the current time, 0 if it is not. */
  readonly nextProcessAtMs: number;
  /** Result of a run; undefined if there is none. */
  readonly result: Uint8Array | undefined;
  /** Progress of a run as JSON; undefined if there is none. */
  readonly progress: string | undefined;
  /** Whether it is active and its lease is over. */
  readonly isOrphaned: boolean;
}

/** A group that has tasks. */
export interface GroupInfo {
  /** Its name. */
  readonly group: string;
  /** Number of its tasks. */
  readonly size: number;
}

/** When a group is aggregated: when any of these holds. */
export interface GroupLimits {
  /** No task has come for that long, in milliseconds. */
  readonly graceMs: number;
  /** Its oldest task has waited for that long, in milliseconds; 0 for no limit. */
  readonly maxDelayMs: number;
  /** It has that many tasks; 0 for no limit. */
  readonly maxSize: number;
}

/** Result of `takeGroup`. */
export interface GroupTaking {
  /** The tasks that were taken; undefined if it is not time yet. */
  readonly set: TaskSet | undefined;
  /** When to try again, in milliseconds from now; undefined if the group is empty. */
  readonly againInMs: number | undefined;
}

/** Tasks that were taken out of a group. */
export interface TaskSet {
  /** Unique id. */
  readonly id: string;
  /** Queue of its tasks. */
  readonly queue: string;
  /** Group they return to if they are not replaced. */
  readonly group: string;
  /** The tasks, the oldest first. */
  readonly messages: readonly TaskMessage[];
}

/** Callbacks for events of a broker. They must not throw. */
export interface BrokerListener {
  /** There may be a task to dequeue. */
  work?(queue: string): void;
  /** There may be a task to recover. */
  leaseExpired?(queue: string): void;
  /** A group has a new task, or tasks that were returned to it. */
  grouped?(queue: string, group: string): void;
  /** A task was completed, archived or removed. */
  settled?(queue: string, id: string): void;
  /** A run has reported progress. */
  progressed?(queue: string, id: string): void;
  /** The broker was closed: no event follows. */
  closed?(): void;
  /** A task should stop. @returns whether it runs here and was interrupted. */
  cancel?(request: CancelRequest): boolean;
}

/** A listener's subscription. */
export interface Subscription {
  /** Ends it: the listener is not called any more. Idempotent. */
  close(): Promise<void>;
}

/** What becomes of a task that is cancelled while it runs. */
export type CancelOutcome = 'retry' | 'archive' | 'delete';

/** Request to stop a run. */
export interface CancelRequest {
  /** Id of the task. */
  readonly taskId: string;
  /** Queue of the task; undefined for any. */
  readonly queue: string | undefined;
  /** What becomes of the task. */
  readonly outcome: CancelOutcome;
}

/** State of a server. */
export interface ServerState {
  /** Unique id. */
  readonly id: string;
  /** Host name of its machine. */
  readonly host: string;
  /** Process id. */
  readonly pid: number;
  /** Maximum number of tasks it processes at once. */
  readonly concurrency: number;
  /** Its queues with their priorities. */
  readonly queues: Readonly<Record<string, number>>;
  /** Whether priorities are strict. */
  readonly strictPriority: boolean;
  /** `'active'` takes tasks, `'stopped'` takes none, `'closed'` shuts down. */
  readonly status: 'active' | 'stopped' | 'closed';
  /** When it started, in wall-clock milliseconds. */
  readonly startedAtMs: number;
  /** The runs in progress. */
  readonly workers: readonly WorkerState[];
}

/** A server without its runs. */
export type ServerHead = Omit<ServerState, 'workers'>;

/** A run of a server. */
export interface WorkerState {
  /** Id of its task. */
  readonly taskId: string;
  /** Type of its task. */
  readonly taskType: string;
  /** Payload of its task. */
  readonly payload: Uint8Array;
  /** Queue of its task. */
  readonly queue: string;
  /** When it started, in wall-clock milliseconds. */
  readonly startedAtMs: number;
  /** Its deadline, in wall-clock milliseconds; 0 for none. */
  readonly deadlineMs: number;
}

/** An entry of a scheduler. */
export interface ScheduleEntry {
  /** Id, unique in its scheduler; the same in every scheduler that has the entry. */
  readonly id: string;
  /** Schedule as it was registered: `@every 1m`. */
  readonly spec: string;
  /** Type of its tasks. */
  readonly taskType: string;
  /** Payload of its tasks. */
  readonly payload: Uint8Array;
  /** Task options in asynq's notation: `Queue("low")`. */
  readonly options: readonly string[];
  /** Next tick, in wall-clock milliseconds; 0 if there is none: the scheduler has not started, or the schedule has ended. */
  readonly nextEnqueueAtMs: number;
  /** Previous tick, in wall-clock milliseconds; 0 if there was none. */
  readonly prevEnqueueAtMs: number;
}

/** A tick that was enqueued. */
export interface EnqueueEvent {
  /** Id of its task. */
  readonly taskId: string;
  /** When it was enqueued, in wall-clock milliseconds. */
  readonly atMs: number;
}

/** One task of a queue, or all in a state; those that are aggregating of one group, or of all. */
export type TaskTarget =
  | {
      /** Id of the task. */
      readonly id: string;
    }
  | {
      /** State of the tasks. */
      readonly state: TaskState;
      /** Group of aggregating tasks. @default all groups */
      readonly group?: string | undefined;
    };

/** A page of a list. */
export interface Page {
  /** Number of the page, from 1. */
  readonly page: number;
  /** Entries per page, at least 1. */
  readonly size: number;
}

/** Where a scan goes on, in the broker that returned it. A position may be used once. */
export type ScanPosition = object;

/** Some tasks of a scan; there may be none. */
export interface ScanPiece {
  /** The tasks, in any order. */
  readonly tasks: readonly TaskRecord[];
  /** Where the next piece begins; undefined at the end. */
  readonly next: ScanPosition | undefined;
}

/** Counts and sizes of a queue. */
export interface QueueStats {
  /** Its name. */
  readonly queue: string;
  /** Tasks by state. Tasks in sets count as aggregating. */
  readonly counts: Readonly<Record<TaskState, number>>;
  /** Number of groups that have tasks. */
  readonly groups: number;
  /** How long the next pending task has waited, in milliseconds; 0 if there is none. */
  readonly latencyMs: number;
  /** Estimate of the memory it takes, in bytes. */
  readonly memoryBytes: number;
  /** Runs of today by UTC, failed ones included. */
  readonly processed: number;
  /** Failed runs of today. */
  readonly failed: number;
  /** Runs since the queue was created, failed ones included. */
  readonly processedTotal: number;
  /** Failed runs since the queue was created. */
  readonly failedTotal: number;
  /**
   * Number of pending tasks that may not start now, by the kind of the limit that holds them back: that of their key, or that of the
   * queue. With a concurrency of 20, ten active tasks and a hundred pending ones, 90 are held.
   */
  readonly held: Readonly<Record<LimitKind, number>>;
  /**
   * How long the pending task has waited that waits longest, of the first ones of all keys that neither a limit nor a pause holds back,
   * in milliseconds; 0 if there is none. If many keys wait, of the thousand keys whose turn is next.
   */
  readonly runnableMs: number;
  /** Whether it is paused: nothing is dequeued. */
  readonly isPaused: boolean;
  /** When this was read, in wall-clock milliseconds. */
  readonly atMs: number;
}

/** At most how many runs may start in a time: a token bucket. */
export interface Rate {
  /** Number of tasks: an integer of at least 1. */
  readonly tasks: number;
  /** The time, in milliseconds: at least 1. */
  readonly perMs: number;
  /** At most how many start at once, after a pause: an integer of at least 1. @default tasks */
  readonly burst?: number | undefined;
}

/** What all servers of a broker together may do with the tasks of a queue. */
export interface QueueLimits {
  /** At most how many tasks are active at once: an integer of at least 1. @default any number */
  readonly concurrency?: number | undefined;
  /** At most how many runs start in a time. @default any number */
  readonly rate?: Rate | undefined;
  /** Limits of each key. The tasks without a key are one key. @default none */
  readonly perKey?: Omit<QueueLimits, 'perKey'> | undefined;
}

/** What a limit limits: the runs at once, or those that start in a time. */
export type LimitKind = 'concurrency' | 'rate';

/** A key that has tasks which wait or run. */
export interface KeyStats {
  /** The key; empty for the tasks without one. */
  readonly key: string;
  /** Number of its pending tasks. */
  readonly pending: number;
  /** Number of its active tasks. */
  readonly active: number;
  /** The limit of its own that it has reached, so that none of its tasks can start; undefined if there is none. */
  readonly heldBy: LimitKind | undefined;
  /** When the limit of its rate ends, in milliseconds from now; undefined if it has not reached that. */
  readonly againInMs: number | undefined;
}

/** Counts of a queue on one day. */
export interface DayStats {
  /** Name of the queue. */
  readonly queue: string;
  /** UTC date: `2026-11-21`. */
  readonly date: string;
  /** Runs of the day, failed ones included. */
  readonly processed: number;
  /** Failed runs of the day. */
  readonly failed: number;
}

/** Kind of a defect of a queue, and how a repair removes it. */
export type DefectKind =
  /** An id is in a list, and there is no task with that id: it is removed from the list. */
  | 'id-without-task'
  /** An id is in a list, and its task is in another state: it is removed from the list. */
  | 'id-in-wrong-list'
  /**
   * A task is in no list, or is the first one of a list that has lost its first task (`where` is that list then), so no server would find
   * it: it is added to the list of its state, or becomes the first task; an active one is recovered.
   */
  | 'task-in-no-list'
  /** A task has lost its message: the rest of it is removed. */
  | 'task-without-message'
  /** A task is active and has no lease: it is recovered. */
  | 'active-without-lease'
  /** A group has tasks and is not in the list of groups, so no server would aggregate it: it is added to the list. */
  | 'group-not-listed'
  /** A group is in the list of groups and has no tasks: it is removed from the list. `where` is its name. */
  | 'group-without-tasks'
  /** A lock is held by a task that was removed or has ended: it is freed. */
  | 'leaked-lock'
  /** The number of pending tasks with keys, of the turns of a key or of its runs is wrong: it is corrected. `where` has it. */
  | 'wrong-count'
  /** A message cannot be decoded: it is left as it is. */
  | 'unreadable-message';

/** A defect of a queue. */
export interface Defect {
  /** Kind of defect. */
  readonly kind: DefectKind;
  /** Name of the queue. */
  readonly queue: string;
  /** Id of the task; empty if the defect is about a group. */
  readonly id: string;
  /** The list, the lock or the group; may be empty. */
  readonly where: string;
}

/** Options of a {@link LeaseHolder}. */
export interface LeaseHolderOptions {
  /** Queues of the tasks. */
  readonly queues: readonly string[];
  /** Maximum number of leases that are held at once: they have the slots 0 … slots - 1. */
  readonly slots: number;
  /** Length of a lease, in milliseconds. It is renewed six times in that time. */
  readonly leaseMs: number;
  /** Called when renewing is impossible, and once each time it begins to fail. */
  readonly onError: (error: unknown) => void;
}

/**
 * Renews leases even while the event loop is blocked: a handler that computes for a minute keeps its task. The server renews
 * them too, and finds out which are lost, so a server without a holder only lacks that.
 */
export interface LeaseHolder {
  /**
   * Renews the lease of a task from now on, even if the event loop is blocked after this call. Takes less than a microsecond.
   * Never throws.
   *
   * @param slot - a free slot.
   * @param untilWallMs - when renewing ends, in wall-clock milliseconds; 0 for never.
   */
  hold(slot: number, task: LeasedTask, untilWallMs: number): void;
  /** Stops renewing the lease in a slot, which is free then. */
  release(slot: number): void;
  /** Returns until when the lease in a slot was renewed, in wall-clock milliseconds; 0 if it was not. */
  renewedUntilMs(slot: number): number;
  /** Stops renewing. Idempotent. Never rejects. */
  close(): Promise<void>;
}
