import type { Clock } from '../../core/clock.ts';
import type { TaskState } from '../task-state.ts';
import type {
  BrokerListener,
  CancelRequest,
  DayStats,
  Defect,
  EnqueueEvent,
  GroupInfo,
  GroupLimits,
  GroupTaking,
  LeasedTask,
  MaintenanceJob,
  NewTask,
  Page,
  QueueStats,
  ScheduleEntry,
  ServerState,
  Subscription,
  TaskFailure,
  TaskRecord,
  TaskSet,
  Tick,
} from './broker-types.ts';
import type { LeaseHolder, LeaseHolderOptions } from './lease-holder.ts';

export type * from './broker-types.ts';
export type * from './lease-holder.ts';

/**
 * Where tasks are kept: the seam between `Client`, `Server`, `Scheduler` and `Inspector`, and memory or Redis.
 *
 * Every operation is atomic: it checks first and writes last, and one that rejects has changed nothing; unless the way to
 * the broker has failed (`ERR_BROKER_UNAVAILABLE`), when nobody can know. The only identity of a run is its lease: what
 * comes with one that is not the task's present lease rejects with `ERR_LEASE_LOST`.
 *
 * Some operations must be called again and again, because they depend on time: `forward`, `recover`, … A broker lists those that it
 * needs in `maintenance`. One that runs in the process does them by itself, to the millisecond, and lists none.
 */
export interface Broker {
  /** What everybody who works with this broker reads the time from. */
  readonly clock: Clock;

  /**
   * The operations that servers, schedulers and waiting callers must call periodically. If one is missing, the broker does that
   * work by itself at the right time, and notifies its listeners of every result.
   */
  readonly maintenance: readonly MaintenanceJob[];

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
   * Adds the task of a tick of a schedule, unless this tick or a later one was added before, by whomever. The broker's time
   * decides what is early, not that of the caller: one scheduler with a wrong clock must not silence the others.
   *
   * @returns undefined if it was. A later tick that is more than two hours ahead of the broker's time does not count: the
   * clock was wrong when it was added.
   * @throws EscapementError `ERR_TICK_EARLY` - the tick is more than five minutes ahead of the broker's time. An error as of
   * `enqueue` has used up the tick.
   */
  enqueueTick(task: NewTask, tick: Tick): Promise<TaskRecord | undefined>;

  /** The latest tick that was added; undefined if there was none. */
  lastTickMs(queue: string, entryKey: string): Promise<number | undefined>;

  // Processing.

  /** Leases the first tasks of a queue, `limit` at most; none if it is paused. */
  dequeue(queue: string, limit: number, leaseMs: number): Promise<readonly LeasedTask[]>;

  /**
   * The task is done: retained as completed for the `retentionMs` of the message that is passed, or removed if that is 0 (of a
   * revoked task, whatever its own is). Frees its lock. Counts as processed.
   */
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

  /**
   * Somebody who renews leases whatever the event loop of the process does. Nobody needs to have one: a broker that is gone
   * with the process has none.
   *
   * @returns undefined if there is none.
   */
  leaseHolder?(options: LeaseHolderOptions): LeaseHolder | undefined;

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

  /** The groups of a queue that have tasks. */
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

  /**
   * Tells somebody what happens in some queues, soon after. What matters is never told by that alone.
   *
   * @param queues - he may hear of others, too.
   */
  subscribe(listener: BrokerListener, queues: readonly string[]): Promise<Subscription>;

  /**
   * Asks whoever runs the task to stop.
   *
   * @returns whether one that does has answered within `waitMs`.
   */
  cancel(request: CancelRequest, waitMs: number): Promise<boolean>;

  // Servers and schedulers.

  /** Shows a server to whoever asks; for `ttlMs`, unless the broker can tell by itself whether it is alive. */
  announceServer(read: () => ServerState, ttlMs: number): Promise<void>;
  /** It is gone. Does nothing if it was. */
  withdrawServer(id: string): Promise<void>;
  /** Those that are alive. */
  servers(): Promise<readonly ServerState[]>;

  /** As of servers. */
  announceScheduler(id: string, read: () => readonly ScheduleEntry[], ttlMs: number): Promise<void>;
  /** It is gone. Does nothing if it was. */
  withdrawScheduler(id: string): Promise<void>;
  /** Of all schedulers that are alive. */
  scheduleEntries(): Promise<readonly ScheduleEntry[]>;

  /** Keeps the last thousand. */
  recordEnqueueEvent(entryId: string, event: EnqueueEvent): Promise<void>;
  /** The newest first. */
  enqueueEvents(entryId: string, page: Page): Promise<readonly EnqueueEvent[]>;

  // Inspecting. Of a queue that is not there: `ERR_QUEUE_NOT_FOUND`; of a task: `ERR_TASK_NOT_FOUND`.

  /** Names of all queues that ever had a task and were not removed. */
  queues(): Promise<readonly string[]>;
  /** What a queue has, and has done. */
  queueStats(queue: string): Promise<QueueStats>;
  /** Of the last days, today first, by UTC. */
  history(queue: string, days: number): Promise<readonly DayStats[]>;
  /** One task. */
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
  /** As `deleteAll`: they become pending. */
  runAll(queue: string, state: TaskState, group?: string): Promise<number>;
  /** As `deleteAll`: they are archived. */
  archiveAll(queue: string, state: TaskState, group?: string): Promise<number>;

  /**
   * Looks for what no operation of ours leaves behind, but a crash of Redis, another program or a hand can: see `DefectKind`.
   * Others may work on the queue meanwhile. O(everything there is).
   *
   * @param options - `apply` to see to it; else nothing changes.
   */
  repair(queue: string, options: { readonly apply: boolean }): Promise<readonly Defect[]>;

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
