import { DelayQueue } from './delay-queue.ts';
import { DueQueue } from './due-queue.ts';
import type { TimerTaskList } from './timer-task-list.ts';
import { isWorthSorting, sortSpan } from './sort-span.ts';
import { TimerTable } from './timer-table.ts';
import { TimingWheel } from './timing-wheel.ts';

/** The last moment there is: past it a number cannot hold every millisecond. 285 000 years. */
const HORIZON_MS = Number.MAX_SAFE_INTEGER;

/** How a deadline becomes a multiple of the tick: 'up' is never early, 'down' is Kafka's. */
export type Rounding = 'up' | 'down';

/**
 * Everything that waits in one timer: the wheels, the delay queue of their buckets, and the queue of what is due.
 *
 * It knows numbers and lists. It reads no clock, arms nothing and calls no user code: the timer does that.
 */
export class TimerWheels {
  readonly table = new TimerTable();
  readonly due = new DueQueue(this.table);
  readonly delayQueue = new DelayQueue();
  /** The finest wheel; the others hang above it. */
  readonly first: TimingWheel;
  readonly #tickMs: number;
  readonly #roundsUp: boolean;
  /** Whether rounding is just rounding up to a whole number, as it is by default. */
  readonly #isPlain: boolean;

  constructor(tickMs: number, wheelSize: number, startMs: number, rounding: Rounding) {
    this.#tickMs = tickMs;
    this.#roundsUp = rounding === 'up';
    this.first = new TimingWheel(tickMs, wheelSize, startMs, this.table, this.delayQueue);
    this.#isPlain = this.#roundsUp && tickMs === 1;
  }

  /**
   * Links an entry, which must be in no list, where it waits until `delayMs` from now: in a bucket, or in the
   * queue of what is due if the delay is not positive. O(levels).
   *
   * The wheels must have caught up with `nowMs`.
   *
   * @returns the list it is in; its expiration is when the timer must wake for it.
   */
  place(slot: number, delayMs: number, nowMs: number): TimerTaskList {
    if (delayMs > 0) {
      const deadlineMs = nowMs + delayMs;
      const isPlain = this.#isPlain && deadlineMs < HORIZON_MS;
      const expirationMs = isPlain ? Math.ceil(deadlineMs) : this.#roundToTick(deadlineMs);
      this.table.setExpiration(slot, expirationMs);
      const bucket = this.first.add(slot);
      if (bucket !== undefined) return bucket;
    }
    this.due.add(slot, nowMs);
    return this.due.list;
  }

  /**
   * Brings the wheels to `nowMs`: what fell due moves to the due queue, in order of expiration.
   *
   * @returns whether a bucket that held tasks fell due.
   */
  catchUp(nowMs: number): boolean {
    if (nowMs < this.first.nextTickMs) return false;
    const fellDue = this.expireUntil(nowMs);
    this.first.advanceClock(nowMs);
    return fellDue;
  }

  /** Empties every bucket that expires at or before `timeMs`, without moving the clocks any further. */
  expireUntil(timeMs: number): boolean {
    let fellDue = false;
    for (let bucket = this.delayQueue.poll(timeMs); bucket; bucket = this.delayQueue.poll(timeMs)) {
      this.first.advanceClock(bucket.expirationMs);
      if (this.#isSortable(bucket, timeMs)) this.#expireSpan(bucket);
      else this.#empty(bucket);
      fellDue = true;
    }
    return fellDue;
  }

  /** The list that falls due first, or has: what the timer must wake for. */
  earliest(): TimerTaskList | undefined {
    return this.due.isEmpty ? this.delayQueue.peek() : this.due.list;
  }

  #roundToTick(deadlineMs: number): number {
    const tickMs = this.#tickMs;
    const lastMs = Math.floor(HORIZON_MS / tickMs) * tickMs;
    if (deadlineMs >= lastMs) return lastMs;
    // Never early: a deadline beyond a whole number of ticks is so by more than the division could round away.
    const ticks = deadlineMs / tickMs;
    return (this.#roundsUp ? Math.ceil(ticks) : Math.floor(ticks)) * tickMs;
  }

  /**
   * Whether all that a bucket spans is overdue, and so much that it should be sorted. A coarser one for the same
   * moment must come first, though: it has entries for this span.
   */
  #isSortable({ size, tickMs, expirationMs }: TimerTaskList, timeMs: number): boolean {
    return (
      isWorthSorting(tickMs / this.#tickMs, size) &&
      expirationMs + tickMs <= timeMs &&
      this.delayQueue.peek()?.expirationMs !== expirationMs
    );
  }

  /** Moves everything in a bucket's span to the due queue: the bucket's entries, and those of finer ones in it. */
  #expireSpan(bucket: TimerTaskList): void {
    const { expirationMs: startMs, tickMs } = bucket;
    const buckets = [bucket];
    const lastMs = startMs + tickMs - 1;
    for (let finer = this.delayQueue.poll(lastMs); finer; finer = this.delayQueue.poll(lastMs)) {
      buckets.push(finer);
    }
    // What waits in a finer bucket arrived there before what would come down to it now.
    buckets.sort((a, b) => a.tickMs - b.tickMs);
    this.due.addAll(sortSpan(buckets, startMs, this.#tickMs, tickMs / this.#tickMs, this.table));
  }

  /** Adds each entry again, now that the clock has reached its bucket: it lands in a finer one, or is due. */
  #empty(bucket: TimerTaskList): void {
    const { table, first, due } = this;
    let slot = bucket.first;
    table.detachAll(bucket.sentinel);
    while (slot !== bucket.sentinel) {
      const next = table.next(slot);
      if (first.add(slot) === undefined) due.add(slot, bucket.expirationMs);
      slot = next;
    }
  }
}
