import type { Clock } from '../../core/clock.ts';
import type { TaskChange, TaskState } from '../task-state.ts';
import type {
  BrokerListener,
  CancelRequest,
  DayStats,
  Defect,
  EnqueueEvent,
  GroupInfo,
  GroupLimits,
  GroupTaking,
  KeyStats,
  LeasedTask,
  LeaseHolder,
  LeaseHolderOptions,
  MaintenanceJob,
  NewTask,
  Page,
  QueueLimits,
  QueueStats,
  ScanPiece,
  ScanPosition,
  ScheduleEntry,
  ServerState,
  Subscription,
  TaskFailure,
  TaskRecord,
  TaskSet,
  TaskTarget,
  Tick,
} from './broker-types.ts';

export type * from './broker-types.ts';

/**
 * The life of a task: what `Client`, `Server` and `Scheduler` do with tasks, in memory or on Redis.
 *
 * Every operation is atomic: it checks first and writes last, and one that rejects has changed nothing; except that after
 * `ERR_BROKER_UNAVAILABLE` (the connection failed) the change may have been made. A run is identified by its lease alone: an
 * operation with a lease that is not the task's present one rejects with `ERR_LEASE_LOST`.
 *
 * Some operations must be called again and again, because they depend on time: `forward`, `recover`, … A broker lists those that it
 * needs in `maintenance`. One that runs in the process does them by itself, to the millisecond, and lists none.
 */
export interface TaskBroker {
  /** Where the time of everything that uses this broker comes from. */
  readonly clock: Clock;

  /**
   * The operations that servers, schedulers and waiting callers must call periodically. If one is missing, the broker does that
   * work by itself at the right time, and notifies its listeners of every result.
   */
  readonly maintenance: readonly MaintenanceJob[];

  /** Resolves when the broker answers. */
  ping(): Promise<void>;

  /** Closes the broker: operations reject with `ERR_BROKER_CLOSED` from now on. Idempotent. */
  close(): Promise<void>;

  // Enqueueing.

  /**
   * Adds a task: scheduled if `processAtMs` is in the future, else aggregating if it has a group, else pending.
   *
   * If a task that waits holds the lock of its `uniqueKey`, and it is not to be rejected, that task gets the message, the time and
   * the group of this one, but keeps its id, its retries and its last error. It stays where it is unless its state, group or key is
   * another one, or it is the next.
   * With `'extend'` the lock holds as long as a new one.
   *
   * @throws EscapementError `ERR_TASK_DUPLICATE` - another task holds the lock of its `uniqueKey`; of a task to replace, one that runs,
   * or is being aggregated. `ERR_TASK_ID_CONFLICT` - its queue has a task with that id, in whatever state; no lock is taken.
   */
  enqueue(task: NewTask): Promise<TaskRecord>;

  /** Adds tasks with as few round trips as possible. Each succeeds or fails by itself; outcomes are in order of the tasks. */
  enqueueMany(tasks: readonly NewTask[]): Promise<readonly PromiseSettledResult<TaskRecord>[]>;

  /**
   * Adds the task of a tick of a schedule, unless a scheduler has added this tick or a later one. The broker's clock decides
   * what is early, not the caller's: one scheduler with a wrong clock must not stop the others.
   *
   * @returns undefined if the tick was added before. A later tick that is more than two hours ahead of the broker's time does
   * not count: the clock was wrong when it was added.
   * @throws EscapementError `ERR_TICK_EARLY` - the tick is more than five minutes ahead of the broker's time. After an error of
   * `enqueue` the tick counts as added.
   */
  enqueueTick(task: NewTask, tick: Tick): Promise<TaskRecord | undefined>;

  /** Returns the latest tick that was added; undefined if there is none. */
  lastTickMs(queue: string, entryKey: string): Promise<number | undefined>;

  // Processing.

  /**
   * Leases the next tasks of a queue, at most `limit`, and no more than its limits allow; none if it is paused.
   *
   * One task of each key that has pending tasks, then the next one of each: a key gets its turn after at most as many tasks as there are
   * other keys. Within a key the first one comes first. A key whose first task has come waits for its turn behind the others.
   *
   * Each lease takes a place until it ends (an operation ends the run, or the task is recovered and that run ends), and one token of each
   * rate, which does not come back. When tasks that were held back may run, the listeners are notified of work.
   */
  dequeue(queue: string, limit: number, leaseMs: number): Promise<readonly LeasedTask[]>;

  /**
   * Completes a task: it is retained for as long as the message that is passed requires, or removed (as a revoked task is,
   * whatever its own message has). Frees its lock. Counts as processed.
   */
  complete(task: LeasedTask): Promise<void>;

  /** Schedules a failed task to run again at `atMs`. A failure counts as processed, as failed, and as one retry. */
  retry(task: LeasedTask, failure: TaskFailure, atMs: number): Promise<void>;

  /** Archives a task that failed for the last time. Counts as processed and failed. Frees its lock. */
  archive(task: LeasedTask, failure: TaskFailure): Promise<void>;

  /** Returns a task to the head of the tasks with its key, as if it had not been leased. */
  release(task: LeasedTask): Promise<void>;

  /** Removes a task that was cancelled. Frees its lock. */
  discard(task: LeasedTask): Promise<void>;

  /** Extends leases, expired ones too unless the task was recovered. @returns the tasks whose lease is lost. */
  extendLeases(tasks: readonly LeasedTask[], leaseMs: number): Promise<readonly LeasedTask[]>;

  /**
   * Returns a holder, which renews leases even while the event loop is blocked; undefined if the broker has none. A broker
   * whose tasks end with the process needs none.
   */
  leaseHolder?(options: LeaseHolderOptions): LeaseHolder | undefined;

  /** Stores the result of a run; a later one replaces it. */
  writeResult(task: LeasedTask, result: Uint8Array): Promise<void>;

  /** Stores the progress of a run: JSON. */
  writeProgress(task: LeasedTask, progress: string): Promise<void>;

  // Maintenance.

  /** Moves scheduled and retry tasks that are due to their queue or group, as many as fit in one step. @returns how many. */
  forward(queues: readonly string[]): Promise<number>;

  /**
   * Leases active tasks whose lease ended more than `graceMs` ago, or that have none. The lease is like any other: if nothing
   * extends it, it ends.
   */
  recover(queues: readonly string[], graceMs: number, leaseMs: number): Promise<readonly LeasedTask[]>;

  /** Removes expired completed tasks and trims the archive, at most `limit` tasks a queue. @returns how many. */
  deleteExpired(queues: readonly string[], limit: number): Promise<number>;

  // Aggregation.

  /** Returns the groups of a queue that have tasks: none if it does not exist. */
  groups(queue: string): Promise<readonly GroupInfo[]>;

  /**
   * Takes tasks out of a group if it is time: it has `maxSize` tasks, or its oldest has waited for `maxDelayMs`, or no task has
   * come for `graceMs`. The oldest come first.
   *
   * @param holdMs - after that time they are back in the group, unless they were replaced.
   */
  takeGroup(queue: string, group: string, limits: GroupLimits, holdMs: number): Promise<GroupTaking>;

  /**
   * Adds a task that replaces the tasks of a set, and removes those and their locks. Both, or neither. The new task may have
   * the id and the lock of one of them. A duplicate of another task is rejected, whatever it requires.
   *
   * @throws EscapementError `ERR_LEASE_LOST` - the set is back in its group, was replaced, or was removed with its queue.
   */
  replaceSet(set: TaskSet, task: NewTask): Promise<TaskRecord>;

  /** Returns sets that were held for too long to their groups. @returns how many tasks. */
  reclaimSets(queues: readonly string[]): Promise<number>;

  // Notifications and cancellation.

  /**
   * Notifies a listener of events in some queues, soon after each. A notification may be lost: it saves time, and nothing may
   * depend on it alone.
   *
   * @param queues - the listener may be notified of others, too.
   */
  subscribe(listener: BrokerListener, queues: readonly string[]): Promise<Subscription>;

  /** Requests the server that runs a task to stop it. @returns whether a server that runs it has answered within `waitMs`. */
  cancel(request: CancelRequest, waitMs: number): Promise<boolean>;
}

/** Registry of servers, and of schedulers with their entries. */
export interface BrokerRegistry {
  /** Lists a server in `servers` for `ttlMs`, unless the broker detects by itself whether it is alive. */
  announceServer(read: () => ServerState, ttlMs: number): Promise<void>;
  /** Removes a server from the list. Does nothing if it is not there. */
  withdrawServer(server: ServerState): Promise<void>;
  /** Lists the entries of a scheduler in `scheduleEntries`, as `announceServer` does. */
  announceScheduler(id: string, read: () => readonly ScheduleEntry[], ttlMs: number): Promise<void>;
  /** Removes a scheduler from the list. Does nothing if it is not there. */
  withdrawScheduler(id: string): Promise<void>;
  /** Stores an event of a schedule entry; the last thousand are kept. */
  recordEnqueueEvent(entryId: string, event: EnqueueEvent): Promise<void>;

  /** Returns the servers that are alive. */
  servers(): Promise<readonly ServerState[]>;
  /** Returns the entries of all schedulers that are alive. */
  scheduleEntries(): Promise<readonly ScheduleEntry[]>;
  /** Returns events of a schedule entry, the newest first. */
  enqueueEvents(entryId: string, page: Page): Promise<readonly EnqueueEvent[]>;
}

/**
 * Administration: what `Inspector` needs of a broker. Operations on a queue that does not exist reject with
 * `ERR_QUEUE_NOT_FOUND`, those on a task with `ERR_TASK_NOT_FOUND`.
 */
export interface BrokerAdministration {
  /** Returns the names of all queues that ever had a task and were not removed. */
  queues(): Promise<readonly string[]>;
  /** Returns counts and sizes of a queue. */
  queueStats(queue: string): Promise<QueueStats>;
  /** Returns the counts of the last days by UTC, today first. */
  history(queue: string, days: number): Promise<readonly DayStats[]>;
  /** Returns one task. */
  task(queue: string, id: string): Promise<TaskRecord>;
  /**
   * Returns a page of a state. Pending: the next one first. Scheduled and retry: the earliest first. Others: the oldest first (on
   * Redis, of completed tasks the first that expires); of aggregating tasks those of a group, and behind them those of its sets.
   */
  tasks(queue: string, state: TaskState, page: Page, group?: string): Promise<readonly TaskRecord[]>;

  /**
   * Reads a piece of the tasks in some states, in any order: at most `limit` tasks, and about a megabyte of payloads. All pieces together
   * have every task that is in one of the states from the beginning to the end of the scan; one may be there twice, on Redis. The
   * work of a call is bounded, and does not grow with what was read before. A scan that is given up needs no end.
   *
   * @param from - `next` of the piece before; undefined to begin. A queue that is removed meanwhile ends the scan.
   */
  scan(queue: string, states: readonly TaskState[], limit: number, from?: ScanPosition): Promise<ScanPiece>;

  /**
   * Deletes, runs (makes pending) or archives one task, or all of a state. All are changed in pieces, scheduled and retry tasks in
   * order of their time; tasks that come meanwhile may or may not be among them.
   *
   * @returns how many tasks were changed.
   * @throws EscapementError `ERR_TASK_STATE` - the change is refused in that state (see `TASK_CHANGES`), or the task is in a
   * set that is being aggregated.
   */
  change(queue: string, target: TaskTarget, change: TaskChange): Promise<number>;

  /** @throws EscapementError `ERR_TASK_STATE` - the task is not scheduled. */
  updatePayload(queue: string, id: string, payload: Uint8Array): Promise<void>;

  /**
   * Finds defects that no operation causes, but a crash of Redis, another program or a manual change can: see `DefectKind`.
   * Other programs may work on the queue meanwhile. O(tasks); on Redis O(keys of the database).
   *
   * @param options - `apply` to repair it; else nothing changes.
   */
  repair(queue: string, options: { readonly apply: boolean }): Promise<readonly Defect[]>;

  /** Returns the limits of a queue as they were set; undefined if it has none, or does not exist. */
  limits(queue: string): Promise<QueueLimits | undefined>;
  /** Sets the limits of a queue, which is created if there is none; undefined removes them, and creates none. Leases that exceed them go on. */
  setLimits(queue: string, limits: QueueLimits | undefined): Promise<void>;
  /** Returns a page of the keys that have pending or active tasks, in any order that stays the same while nothing changes. */
  keys(queue: string, page: Page): Promise<readonly KeyStats[]>;

  /** Pauses a queue: nothing is dequeued. @throws EscapementError `ERR_QUEUE_STATE` - it is paused. */
  pause(queue: string): Promise<void>;
  /** @throws EscapementError `ERR_QUEUE_STATE` - the queue is not paused. */
  resume(queue: string): Promise<void>;
  /**
   * Removes a queue with everything in it.
   *
   * @throws EscapementError `ERR_QUEUE_NOT_EMPTY` - it has tasks in any state, and `force` is not set; or active tasks.
   */
  removeQueue(queue: string, options: { readonly force: boolean }): Promise<void>;
}

/** Where tasks are kept: memory or Redis. `Client`, `Server`, `Scheduler` and `Inspector` work with any broker. */
export interface Broker extends TaskBroker, BrokerRegistry, BrokerAdministration {}
