import type { Clock } from '../../../core/clock.ts';
import { MINUTE_MS } from '../../../core/units.ts';
import { SystemTimer, type TimerId } from '../../../timer/system-timer.ts';
import { queueNotFound, taskDuplicate, taskIdConflict, taskNotFound } from '../broker-errors.ts';
import { replacedBy, type TaskMessage } from '../../task-options.ts';
import type { ResolvedBrokerSettings } from '../broker-settings.ts';
import type { BrokerListener, NewTask, ScheduleEntry, ServerState, Subscription } from '../broker.ts';
import { EnqueueEvents } from './history.ts';
import { Notifications } from './notifications.ts';
import { Kind, type StoreJournal } from './journal-format.ts';
import { JournaledRow } from './journaled-row.ts';
import { NO_TIMER, type TaskList, TaskRow, UniqueLocks } from './task-lists.ts';
import { listOf, QueueState, type ListedState } from './queue-state.ts';

/** While tasks wait for a time, and there is a subscription: then the wall clock is read again, which may have been set. */
const LONGEST_WAIT_MS = MINUTE_MS;

/** Tasks that are moved in one turn of the event loop: some milliseconds. */
export const ROWS_PER_TURN = 1_000;

/** Numbers that the journal reserves at once: as many are left when it reserves the next ones. */
const SERIALS_RESERVED = 2 ** 20;

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
  enqueueEvents = new EnqueueEvents();
  readonly notifications = new Notifications();
  locks = new UniqueLocks();
  queues = new Map<string, QueueState>();
  /** Queues that were removed, and whose rows are being removed. */
  readonly leaving = new Set<QueueState>();
  readonly settings: ResolvedBrokerSettings;
  /** Each move writes its change there. Undefined for a broker without a folder. */
  journal: StoreJournal | undefined;
  /** The latest number of a task, or epoch of a lease. */
  serial = 0;
  /** Numbers of tasks and epochs of leases are below it, also those of a broker that was killed. */
  serialLimit = Infinity;
  isClosed = false;
  /** Pending while tasks wait for a time, and there is a subscription. */
  clockCheck: TimerId = NO_TIMER;

  constructor(settings: ResolvedBrokerSettings) {
    const { clock } = settings;
    this.clock = clock;
    this.timer = new SystemTimer({ clock, name: 'embedded broker', maxTasksPerTurn: ROWS_PER_TURN });
    this.timer.unref();
    this.settings = settings;
  }

  /** Returns an empty store with the same settings. */
  blank(): TaskStore {
    return new TaskStore(this.settings);
  }

  nextSerial(): number {
    if (++this.serial > this.serialLimit - SERIALS_RESERVED) this.reserveSerials();
    return this.serial;
  }

  reserveSerials(): void {
    if (this.journal === undefined) return;
    this.serialLimit = this.serial + 2 * SERIALS_RESERVED;
    this.journal.write(Kind.serial, this.serialLimit);
  }

  close(): void {
    this.isClosed = true;
    this.timer.close();
    this.notifications.close();
  }

  /** While there is a subscription (of a server, or of a caller of `waitFor`), the timer keeps the process alive. */
  subscribe(listener: BrokerListener): Subscription {
    this.notifications.add(listener);
    this.timer.ref();
    for (const queue of this.queues.values()) if (queue.isTimed) this.#checkClockIn(LONGEST_WAIT_MS);
    let isOver = false;
    return {
      close: () => {
        if (!isOver) this.notifications.remove(listener);
        isOver = true;
        if (this.notifications.listeners.length === 0) {
          this.timer.unref();
          this.timer.cancel(this.clockCheck);
          this.clockCheck = NO_TIMER;
        }
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

  /** Returns the queues of some names, each once, without those that do not exist. */
  queuesNamed(names: readonly string[]): QueueState[] {
    return [...new Set(names)].flatMap((name) => this.queues.get(name) ?? []);
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
      queue = new QueueState(name, this);
      this.queues.set(name, queue);
    }
    return queue;
  }

  /**
   * Checks whether a task may be added, as if the rows of a list were removed.
   *
   * @throws EscapementError `ERR_TASK_DUPLICATE` or `ERR_TASK_ID_CONFLICT`
   */
  check(task: NewTask, leaving?: TaskList): void {
    const { id, queue, uniqueKey } = task.message;
    const owner = isUnique(task) ? this.locks.ownerOf(uniqueKey, this.clock.now()) : undefined;
    if (owner !== undefined && owner.list !== leaving) throw taskDuplicate(task.message, owner.message.id);
    const namesake = this.queues.get(queue)?.rows.get(id);
    if (namesake !== undefined && namesake.list !== leaving) throw taskIdConflict(queue, id);
  }

  /** Returns the task that waits and that this one replaces, if there is one. */
  replaceable(task: NewTask): TaskRow | undefined {
    const { onDuplicate = 'reject', message } = task;
    if (onDuplicate === 'reject' || !isUnique(task)) return undefined;
    const owner = this.locks.ownerOf(message.uniqueKey, this.clock.now());
    return owner !== undefined && isWaiting(listOf(owner)) ? owner : undefined;
  }

  /** A task that waits becomes another one, with the id and the retries that it had. In its place, if it stays in its list. */
  replace(row: TaskRow, task: NewTask): TaskRow {
    const { queue, group, state } = listOf(row);
    const { key } = row;
    const message = replacedBy(row.message, task.message);
    const wallNowMs = this.clock.wallNow();
    const isLater = task.processAtMs > wallNowMs;
    const isSame = group === message.group && key === message.key;
    const isNext = task.isNext === true;
    const isFirst = state === 'pending' && listOf(row).head === row; // then its key keeps its turn
    const stays = !isLater && isSame && (isNext ? isFirst : state === 'pending' || state === 'aggregating');
    if (!stays) this.#leave(row);
    row.message = message;
    if (isLater) this.#wait(row, queue, 'scheduled', task.processAtMs, wallNowMs);
    else if (!stays) this.#makeReady(row, queue, wallNowMs, isNext);
    if (task.onDuplicate === 'extend') this.#lock(row, task, wallNowMs);
    this.journal?.task(row);
    return row;
  }

  /** Adds a task that `check` has accepted. */
  add(task: NewTask): TaskRow {
    const { message, processAtMs } = task;
    const wallNowMs = this.clock.wallNow();
    const queue = this.openQueue(message.queue);
    const row = this.newRow(message);
    queue.rows.add(row);
    if (isUnique(task)) this.#lock(row, task, wallNowMs);
    if (processAtMs > wallNowMs) this.#wait(row, queue, 'scheduled', processAtMs, wallNowMs);
    else this.#makeReady(row, queue, wallNowMs, task.isNext);
    this.journal?.task(row);
    return row;
  }

  newRow(message: TaskMessage): TaskRow {
    flatten(message.id);
    return this.journal === undefined ? new TaskRow(message) : new JournaledRow(this.nextSerial(), message);
  }

  /** Moves a row to the end of the tasks with its key. */
  makePending(row: TaskRow): void {
    this.#pend(row, this.#leave(row), this.clock.wallNow());
    this.journal?.change(row);
  }

  /** Moves a row to the head of the tasks with its key. */
  release(row: TaskRow): void {
    this.toHead(row, this.#leave(row));
    this.journal?.change(row);
  }

  /** Leases a row that is pending, or active. No lease of this broker has had its epoch, not even one of an earlier task with that id. */
  lease(row: TaskRow, leaseMs: number, nowMs: number): void {
    const { queue, state } = listOf(row);
    if (row.timer !== NO_TIMER) this.#disarm(row);
    if (state === 'pending') queue.pending.start(row, nowMs);
    else queue.take(row); // it keeps its place
    row.serial = this.nextSerial();
    queue.lists.active.push(row);
    this.#armLease(row, leaseMs, nowMs);
    this.journal?.start(row);
  }

  extendLease(row: TaskRow, leaseMs: number, nowMs: number): void {
    this.#disarm(row);
    this.#armLease(row, leaseMs, nowMs);
  }

  makeRetry(row: TaskRow, atMs: number): void {
    const wallNowMs = this.clock.wallNow();
    this.#wait(row, this.#leave(row), 'retry', Math.max(atMs, wallNowMs), wallNowMs);
    this.journal?.change(row);
  }

  /** Retains a row until `untilMs`. */
  makeCompleted(row: TaskRow, untilMs: number, wallNowMs: number): void {
    this.#retain(row, 'completed', untilMs, wallNowMs);
  }

  /** Moves a row to the archive, which removes its oldest row if it has too many. If it runs again, its recoveries are counted from 0. */
  makeArchived(row: TaskRow): void {
    const wallNowMs = this.clock.wallNow();
    const { archiveRetentionMs, maxArchived } = this.settings;
    row.recoveries = 0;
    const { archived } = this.#retain(row, 'archived', wallNowMs + archiveRetentionMs, wallNowMs).lists;
    while (archived.head !== undefined && archived.size > maxArchived) this.remove(archived.head);
  }

  /** A row has come to its end. */
  #retain(row: TaskRow, state: 'completed' | 'archived', untilMs: number, wallNowMs: number): QueueState {
    const queue = this.#leave(row);
    this.locks.free(row);
    this.#wait(row, queue, state, untilMs, wallNowMs);
    this.journal?.change(row);
    this.notifications.settled(queue, row.message.id);
    return queue;
  }

  /** The record with the payload of a row is damaged: the row is archived, unless it has ended, and its payload is empty. */
  losePayload(row: TaskRow): void {
    const { state } = listOf(row);
    const lastError = 'the payload is lost: its record in the folder of the broker is damaged';
    const lastFailedAtMs = this.clock.wallNow();
    row.message = { ...row.message, payload: new Uint8Array(0), lastError, lastFailedAtMs };
    if (state !== 'completed' && state !== 'archived') this.makeArchived(row);
    if (row.list !== undefined) this.journal?.task(row);
  }

  remove(row: TaskRow): void {
    const queue = this.#leave(row);
    this.locks.free(row);
    queue.rows.delete(row);
    this.journal?.remove(row, queue.isRemoved);
    this.notifications.settled(queue, row.message.id);
  }

  /** Moves due rows of a queue, the earliest first. @returns their number. */
  forwardDue(queue: QueueState, limit = ROWS_PER_TURN): number {
    const wallNowMs = this.clock.wallNow();
    let count = 0;
    for (; count < limit; count++) {
      const row = queue.firstDue(wallNowMs);
      if (row === undefined) break;
      this.forward(row);
    }
    return count;
  }

  /** Moves a due row to its queue or group. */
  forward(row: TaskRow): void {
    const queue = this.#leave(row);
    this.#makeReady(row, queue, this.clock.wallNow());
    this.journal?.change(row);
  }

  count(queue: QueueState, wallNowMs: number, hasFailed: boolean): void {
    queue.days.count(wallNowMs, hasFailed);
    this.journal?.write(Kind.count, wallNowMs, hasFailed ? 1 : 0, queue.name);
  }

  /** Replaces its content by that of another store, without the places of its rows. Numbers begin after `serial`. */
  adopt({ queues, enqueueEvents, locks }: TaskStore, serial: number): void {
    for (const queue of [...this.queues.values(), ...this.leaving]) {
      queue.isRemoved = true;
      queue.pending.close();
      for (const row of queue.rows.values()) if (row.timer !== NO_TIMER) this.#disarm(row);
      for (const { timer } of queue.sets.values()) this.timer.cancel(timer);
    }
    this.leaving.clear();
    this.queues = queues;
    this.enqueueEvents = enqueueEvents;
    this.locks = locks;
    this.serial = serial;
    for (const queue of queues.values()) queue.pending.open(this);
  }

  /** Later numbers are larger than this one. */
  raiseSerial(serial: number): void {
    if (serial <= this.serial) return;
    this.serial = serial;
    this.reserveSerials();
  }

  /** Called if there is a row that waits for a time. */
  #checkClockIn(delayMs: number): void {
    if (this.clockCheck !== NO_TIMER || this.notifications.listeners.length === 0) return;
    this.clockCheck = this.timer.schedule(delayMs, this.#checkClock);
  }

  readonly #checkClock = (): void => {
    this.clockCheck = NO_TIMER;
    this.journal?.begin();
    const queues = [...this.queues.values()];
    const counts = queues.map((queue) => this.forwardDue(queue));
    const isBehind = counts.includes(ROWS_PER_TURN);
    if (queues.some(({ isTimed }) => isTimed)) this.#checkClockIn(isBehind ? 0 : LONGEST_WAIT_MS);
  };

  #lock(row: TaskRow, { processAtMs, uniqueTtlMs }: NewTask, wallNowMs: number): void {
    const delayMs = Math.max(processAtMs - wallNowMs, 0);
    this.locks.take(row.message.uniqueKey, row, this.clock.now() + delayMs + uniqueTtlMs);
  }

  arm(row: TaskRow, delayMs: number): void {
    row.timer = this.timer.schedule(delayMs, this.#wake, row);
    if (delayMs > LONGEST_WAIT_MS && listOf(row).queue.isTimed) this.#checkClockIn(LONGEST_WAIT_MS);
  }

  /** Adds a row that is in no list to the head of the tasks with its key. */
  toHead(row: TaskRow, queue: QueueState): void {
    this.#pend(row, queue, this.clock.wallNow(), true);
  }

  #pend(row: TaskRow, queue: QueueState, wallNowMs: number, isNext = false): void {
    const tasks = queue.pending.of(row.key);
    row.atMs = wallNowMs;
    row.serial = isNext && tasks.head !== undefined ? tasks.head.serial - 1 : this.nextSerial();
    tasks.insertAfter(isNext ? undefined : tasks.tail, row);
    queue.pending.announce(tasks);
  }

  /** Adds a row that is in no list to its queue or group. */
  #makeReady(row: TaskRow, queue: QueueState, wallNowMs: number, isNext = false): void {
    const { group } = row;
    if (group === '') {
      this.#pend(row, queue, wallNowMs, isNext);
      return;
    }
    row.atMs = this.clock.now();
    row.serial = this.nextSerial();
    queue.group(group).push(row);
    this.notifications.grouped(queue, group);
  }

  #wait(row: TaskRow, queue: QueueState, state: ListedState, atMs: number, wallNowMs: number): void {
    row.atMs = atMs;
    row.serial = this.nextSerial();
    queue.lists[state].push(row);
    this.arm(row, atMs - wallNowMs);
  }

  #armLease(row: TaskRow, leaseMs: number, nowMs: number): void {
    row.atMs = nowMs + leaseMs;
    row.timer = this.timer.scheduleAt(row.atMs, this.#wake, row);
  }

  #leave(row: TaskRow): QueueState {
    const { queue, state } = listOf(row);
    if (row.timer !== NO_TIMER) this.#disarm(row);
    queue.take(row);
    if (state === 'active') queue.pending.end(row);
    return queue;
  }

  #disarm(row: TaskRow): void {
    this.timer.cancel(row.timer);
    row.timer = NO_TIMER;
  }

  /** Called when the entry of a row fires: one function for all rows, so that a row needs no closure. */
  readonly #wake = (row: TaskRow): void => {
    row.timer = NO_TIMER;
    this.journal?.begin();
    const list = listOf(row);
    if (list.queue.isRemoved) return;
    if (list.state === 'active') {
      this.notifications.leaseExpired(list.queue);
      return;
    }
    const aheadMs = row.atMs - this.clock.wallNow();
    // The wall clock was set back, or runs slower than the monotonic clock: the row is not due yet.
    if (aheadMs > 0) this.arm(row, aheadMs);
    else if (list.state === 'scheduled' || list.state === 'retry') this.forward(row);
    else this.remove(row);
  };
}

function isUnique({ uniqueTtlMs, message }: NewTask): boolean {
  return uniqueTtlMs > 0 && message.uniqueKey !== '';
}

function isWaiting({ state, isHeld }: TaskList): boolean {
  return state !== 'active' && state !== 'completed' && state !== 'archived' && !isHeld;
}

/** V8 keeps the pieces of a concatenated id until a character is read: a flat string takes less memory, and a map finds it faster. */
function flatten(text: string): void {
  text.charCodeAt(0);
}
