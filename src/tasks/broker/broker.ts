import type { Clock } from '../../core/clock.ts';
import type { TaskMessage } from '../task-message.ts';
import type { TaskState } from '../task-state.ts';

/**
 * Where tasks are kept: the seam between `Client`, `Server`, `Scheduler` and `Inspector`, and memory or Redis.
 *
 * Every operation is atomic: it checks first and writes last, and one that rejects has changed nothing; unless the way to
 * the broker has failed (`ERR_BROKER_UNAVAILABLE`), when nobody can know. The only identity of a run is its lease: what
 * comes with one that is not the task's present lease rejects with `ERR_LEASE_LOST`.
 *
 * What depends on time is asked for by those who serve a queue, again and again: `forward`, `expiredLeases`, … A broker
 * in the process knows of it at the right millisecond by itself, and says so: see `isSelfDriven`.
 */
export interface Broker {
  /** What everybody who works with this broker reads the time from. */
  readonly clock: Clock;

  /**
   * Whether it forwards, expires and reclaims by itself, at the very moment, and tells its listeners of all there is to
   * do. Then nobody needs to poll; the operations are there all the same.
   */
  readonly isSelfDriven: boolean;

  /** Resolves when the broker answers. */
  ping(): Promise<void>;

  /** Everything rejects with `ERR_BROKER_CLOSED` from now on. Idempotent. */
  close(): Promise<void>;

  // Writing.

  /**
   * Adds a task: scheduled if it is for later, else aggregating if it has a group, else pending.
   *
   * @throws EscapementError `ERR_TASK_DUPLICATE` - another one holds the lock of its `uniqueKey`. `ERR_TASK_ID_CONFLICT` -
   * its queue has one of that id, in whatever state; no lock is taken.
   */
  enqueue(task: NewTask): Promise<TaskRecord>;

  /** Adds many with as few round trips as it takes. Each is added or not for itself; outcomes are in their order. */
  enqueueMany(tasks: readonly NewTask[]): Promise<readonly PromiseSettledResult<TaskRecord>[]>;

  /**
   * Adds the task of a tick of a schedule, unless this tick or a later one was added before, by whomever.
   *
   * @returns undefined if it was. An error as of `enqueue` has used up the tick.
   */
  enqueueTick(task: NewTask, tick: Tick): Promise<TaskRecord | undefined>;

  /** The latest tick that was added; undefined if there was none. */
  lastTickMs(queue: string, entryKey: string): Promise<number | undefined>;

  // Processing.

  /** Leases the first tasks of a queue, `limit` at most; none if it is paused. */
  dequeue(queue: string, limit: number, leaseMs: number): Promise<readonly LeasedTask[]>;

  /** It is done: retained as completed, or gone. Frees its lock. Counts as processed. */
  complete(task: LeasedTask): Promise<void>;

  /** It failed, and runs again at `atMs`. Counts as processed and failed, and as one retry, if that is a failure. */
  retry(task: LeasedTask, failure: TaskFailure, atMs: number): Promise<void>;

  /** It failed for the last time. Counts as processed and failed. Frees its lock. */
  archive(task: LeasedTask, failure: TaskFailure): Promise<void>;

  /** It goes back to the head of its queue, as if it had not been leased. */
  release(task: LeasedTask): Promise<void>;

  /** It was cancelled, and is not wanted any more. Frees its lock. */
  discard(task: LeasedTask): Promise<void>;

  /** One that is over can be extended until somebody recovers the task. @returns those whose lease is lost. */
  extendLeases(tasks: readonly LeasedTask[], leaseMs: number): Promise<readonly LeasedTask[]>;

  /** Keeps what a run has to show; a later result replaces it. */
  writeResult(task: LeasedTask, result: Uint8Array): Promise<void>;

  /** Keeps how far a run has got: JSON. */
  writeProgress(task: LeasedTask, progress: string): Promise<void>;

  // Forwarding and recovering.

  /** Moves what is due to where it is processed. @returns how many. */
  forward(queues: readonly string[]): Promise<number>;

  /**
   * Active tasks whose lease ended more than `graceMs` ago, or that have none: under a lease of their own, which only this
   * caller has, and which ends like any other if it does nothing.
   */
  recover(queues: readonly string[], graceMs: number, leaseMs: number): Promise<readonly LeasedTask[]>;

  /** Removes completed tasks whose retention is over, and trims the archive, `limit` of a queue at most. @returns how many. */
  deleteExpired(queues: readonly string[], limit: number): Promise<number>;

  // Aggregation.

  groups(queue: string): Promise<readonly GroupInfo[]>;

  /**
   * Takes tasks out of a group if it is time: it has `maxSize`, or its oldest has waited for `maxDelayMs`, or nothing has
   * come for `graceMs`. The oldest come first.
   *
   * @param holdMs - after that long they are back in the group, unless they were replaced.
   */
  takeGroup(queue: string, group: string, limits: GroupLimits, holdMs: number): Promise<GroupTaking>;

  /**
   * Adds a task that stands for the tasks of a set, and removes those and their locks. Both, or neither. It may take the
   * place of one of them: its id, and its lock.
   *
   * @throws EscapementError `ERR_LEASE_LOST` - the set is back in its group, was replaced, or is gone with its queue.
   */
  replaceSet(set: TaskSet, task: NewTask): Promise<TaskRecord>;

  /** Puts sets that were held for too long back into their groups. @returns how many tasks. */
  reclaimSets(queues: readonly string[]): Promise<number>;

  // Hints and cancellation.

  /** Tells somebody what happens, soon after. What matters is never told by that alone. */
  subscribe(listener: BrokerListener): Promise<Subscription>;

  /**
   * Asks whoever runs the task to stop.
   *
   * @returns whether one that does has answered within `waitMs`.
   */
  cancel(request: CancelRequest, waitMs: number): Promise<boolean>;

  // Servers and schedulers.

  /** Shows a server to whoever asks; for `ttlMs`, unless the broker can tell by itself whether it is alive. */
  announceServer(read: () => ServerState, ttlMs: number): Promise<void>;
  withdrawServer(id: string): Promise<void>;
  servers(): Promise<readonly ServerState[]>;

  /** As of servers. */
  announceScheduler(id: string, read: () => readonly ScheduleEntry[], ttlMs: number): Promise<void>;
  withdrawScheduler(id: string): Promise<void>;
  scheduleEntries(): Promise<readonly ScheduleEntry[]>;

  /** Keeps the last thousand. */
  recordEnqueueEvent(entryId: string, event: EnqueueEvent): Promise<void>;
  /** The newest first. */
  enqueueEvents(entryId: string, page: Page): Promise<readonly EnqueueEvent[]>;

  // Inspecting. Of a queue that is not there: `ERR_QUEUE_NOT_FOUND`; of a task: `ERR_TASK_NOT_FOUND`.

  queues(): Promise<readonly string[]>;
  queueStats(queue: string): Promise<QueueStats>;
  /** Of the last days, today first, by UTC. */
  history(queue: string, days: number): Promise<readonly DayStats[]>;
  task(queue: string, id: string): Promise<TaskRecord>;
  /** Pending: the next one first. Scheduled and retry: the earliest first. Others: the oldest first. */
  tasks(queue: string, state: TaskState, page: Page, group?: string): Promise<readonly TaskRecord[]>;

  /** @throws EscapementError `ERR_TASK_STATE` - it is active, or in a set that somebody aggregates; as below. */
  deleteTask(queue: string, id: string): Promise<void>;
  /** @throws EscapementError `ERR_TASK_STATE` - it is active, or pending. */
  runTask(queue: string, id: string): Promise<void>;
  /** @throws EscapementError `ERR_TASK_STATE` - it is active, or archived. */
  archiveTask(queue: string, id: string): Promise<void>;
  /** @throws EscapementError `ERR_TASK_STATE` - it is not scheduled. */
  updatePayload(queue: string, id: string, payload: Uint8Array): Promise<void>;

  /** Of what waits, the earliest first. @returns how many. In pieces: what comes meanwhile may or may not be among them. */
  deleteAll(queue: string, state: TaskState, group?: string): Promise<number>;
  runAll(queue: string, state: TaskState, group?: string): Promise<number>;
  archiveAll(queue: string, state: TaskState, group?: string): Promise<number>;

  /** Nothing is dequeued while it is paused. @throws EscapementError `ERR_QUEUE_STATE` - it is. */
  pause(queue: string): Promise<void>;
  /** @throws EscapementError `ERR_QUEUE_STATE` - it is not paused. */
  resume(queue: string): Promise<void>;
  /**
   * Removes a queue with everything in it.
   *
   * @throws EscapementError `ERR_QUEUE_NOT_EMPTY` - it has tasks in any state, and no `force`; or active ones.
   */
  removeQueue(queue: string, options: { readonly force: boolean }): Promise<void>;
}

/** A task that is to be added. */
export interface NewTask {
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
  readonly atMs: number;
}

/** A task that somebody processes. */
export interface LeasedTask {
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
  readonly error: string;
  /** Whether it counts: as failed, and as a retry. */
  readonly isFailure: boolean;
  /** Whether it counts as a worker that was gone. */
  readonly isRecovery?: boolean;
}

/** A task as a broker shows it. */
export interface TaskRecord {
  readonly message: TaskMessage;
  readonly state: TaskState;
  /** When it is processed next: of pending ones now. 0 if it is not. */
  readonly nextProcessAtMs: number;
  readonly result: Uint8Array | undefined;
  /** JSON. */
  readonly progress: string | undefined;
  /** Active, and its lease is over. */
  readonly isOrphaned: boolean;
}

export interface GroupInfo {
  readonly group: string;
  readonly size: number;
}

export interface GroupLimits {
  readonly graceMs: number;
  /** 0 for none. */
  readonly maxDelayMs: number;
  /** 0 for none. */
  readonly maxSize: number;
}

export interface GroupTaking {
  readonly set: TaskSet | undefined;
  /** When to ask again, in milliseconds; undefined if the group is empty now. */
  readonly againInMs: number | undefined;
}

/** Tasks that were taken out of a group. */
export interface TaskSet {
  readonly id: string;
  readonly queue: string;
  readonly group: string;
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

export interface Subscription {
  close(): Promise<void>;
}

/** What becomes of a task that is cancelled while it runs. */
export type CancelOutcome = 'retry' | 'archive' | 'delete';

export interface CancelRequest {
  readonly taskId: string;
  /** Undefined: of whatever queue. */
  readonly queue: string | undefined;
  readonly outcome: CancelOutcome;
}

export interface ServerState {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly concurrency: number;
  readonly queues: Readonly<Record<string, number>>;
  readonly strictPriority: boolean;
  readonly status: 'active' | 'stopped' | 'closed';
  readonly startedAtMs: number;
  readonly workers: readonly WorkerState[];
}

export interface WorkerState {
  readonly taskId: string;
  readonly taskType: string;
  readonly payload: Uint8Array;
  readonly queue: string;
  readonly startedAtMs: number;
  readonly deadlineMs: number;
}

export interface ScheduleEntry {
  readonly id: string;
  readonly spec: string;
  readonly taskType: string;
  readonly payload: Uint8Array;
  /** As asynq writes them: `Queue("low")`. */
  readonly options: readonly string[];
  /** 0 if there is none: it does not run yet, or never comes. */
  readonly nextEnqueueAtMs: number;
  /** 0 if there was none. */
  readonly prevEnqueueAtMs: number;
}

export interface EnqueueEvent {
  readonly taskId: string;
  readonly atMs: number;
}

export interface Page {
  /** From 1. */
  readonly page: number;
  readonly size: number;
}

export interface QueueStats {
  readonly queue: string;
  readonly counts: Readonly<Record<TaskState, number>>;
  readonly groups: number;
  /** How long the next pending one has waited; 0 if there is none. */
  readonly latencyMs: number;
  readonly memoryBytes: number;
  /** Today, by UTC; with those that failed. */
  readonly processed: number;
  readonly failed: number;
  readonly processedTotal: number;
  readonly failedTotal: number;
  readonly isPaused: boolean;
  readonly atMs: number;
}

export interface DayStats {
  readonly queue: string;
  /** `2026-11-21`. */
  readonly date: string;
  readonly processed: number;
  readonly failed: number;
}
