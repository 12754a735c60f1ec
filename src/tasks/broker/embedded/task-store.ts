import type { Clock } from '../../../core/clock.ts';
import { SystemTimer } from '../../../timer/system-timer.ts';
import { requireNewTask } from '../../task-options.ts';
import { queueNotFound, taskDuplicate, taskIdConflict, taskNotFound } from '../broker-errors.ts';
import type { ResolvedBrokerSettings } from '../broker-settings.ts';
import type {
  BrokerListener,
  EnqueueEvent,
  NewTask,
  ScheduleEntry,
  ServerState,
  Subscription,
} from '../broker.ts';
import { Notifications } from './notifications.ts';
import { listOf, NO_TIMER, QueueState, TaskRow, type ListedState } from './task-lists.ts';

/**
 * The tasks of the embedded broker, and the only ways in which they move:
 *
 *      add ──► [scheduled] ──(due)──► [pending] ──lease──► [active] ──► [retry] ──(due)──► …
 *         └──► [a group]                                      ├──► [completed] ──(retention)──► remove
 *                                                             └──► [archived] ──(retention)──► remove
 *
 * Each box is an intrusive list (task-lists.ts), so each arrow is O(1). A row that waits for a time has an entry in the one
 * timer: 32 bytes, one wake-up for all. A move takes the row out of its list and cancels its entry; callers check first
 * whether the move is allowed.
 */
export class TaskStore {
  readonly clock: Clock;
  readonly timer: SystemTimer;
  /** Read the states of servers and schedulers, so that the states are always current. */
  readonly servers = new Map<string, () => ServerState>();
  readonly schedulers = new Map<string, () => readonly ScheduleEntry[]>();
  /** By schedule entry, in order of the latest event. */
  readonly enqueueEvents = new Map<string, EnqueueEvent[]>();
  readonly notifications = new Notifications();
  readonly locks = new UniqueLocks();
  readonly queues = new Map<string, QueueState>();
  readonly #maxArchived: number;
  readonly #archiveRetentionMs: number;
  #serial = 0;
  #isClosed = false;

  constructor({ clock, maxArchived, archiveRetentionMs }: ResolvedBrokerSettings) {
    this.clock = clock;
    this.timer = new SystemTimer({ clock, name: 'embedded broker' });
    this.timer.unref();
    this.#maxArchived = maxArchived;
    this.#archiveRetentionMs = archiveRetentionMs;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  close(): void {
    this.#isClosed = true;
    this.timer.close();
    this.notifications.close();
  }

  /** While there is a subscription (of a server, or of a caller of `waitFor`), the timer keeps the process alive. */
  subscribe(listener: BrokerListener): Subscription {
    this.notifications.add(listener);
    this.timer.ref();
    let isOver = false;
    return {
      close: () => {
        if (!isOver) this.notifications.remove(listener);
        isOver = true;
        if (this.notifications.listeners.length === 0) this.timer.unref();
        return Promise.resolve();
      },
    };
  }

  /** @throws EscapementError `ERR_QUEUE_NOT_FOUND` */
  queue(name: string): QueueState {
    const queue = this.queues.get(name);
    if (queue === undefined) throw queueNotFound(name);
    return queue;
  }

  /** @throws EscapementError `ERR_QUEUE_NOT_FOUND` or `ERR_TASK_NOT_FOUND` */
  row(queue: string, id: string): TaskRow {
    const row = this.queue(queue).rows.get(id);
    if (row === undefined) throw taskNotFound(queue, id);
    return row;
  }

  /** Returns the queue of that name, which is created if there is none. */
  openQueue(name: string): QueueState {
    let queue = this.queues.get(name);
    if (queue === undefined) {
      queue = new QueueState(name);
      this.queues.set(name, queue);
    }
    return queue;
  }

  /**
   * Checks whether a task may be added, as if the rows that are `leaving` were removed.
   *
   * @throws TypeError or RangeError - the name of its queue, or one of its times, is not valid.
   * @throws EscapementError `ERR_TASK_DUPLICATE` or `ERR_TASK_ID_CONFLICT`
   */
  check(task: NewTask, leaving?: { has(row: TaskRow): boolean }): void {
    const { id, queue, uniqueKey } = task.message;
    requireNewTask(task);
    if (isUnique(task)) {
      const owner = this.locks.ownerOf(uniqueKey, this.clock.now());
      if (owner !== undefined && leaving?.has(owner) !== true) throw taskDuplicate(queue, owner.message.id);
    }
    const namesake = this.queues.get(queue)?.rows.get(id);
    if (namesake !== undefined && leaving?.has(namesake) !== true) throw taskIdConflict(queue, id);
  }

  /** Adds a task that `check` has accepted. */
  add(task: NewTask): TaskRow {
    const { message, processAtMs, uniqueTtlMs } = task;
    const wallNowMs = this.clock.wallNow();
    const queue = this.openQueue(message.queue);
    const row = new TaskRow(message);
    flatten(message.id);
    queue.addRow(row);
    if (isUnique(task)) {
      const delayMs = Math.max(processAtMs - wallNowMs, 0);
      this.locks.take(message.uniqueKey, row, this.clock.now() + delayMs + uniqueTtlMs);
    }
    if (processAtMs > wallNowMs) this.#wait(row, queue, 'scheduled', processAtMs, wallNowMs);
    else this.#makeReady(row, queue, wallNowMs);
    return row;
  }

  /** Moves a row to the end of its queue. */
  makePending(row: TaskRow): void {
    const queue = this.#leave(row);
    row.atMs = this.clock.wallNow();
    queue.lists.pending.push(row);
    this.notifications.work(queue);
  }

  /** Moves a row to the head of its queue. */
  release(row: TaskRow): void {
    const queue = this.#leave(row);
    row.atMs = this.clock.wallNow();
    queue.lists.pending.unshift(row);
    this.notifications.work(queue);
  }

  /** Leases a row. No lease of this broker has had its epoch, not even one of an earlier task with that id. */
  lease(row: TaskRow, leaseMs: number, nowMs: number): void {
    const queue = this.#leave(row);
    row.serial = ++this.#serial;
    queue.lists.active.push(row);
    this.#armLease(row, leaseMs, nowMs);
  }

  extendLease(row: TaskRow, leaseMs: number, nowMs: number): void {
    this.#disarm(row);
    this.#armLease(row, leaseMs, nowMs);
  }

  makeRetry(row: TaskRow, atMs: number): void {
    const wallNowMs = this.clock.wallNow();
    const queue = this.#leave(row);
    if (atMs > wallNowMs) this.#wait(row, queue, 'retry', atMs, wallNowMs);
    else this.#wait(row, queue, 'retry', wallNowMs, wallNowMs);
  }

  /** Retains a row until `untilMs`. */
  makeCompleted(row: TaskRow, untilMs: number, wallNowMs: number): void {
    const queue = this.#leave(row);
    this.locks.free(row);
    this.#wait(row, queue, 'completed', untilMs, wallNowMs);
    this.notifications.settled(queue, row.message.id);
  }

  /** Moves a row to the archive, which removes its oldest row if it has too many. */
  makeArchived(row: TaskRow): void {
    const wallNowMs = this.clock.wallNow();
    const queue = this.#leave(row);
    const { archived } = queue.lists;
    this.locks.free(row);
    this.#wait(row, queue, 'archived', wallNowMs + this.#archiveRetentionMs, wallNowMs);
    this.notifications.settled(queue, row.message.id);
    while (archived.head !== undefined && archived.size > this.#maxArchived) this.remove(archived.head);
  }

  remove(row: TaskRow): void {
    const queue = this.#leave(row);
    this.locks.free(row);
    queue.deleteRow(row);
    this.notifications.settled(queue, row.message.id);
  }

  /** Moves a due row to its queue or group. */
  forward(row: TaskRow): void {
    const queue = this.#leave(row);
    this.#makeReady(row, queue, this.clock.wallNow());
  }

  /** Adds a row that is in no list to its queue or group. */
  #makeReady(row: TaskRow, queue: QueueState, wallNowMs: number): void {
    const { group } = row.message;
    if (group === '') {
      row.atMs = wallNowMs;
      queue.lists.pending.push(row);
      this.notifications.work(queue);
    } else {
      row.atMs = this.clock.now();
      row.serial = ++this.#serial;
      queue.group(group).push(row);
      this.notifications.grouped(queue, group);
    }
  }

  #wait(row: TaskRow, queue: QueueState, state: ListedState, atMs: number, wallNowMs: number): void {
    row.atMs = atMs;
    row.serial = ++this.#serial;
    queue.lists[state].push(row);
    row.timer = this.timer.schedule(atMs - wallNowMs, this.#wake, row);
  }

  #armLease(row: TaskRow, leaseMs: number, nowMs: number): void {
    row.atMs = nowMs + leaseMs;
    row.timer = this.timer.schedule(leaseMs, this.#wake, row);
  }

  #leave(row: TaskRow): QueueState {
    const { queue } = listOf(row);
    if (row.timer !== NO_TIMER) this.#disarm(row);
    queue.take(row);
    return queue;
  }

  #disarm(row: TaskRow): void {
    this.timer.cancel(row.timer);
    row.timer = NO_TIMER;
  }

  /** Called when the entry of a row fires: one function for all rows, so that a row needs no closure. */
  readonly #wake = (row: TaskRow): void => {
    row.timer = NO_TIMER;
    const { list } = row;
    if (list === undefined || list.queue.isRemoved) return;
    if (list.state === 'active') {
      this.notifications.leaseExpired(list.queue);
      return;
    }
    const aheadMs = row.atMs - this.clock.wallNow();
    // The wall clock was set back, or runs slower than the monotonic clock: the row is not due yet.
    if (aheadMs > 0) row.timer = this.timer.schedule(aheadMs, this.#wake, row);
    else if (list.state === 'scheduled' || list.state === 'retry') this.forward(row);
    else this.remove(row);
  };
}

function isUnique({ uniqueTtlMs, message }: NewTask): boolean {
  return uniqueTtlMs > 0 && message.uniqueKey !== '';
}

/** V8 keeps the pieces of a concatenated id until a character is read: a flat string takes less memory, and a map finds it faster. */
function flatten(text: string): void {
  text.charCodeAt(0);
}

interface UniqueLock {
  readonly owner: TaskRow;
  /** On the monotonic clock. */
  readonly endsAtMs: number;
}

/**
 * Locks by their unique keys. An expired lock is noticed when it is next wanted, so it needs no timer; and because a lock is
 * freed with its task at the latest, there are never more locks than tasks. Every operation is O(1).
 */
export class UniqueLocks {
  readonly #locks = new Map<string, UniqueLock>();

  get size(): number {
    return this.#locks.size;
  }

  ownerOf(key: string, nowMs: number): TaskRow | undefined {
    const lock = this.#locks.get(key);
    if (lock === undefined || lock.endsAtMs <= nowMs) return undefined;
    // A removed queue frees its locks in pieces, later.
    return lock.owner.list?.queue.isRemoved === true ? undefined : lock.owner;
  }

  /** Takes a lock that is free. */
  take(key: string, owner: TaskRow, endsAtMs: number): void {
    this.#locks.set(key, { owner, endsAtMs });
  }

  free(row: TaskRow): void {
    const { uniqueKey } = row.message;
    if (uniqueKey !== '' && this.#locks.get(uniqueKey)?.owner === row) this.#locks.delete(uniqueKey);
  }

  entries(): Iterable<readonly [string, UniqueLock]> {
    return this.#locks;
  }
}
