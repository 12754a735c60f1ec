import type { TaskMessage } from '../task-message.ts';
import type { TaskState } from '../task-state.ts';

/* What a broker takes and gives: see broker.ts. */

/** An operation of a broker that must be called periodically: see `Broker.maintenance`. */
export type MaintenanceJob =
  /** By servers: there may be tasks without a notification. */
  | 'dequeue'
  /** By servers: tasks become due. */
  | 'forward'
  /** By servers: the retention of completed tasks ends. */
  | 'deleteExpired'
  /** By servers: leases end. */
  | 'recover'
  /** By servers: sets are held for too long. */
  | 'reclaimSets'
  /** By servers: it is time for groups to be aggregated. */
  | 'groups'
  /** By servers, which are otherwise no longer listed. */
  | 'announceServer'
  /** By schedulers, which are otherwise no longer listed. */
  | 'announceScheduler'
  /** By callers that wait for the end of a task: it may end without a notification. */
  | 'task';

/** All maintenance jobs: for a broker that does nothing by itself. */
export const MAINTENANCE_JOBS: readonly MaintenanceJob[] = [
  ...(['dequeue', 'forward', 'deleteExpired', 'recover', 'reclaimSets', 'groups', 'task'] as const),
  ...(['announceServer', 'announceScheduler'] as const),
];

/** A task that is to be added. */
export interface NewTask {
  /** What it says. */
  readonly message: TaskMessage;
  /** When it is for; 0, and whatever is past, is now. */
  readonly processAtMs: number;
  /** How long its lock holds at most; 0 for none. Of a task for later, from then on. */
  readonly uniqueTtlMs: number;
}

/** A moment of a schedule. */
export interface Tick {
  /** Names the entry in its queue, the same wherever it is scheduled. */
  readonly entryKey: string;
  /** When it is, in wall-clock milliseconds. */
  readonly atMs: number;
}

/** A task that somebody processes. */
export interface LeasedTask {
  /** What it says. */
  readonly message: TaskMessage;
  /**
   * Grows with every lease that tasks of this id have had, also of one that is gone: with the id, what a broker knows a
   * lease by. A fencing token for what the task changes.
   */
  readonly epoch: number;
  /** How often its worker was gone. */
  readonly recoveries: number;
}

/** Why a run is not done. */
export interface TaskFailure {
  /** For people; empty if there is nothing to say. */
  readonly error: string;
  /** Whether it counts: as failed, and as a retry. */
  readonly isFailure: boolean;
  /** Whether it counts as a worker that was gone. */
  readonly isRecovery?: boolean;
}

/** A task as a broker shows it. */
export interface TaskRecord {
  /** What it says. */
  readonly message: TaskMessage;
  /** Where it is. */
  readonly state: TaskState;
  /** When it is processed next: of pending ones now. 0 if it is not. */
  readonly nextProcessAtMs: number;
  /** What a run had to show, if anything. */
  readonly result: Uint8Array | undefined;
  /** JSON. */
  readonly progress: string | undefined;
  /** Active, and its lease is over. */
  readonly isOrphaned: boolean;
}

/** A group that has tasks. */
export interface GroupInfo {
  /** Its name. */
  readonly group: string;
  /** Its tasks. */
  readonly size: number;
}

/** When a group is taken. */
export interface GroupLimits {
  /** Nothing has come for that long, in milliseconds. */
  readonly graceMs: number;
  /** 0 for none. */
  readonly maxDelayMs: number;
  /** 0 for none. */
  readonly maxSize: number;
}

/** What came of looking at a group. */
export interface GroupTaking {
  /** Undefined if it is not time yet. */
  readonly set: TaskSet | undefined;
  /** When to ask again, in milliseconds; undefined if the group is empty now. */
  readonly againInMs: number | undefined;
}

/** Tasks that were taken out of a group. */
export interface TaskSet {
  /** Unique. */
  readonly id: string;
  /** Where its tasks are from. */
  readonly queue: string;
  /** Where they go back to. */
  readonly group: string;
  /** The oldest first. */
  readonly messages: readonly TaskMessage[];
}

/** What somebody who serves queues, or waits for a task, wants to hear. Must not throw. */
export interface BrokerListener {
  /** There may be something to dequeue. */
  work?(queue: string): void;
  /** There may be something to recover. */
  leaseExpired?(queue: string): void;
  /** A group has grown, or has come back. */
  grouped?(queue: string, group: string): void;
  /** A task is completed, archived or gone. */
  settled?(queue: string, id: string): void;
  /** A run has said how far it is. */
  progressed?(queue: string, id: string): void;
  /** The broker was closed: nothing more is told. */
  closed?(): void;
  /** @returns whether the task runs here, and is told to stop. */
  cancel?(request: CancelRequest): boolean;
}

/** What is told, until it is closed. */
export interface Subscription {
  /** Nothing is told any more. Idempotent. */
  close(): Promise<void>;
}

/** What becomes of a task that is cancelled while it runs. */
export type CancelOutcome = 'retry' | 'archive' | 'delete';

/** Somebody wants a run to stop. */
export interface CancelRequest {
  /** Of the task that runs. */
  readonly taskId: string;
  /** Undefined: of whatever queue. */
  readonly queue: string | undefined;
  /** What becomes of the task. */
  readonly outcome: CancelOutcome;
}

/** A server, as it shows itself. */
export interface ServerState {
  /** Unique. */
  readonly id: string;
  /** The name of its machine. */
  readonly host: string;
  /** Of its process. */
  readonly pid: number;
  /** Tasks it works on at once, at most. */
  readonly concurrency: number;
  /** Those it serves, with their priorities. */
  readonly queues: Readonly<Record<string, number>>;
  /** Whether priorities are strict. */
  readonly strictPriority: boolean;
  /** Whether it takes tasks, takes none, or shuts down. */
  readonly status: 'active' | 'stopped' | 'closed';
  /** Wall-clock milliseconds. */
  readonly startedAtMs: number;
  /** What it works on. */
  readonly workers: readonly WorkerState[];
}

/** A run, as its server shows it. */
export interface WorkerState {
  /** Of its task. */
  readonly taskId: string;
  /** Of its task. */
  readonly taskType: string;
  /** Of its task. */
  readonly payload: Uint8Array;
  /** Where the task is from. */
  readonly queue: string;
  /** Wall-clock milliseconds. */
  readonly startedAtMs: number;
  /** When it must be over, in wall-clock milliseconds; 0 for never. */
  readonly deadlineMs: number;
}

/** An entry of a scheduler, as it shows it. */
export interface ScheduleEntry {
  /** Unique in its scheduler; the same in all that have the entry. */
  readonly id: string;
  /** As it was registered: `@every 1m`. */
  readonly spec: string;
  /** Of its tasks. */
  readonly taskType: string;
  /** Of its tasks. */
  readonly payload: Uint8Array;
  /** As asynq writes them: `Queue("low")`. */
  readonly options: readonly string[];
  /** 0 if there is none: it does not run yet, or never comes. */
  readonly nextEnqueueAtMs: number;
  /** 0 if there was none. */
  readonly prevEnqueueAtMs: number;
}

/** A tick that was enqueued. */
export interface EnqueueEvent {
  /** Of its task. */
  readonly taskId: string;
  /** When, in wall-clock milliseconds. */
  readonly atMs: number;
}

/** A part of a list. */
export interface Page {
  /** From 1. */
  readonly page: number;
  /** How many, at least 1. */
  readonly size: number;
}

/** A queue, in numbers. */
export interface QueueStats {
  /** Its name. */
  readonly queue: string;
  /** Tasks by state; with those that are held as a set, which are aggregating. */
  readonly counts: Readonly<Record<TaskState, number>>;
  /** Groups that have tasks. */
  readonly groups: number;
  /** How long the next pending one has waited; 0 if there is none. */
  readonly latencyMs: number;
  /** What it takes, estimated. */
  readonly memoryBytes: number;
  /** Today, by UTC; with those that failed. */
  readonly processed: number;
  /** Of those, the failed ones. */
  readonly failed: number;
  /** Ever. */
  readonly processedTotal: number;
  /** Of those, the failed ones. */
  readonly failedTotal: number;
  /** Whether nothing is dequeued. */
  readonly isPaused: boolean;
  /** When somebody looked, in wall-clock milliseconds. */
  readonly atMs: number;
}

/** A day of a queue. */
export interface DayStats {
  /** Its name. */
  readonly queue: string;
  /** `2026-11-21`. */
  readonly date: string;
  /** Runs that were done or failed. */
  readonly processed: number;
  /** Of those, the failed ones. */
  readonly failed: number;
}

/** What can be wrong with a queue; behind each what repairing it does. */
export type DefectKind =
  /** An id is in a list, and there is no such task: it is taken out. */
  | 'id-without-task'
  /** An id is in a list, and its task is in another state: it is taken out. */
  | 'id-in-wrong-list'
  /** A task is in no list, so nobody would ever find it: it comes into that of its state; an active one is recovered. */
  | 'task-in-no-list'
  /** A task has lost what it says: what is left of it is removed. */
  | 'task-without-message'
  /** A task is active and nobody has leased it: it is recovered. */
  | 'active-without-lease'
  /** A group has tasks and is not among the groups, so nobody would aggregate them: it is added. */
  | 'group-not-listed'
  /** A group is among the groups and has no tasks, now or later: it is removed from them. `where` is its name. */
  | 'group-without-tasks'
  /** A lock is held by a task that is gone, or over: it is freed. */
  | 'leaked-lock'
  /** What a task says cannot be read: it is left as it is. */
  | 'unreadable-message';

/** Something that is wrong with a queue. */
export interface Defect {
  /** What it is. */
  readonly kind: DefectKind;
  /** Where. */
  readonly queue: string;
  /** Of the task; empty if it is about a group. */
  readonly id: string;
  /** The list, the lock or the group; empty if it is in none. */
  readonly where: string;
}
