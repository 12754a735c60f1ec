import TinyQueue from 'tinyqueue';
import { NO_SLOT, type TimerTable } from './timer-table.ts';

/**
 * A doubly linked list of entries through a sentinel: a bucket of a wheel, or the due queue.
 *
 * After Kafka's class of this name, with the links moved into the table: what is left is the slot of the sentinel. A bucket is
 * the element of the delay queue, so it has an expiration, which is stored in the row of the sentinel.
 */
export class TimerTaskList {
  /** The sentinel's slot in the table. */
  readonly sentinel: number;
  /** The time span of the bucket, in milliseconds; 0 for a list outside any wheel. */
  readonly tickMs: number;
  /** Whether the delay queue holds the bucket. An emptied bucket stays there until it comes to the top. */
  isQueued = false;
  readonly #table: TimerTable;

  constructor(table: TimerTable, tickMs: number) {
    this.#table = table;
    this.tickMs = tickMs;
    this.sentinel = table.newSentinel();
  }

  /** When the bucket expires: the beginning of its time span. Negative in a list that has never held an entry. */
  get expirationMs(): number {
    return this.#table.expirationOf(this.sentinel);
  }

  set expirationMs(expirationMs: number) {
    this.#table.setExpiration(this.sentinel, expirationMs);
  }

  get size(): number {
    return this.#table.count(this.sentinel);
  }

  get isEmpty(): boolean {
    return this.first === this.sentinel;
  }

  /** The slot at the head; the sentinel if the list is empty. */
  get first(): number {
    return this.#table.next(this.sentinel);
  }

  /** Links an entry, which must be in no list, at the tail. */
  add(slot: number): void {
    this.#table.append(this.sentinel, slot);
  }
}

/**
 * The buckets that hold tasks, earliest first: with it the timer sleeps until something is due, and never ticks through empty
 * time. It holds buckets and not tasks, so it stays below `wheelSize × levels` however many tasks are pending.
 *
 * A heap cannot remove an element from its middle, so a bucket that is emptied by cancellation stays queued and counts as
 * absent; it is dropped when it comes to the top, or filled again before that.
 *
 * Costs: `offer` and `poll` are O(log buckets), amortised over the entries of a bucket.
 */
export class DelayQueue {
  readonly #heap = new TinyQueue<TimerTaskList>([], compareBuckets);

  /** Adds a bucket that is not queued. Its expiration must not change while it is queued. */
  offer(bucket: TimerTaskList, expirationMs: number): void {
    bucket.expirationMs = expirationMs;
    bucket.isQueued = true;
    this.#heap.push(bucket);
  }

  /** Returns the earliest bucket that holds tasks. */
  peek(): TimerTaskList | undefined {
    for (let bucket = this.#heap.peek(); bucket !== undefined; bucket = this.#heap.peek()) {
      if (!bucket.isEmpty) return bucket;
      this.#drop(bucket);
    }
    return undefined;
  }

  /** Removes and returns the earliest bucket that holds tasks, if it expires at or before `nowMs`. */
  poll(nowMs: number): TimerTaskList | undefined {
    const bucket = this.peek();
    if (bucket === undefined || bucket.expirationMs > nowMs) return undefined;
    this.#drop(bucket);
    return bucket;
  }

  /** The expirations of the buckets that hold tasks, ascending, equal ones repeated. O(buckets log buckets). */
  expirations(): number[] {
    const nonEmpty = this.buckets.filter((bucket) => !bucket.isEmpty);
    return nonEmpty.map((bucket) => bucket.expirationMs).sort((a, b) => a - b);
  }

  /** Every bucket in the heap, in no order, empty ones included. */
  get buckets(): readonly TimerTaskList[] {
    return this.#heap.data;
  }

  /** Removes the earliest bucket. */
  #drop(bucket: TimerTaskList): void {
    this.#heap.pop();
    bucket.isQueued = false;
  }
}

/** Of two buckets that expire together the finer one goes first: its tasks arrived in it earlier. */
function compareBuckets(a: TimerTaskList, b: TimerTaskList): number {
  return a.expirationMs - b.expirationMs || a.tickMs - b.tickMs;
}

/**
 * The entries that are due and have not run: first in, first out, and still cancellable like any pending entry.
 *
 * HOW and WHY. No user code may run while a bucket is being emptied, so due entries come here first. While they run, more may
 * fall due; those belong to a later turn, or a task that adds itself again without a delay would hold this turn for ever. So a
 * run begins with a fence at the tail, and stops at it:
 *
 *     head → a → b → c → | fence | → d → e → tail          d and e fell due while a, b and c run
 *
 * The fence is a row of the same table. Counting would not do: entries before it may be cancelled meanwhile.
 */
export class DueQueue {
  readonly list: TimerTaskList;
  readonly #table: TimerTable;
  readonly #fence: number;
  #isFenced = false;

  constructor(table: TimerTable) {
    this.#table = table;
    this.list = new TimerTaskList(table, 0);
    this.#fence = table.newMarker();
  }

  get size(): number {
    return this.list.size - (this.#isFenced ? 1 : 0);
  }

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /** The slot of the raised fence; `NO_SLOT` if it is lowered. */
  get fenceSlot(): number {
    return this.#isFenced ? this.#fence : NO_SLOT;
  }

  /** Appends an entry that has been due since `sinceMs`. */
  add(slot: number, sinceMs: number): void {
    if (this.isEmpty) this.list.expirationMs = sinceMs;
    this.list.add(slot);
  }

  /** Appends at least one entry, in order. Each has been due since its expiration. */
  addAll(slots: Int32Array): void {
    if (this.isEmpty) this.list.expirationMs = this.#table.expirationOf(slots[0] as number);
    this.#table.appendAll(this.list.sentinel, slots);
  }

  /** What is added from here on is not taken before `lowerFence`. */
  raiseFence(): void {
    this.list.add(this.#fence);
    this.#isFenced = true;
  }

  lowerFence(): void {
    if (!this.#isFenced) return;
    this.#table.unlink(this.#fence);
    this.#isFenced = false;
  }

  /** Takes the entry at the head; returns `NO_SLOT` if none is left before the fence. */
  take(): number {
    const slot = this.list.first;
    if (slot === this.#fence || slot === this.list.sentinel) return NO_SLOT;
    this.#table.unlink(slot);
    return slot;
  }
}
