import type { Clock } from '../../../core/clock.ts';
import type { SystemTimer } from '../../../timer/system-timer.ts';
import type { LimitKind, QueueLimits } from '../broker.ts';
import { Kind, type StoreJournal } from './journal-format.ts';
import { Index, LinkedList, NO_TIMER, TaskList, type QueueOfList, type TaskRow } from './task-lists.ts';
import { bounded, FULL, fullAfter, leftUnder, limitReached, nextTokenMs, tokenInMs } from './limits.ts';

/** What pending tasks need of their queue: a `QueueState`. */
interface PendingQueue extends QueueOfList {
  readonly pending: PendingTasks;
  readonly isPaused: boolean;
  readonly lists: { readonly active: TaskList };
}

export interface PendingHost {
  readonly clock: Clock;
  readonly timer: SystemTimer;
  readonly notifications: { work(queue: PendingQueue): void };
  readonly journal: StoreJournal | undefined;
}

/** A bucket that is not full: `''` is that of the queue, `':KEY'` that of a key. The time is wall-clock. */
export type StoredBucket = readonly [name: string, fullAtWallMs: number];

/** Keys in the ring whose first tasks are compared for the one that waits longest. */
const COMPARED = 1_000;

/** The pending tasks of a key. It is in the ring if it has some, and no limit of its own holds them back. */
class KeyTasks extends TaskList {
  declare readonly queue: PendingQueue;
  readonly key: string;
  active = 0;
  /** When the bucket of its rate is full, on the monotonic clock. */
  fullAtMs = FULL;
  timer = NO_TIMER;
  isInRing = false;
  /** The keys beside it in the ring. */
  next: KeyTasks | undefined = undefined;
  previous: KeyTasks | undefined = undefined;

  constructor(queue: PendingQueue, key: string) {
    super(queue, 'pending');
    this.key = key;
  }

  override insertAfter(previous: TaskRow | undefined, row: TaskRow): void {
    super.insertAfter(previous, row);
    this.queue.pending.added(this);
  }

  override remove(row: TaskRow): void {
    super.remove(row);
    this.queue.pending.removed(this);
  }

  wake(): void {
    this.timer = NO_TIMER;
    this.queue.pending.arrange(this);
    this.queue.pending.announce(this);
  }
}

/**
 * The pending tasks of a queue, and whose turn it is: a ring of the keys that have some.
 *
 *      ring     key B ⇄ key C ⇄ key A        the first one gives its first task, and goes to the end
 *      held     key D                        at its limit: enters the ring at the end when that is over
 *
 * A place under a limit is a task that is active, so a limit counts what there is. What a limit allows is in limits.ts. Every operation is O(1),
 * whatever the number of keys, unless its comment has another cost. Each key, or queue, that waits for a token has one entry in the timer.
 */
export class PendingTasks {
  readonly withoutKey: KeyTasks;
  size = 0;
  readonly #queue: PendingQueue;
  #host: PendingHost;
  #limits: QueueLimits | undefined;
  /** All but `withoutKey`: those that have tasks which wait or run, or a bucket that is not full. */
  readonly #keys = new Index<KeyTasks>();
  readonly #ring = new LinkedList<KeyTasks>();
  #fullAtMs = FULL;
  #timer = NO_TIMER;

  constructor(queue: PendingQueue, host: PendingHost) {
    this.#queue = queue;
    this.#host = host;
    this.withoutKey = new KeyTasks(queue, '');
  }

  get limits(): QueueLimits | undefined {
    return this.#limits;
  }

  /** O(keys). */
  setLimits(limits: QueueLimits | undefined): void {
    const nowMs = this.#nowMs();
    this.#limits = limits;
    this.#host.timer.cancel(this.#timer);
    this.#timer = NO_TIMER;
    this.#fullAtMs = bounded(this.#fullAtMs, limits?.rate, nowMs);
    for (const key of [...this.keys()]) {
      key.fullAtMs = bounded(key.fullAtMs, limits?.perKey?.rate, nowMs);
      this.arrange(key);
    }
    this.announceAll();
  }

  // Tasks come and go.

  push(row: TaskRow): void {
    this.of(row.key).push(row);
  }

  /** The first row of the key whose turn is next, held or not. */
  get first(): TaskRow | undefined {
    const [tasks] = this.lists();
    return tasks?.head;
  }

  /** The row whose run may start now. */
  next(nowMs: number): TaskRow | undefined {
    const first = this.#ring.head;
    if (first === undefined || this.heldBy(nowMs) === undefined) return first?.head;
    this.#awaitToken();
    return undefined;
  }

  /** Takes a row out that `next` has returned: its run starts. */
  start(row: TaskRow, nowMs: number): void {
    const key = row.list as KeyTasks;
    key.active++;
    if (this.#limits !== undefined) this.#takeTokens(key, this.#limits, nowMs);
    key.remove(row);
    if (key.size === 0) return; // it has left the ring
    this.#ring.remove(key);
    this.#ring.push(key);
    if (this.keyHeldBy(key, nowMs) !== undefined) this.arrange(key);
  }

  #takeTokens(key: KeyTasks, { rate, perKey }: QueueLimits, nowMs: number): void {
    if (rate !== undefined) {
      this.#fullAtMs = fullAfter(this.#fullAtMs, rate, nowMs);
      this.#store('', '', this.#fullAtMs);
    }
    if (perKey?.rate !== undefined) {
      key.fullAtMs = fullAfter(key.fullAtMs, perKey.rate, nowMs);
      this.#store(':', key.key, key.fullAtMs);
    }
  }

  /** A run goes on that has started before a reopen. */
  resume(row: TaskRow): void {
    const key = this.of(row.key);
    key.active++;
    this.arrange(key);
  }

  /** A run is over: its place is free. The row is not in the list of active tasks any more. */
  end(row: TaskRow): void {
    const key = this.of(row.key);
    key.active--;
    const wasHeld = !key.isInRing;
    if (wasHeld) this.arrange(key);
    const isFreed = this.#queue.lists.active.size + 1 === this.#limits?.concurrency;
    if (isFreed || (wasHeld && key.isInRing)) this.announceAll();
  }

  /** Notifies servers of a row that was added, unless it is held back. */
  announce({ isInRing }: KeyTasks): void {
    if (isInRing) this.announceAll();
  }

  /** Called by a list of this object. */
  added(key: KeyTasks): void {
    this.size++;
    if (key.size === 1) this.arrange(key);
  }

  removed(key: KeyTasks): void {
    this.size--;
    if (key.size === 0) this.arrange(key);
  }

  // What is held back.

  /** The limit that the queue itself is at. */
  heldBy(nowMs = this.#nowFor(this.#fullAtMs)): LimitKind | undefined {
    const limits = this.#limits;
    return limits && limitReached(limits, this.#queue.lists.active.size, this.#fullAtMs, nowMs);
  }

  /** The limit of its own that a key is at. */
  keyHeldBy({ active, fullAtMs }: KeyTasks, nowMs = this.#nowFor(fullAtMs)): LimitKind | undefined {
    const limits = this.#limits?.perKey;
    return limits && limitReached(limits, active, fullAtMs, nowMs);
  }

  /** In milliseconds from now, when a key has a token again that has none. */
  keyAgainInMs({ fullAtMs }: KeyTasks): number | undefined {
    return tokenInMs(fullAtMs, this.#limits?.perKey?.rate, this.#nowMs());
  }

  /**
   * Number of pending tasks that may not start now, by the limit that holds them back: that of their key, or that of the queue. O(keys) if
   * there are limits of each key.
   */
  held(): Record<LimitKind, number> {
    const held = { concurrency: 0, rate: 0 };
    const limits = this.#limits;
    if (limits === undefined) return held;
    const nowMs = this.#nowMs();
    const { perKey } = limits;
    let free = this.size;
    for (const { size, active, fullAtMs } of perKey === undefined ? [] : this.keys()) {
      const { kind, left } = leftUnder(perKey ?? {}, active, fullAtMs, nowMs);
      const more = Math.max(size - left, 0);
      held[kind] += more;
      free -= more;
    }
    const { kind, left } = leftUnder(limits, this.#queue.lists.active.size, this.#fullAtMs, nowMs);
    held[kind] += Math.max(free - left, 0);
    return held;
  }

  /** Since when the task waits that waits longest of those that may start, of the keys whose turn is next. */
  get oldestRunnableMs(): number | undefined {
    if (this.#queue.isPaused || this.heldBy() !== undefined) return undefined;
    let oldestMs: number | undefined;
    let compared = 0;
    for (
      let key = this.#ring.head;
      key?.head !== undefined && compared < COMPARED;
      key = key.next, compared++
    )
      oldestMs = Math.min(oldestMs ?? Infinity, key.head.atMs);
    return oldestMs;
  }

  // Iteration.

  of(key: string): KeyTasks {
    if (key === '') return this.withoutKey;
    let tasks = this.#keys.map.get(key);
    if (tasks === undefined) {
      tasks = new KeyTasks(this.#queue, key);
      this.#keys.set(key, tasks);
    }
    return tasks;
  }

  /** Every key that has tasks which wait or run, or a bucket that is not full; and the tasks without a key. */
  *keys(): Generator<KeyTasks> {
    yield this.withoutKey;
    yield* this.#keys.map.values();
  }

  /** Lists with tasks: in the order of the ring, then those that are held. The loop may remove the tasks of the list that it has. */
  *lists(): Generator<KeyTasks> {
    for (let key = this.#ring.head; key !== undefined;) {
      const { next } = key;
      yield key;
      key = next;
    }
    for (const key of this.keys()) if (!key.isInRing && key.size > 0) yield key;
  }

  // What survives a reopen.

  /** Buckets that are not full: each as it is when the loop comes to it, and none any more of a queue that was removed meanwhile. */
  *buckets(): Generator<StoredBucket> {
    const nowMs = this.#nowMs();
    const toWallMs = this.#host.clock.wallNow() - nowMs;
    if (this.#fullAtMs > nowMs) yield ['', this.#fullAtMs + toWallMs];
    for (const { key, fullAtMs } of this.keys()) {
      if (this.#limits === undefined) return;
      if (fullAtMs > nowMs) yield [`:${key}`, fullAtMs + toWallMs];
    }
  }

  /** Takes over limits and buckets that were stored; `open` follows. @param buckets - undefined if they stay as they are. */
  restore(limits: QueueLimits | undefined, buckets?: readonly StoredBucket[]): void {
    this.#limits = limits;
    if (limits !== undefined && buckets === undefined) return;
    this.#fullAtMs = FULL;
    for (const key of this.keys()) key.fullAtMs = FULL;
    for (const bucket of buckets ?? []) this.restoreBucket(bucket);
  }

  restoreBucket([name, fullAtWallMs]: StoredBucket): void {
    const { clock } = this.#host;
    const fullAtMs = fullAtWallMs + clock.now() - clock.wallNow();
    if (name === '') this.#fullAtMs = fullAtMs;
    else this.of(name.slice(1)).fullAtMs = fullAtMs;
  }

  /** Begins to hold back the tasks that are over a limit. */
  open(host: PendingHost): void {
    this.#host = host;
    this.setLimits(this.#limits);
  }

  /** Removes its entries from the timer. O(keys). */
  close(): void {
    this.#limits = undefined;
    for (const key of this.keys()) this.#setTimer(key, undefined);
    this.#host.timer.cancel(this.#timer);
    this.#timer = NO_TIMER;
  }

  /** Number of entries that it has in the timer. O(keys). */
  get timers(): number {
    let count = this.#timer === NO_TIMER ? 0 : 1;
    for (const { timer } of this.keys()) if (timer !== NO_TIMER) count++;
    return count;
  }

  /** Puts a key into the ring or takes it out, and forgets it if nothing is left of it. */
  arrange(key: KeyTasks): void {
    const isIdle = key.size === 0 && key.active === 0;
    const heldBy = key.size === 0 ? undefined : this.keyHeldBy(key);
    const isRunnable = key.size > 0 && heldBy === undefined;
    if (isRunnable && !key.isInRing) this.#ring.push(key);
    else if (!isRunnable && key.isInRing) this.#ring.remove(key);
    key.isInRing = isRunnable;
    const wakeAtMs = heldBy === 'rate' || isIdle ? this.#wakeAtMs(key) : undefined;
    if (wakeAtMs !== undefined || key.timer !== NO_TIMER) this.#setTimer(key, wakeAtMs);
    if (isIdle && wakeAtMs === undefined) this.#keys.delete(key.key);
  }

  /** When the bucket of a key has a token again; or, if the key has no tasks, when it is full and the key may be forgotten. */
  #wakeAtMs({ size, fullAtMs }: KeyTasks): number | undefined {
    const rate = this.#limits?.perKey?.rate;
    const nowMs = this.#nowFor(fullAtMs);
    if (rate === undefined || fullAtMs <= nowMs) return undefined;
    return size > 0 ? nextTokenMs(fullAtMs, rate, nowMs) : fullAtMs;
  }

  /** Notifies servers of all that waits, as far as it is not held back. */
  announceAll(): void {
    if (this.#ring.head === undefined) return;
    if (this.heldBy() !== undefined) this.#awaitToken();
    else this.#host.notifications.work(this.#queue);
  }

  /** Wakes servers when the queue has a token again. */
  #awaitToken(): void {
    if (this.#timer !== NO_TIMER) return;
    const inMs = tokenInMs(this.#fullAtMs, this.#limits?.rate, this.#nowMs());
    if (inMs !== undefined) this.#timer = this.#host.timer.schedule(inMs, wake, this);
  }

  wake(): void {
    this.#timer = NO_TIMER;
    this.announceAll();
  }

  #setTimer(key: KeyTasks, atMs: number | undefined): void {
    const { timer } = this.#host;
    if (key.timer !== NO_TIMER) timer.cancel(key.timer);
    key.timer = atMs === undefined ? NO_TIMER : timer.schedule(atMs - this.#nowMs(), wake, key);
  }

  #store(prefix: string, key: string, fullAtMs: number): void {
    const { journal, clock } = this.#host;
    journal?.write(Kind.bucket, clock.wallNow() + fullAtMs - clock.now(), this.#queue.name, prefix + key);
  }

  #nowMs(): number {
    return this.#host.clock.now();
  }

  /** The time if a bucket needs it, otherwise any: reading the clock takes as long as the rest. */
  #nowFor(fullAtMs: number): number {
    return fullAtMs === FULL ? 0 : this.#nowMs();
  }
}

const wake = (sleeper: KeyTasks | PendingTasks): void => {
  sleeper.wake();
};
