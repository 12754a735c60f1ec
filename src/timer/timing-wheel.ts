import type { DelayQueue } from './delay-queue.ts';
import { TimerTaskList } from './timer-task-list.ts';
import type { TimerTable } from './timer-table.ts';

/*
 * Hierarchical timing wheels (Varghese and Lauck, 1987), in the shape Kafka gave them.
 *
 * HOW and WHY. A wheel is a ring of buckets, each for a span of one tick. Adding is O(1) because the bucket is
 * computed from the expiration; a heap pays O(log n). A task further away than one turn goes to the overflow
 * wheel, whose tick is the whole interval of this one. When a coarse bucket expires, its entries are added
 * again and land one or more wheels finer, so a task moves at most once per level before it runs.
 *
 *     tickMs 1, wheelSize 4, now = 9                                 * where the clock stands
 *
 *     level 1   tick  1 ms   | 12   | 9  * | 10   | 11   |           10 … 12: a bucket each
 *     level 2   tick  4 ms   | 16   | 20   | 8  * | 12   |           12 … 23
 *     level 3   tick 16 ms   | 0  * | 16   | 32   | 48   |           16 … 63
 *
 *     at 9:  delay  2 → 11 → level 1, bucket 11
 *            delay  5 → 14 → level 2, bucket 12; at 12 it moves to level 1, bucket 14; at 14 it runs
 *            delay 30 → 39 → level 3, bucket 32; at 32 to level 2, bucket 36; at 36 to level 1, bucket 39
 *
 * Ground rules:
 * - Buckets lie on absolute multiples of the tick: nothing depends on when the wheel was made.
 * - A wheel's clock only moves forward, and only to the timer's; the bucket it stands in takes no tasks.
 * - The clocks agree: a coarse one is the finest one's, rounded down to the coarse tick.
 * - An overflow wheel starts at the clock of the wheel below, and is made when the first task needs it.
 */

/** One level. */
export class TimingWheel {
  readonly tickMs: number;
  readonly wheelSize: number;
  /** One turn: `tickMs × wheelSize`. */
  readonly intervalMs: number;
  /** Made when they are first needed: a wheel costs an array until then. */
  readonly buckets: (TimerTaskList | undefined)[];
  readonly #table: TimerTable;
  readonly #delayQueue: DelayQueue;
  #overflowWheel: TimingWheel | undefined;
  /** The clock in ticks, its bucket, and where this turn ends. Kept, because each would cost `add` a division. */
  #currentTick: number;
  #currentIndex: number;
  #endMs: number;

  constructor(tickMs: number, wheelSize: number, startMs: number, table: TimerTable, delayQueue: DelayQueue) {
    this.tickMs = tickMs;
    this.wheelSize = wheelSize;
    this.intervalMs = tickMs * wheelSize;
    this.buckets = new Array<TimerTaskList | undefined>(wheelSize).fill(undefined);
    this.#table = table;
    this.#delayQueue = delayQueue;
    this.#currentTick = Math.floor(startMs / tickMs);
    this.#currentIndex = this.#currentTick % wheelSize;
    this.#endMs = this.currentTimeMs + this.intervalMs;
  }

  /** This wheel's clock: the timer's, rounded down to the tick. */
  get currentTimeMs(): number {
    return this.#currentTick * this.tickMs;
  }

  /** The next coarser wheel, if a task has needed it yet. */
  get overflowWheel(): TimingWheel | undefined {
    return this.#overflowWheel;
  }

  /**
   * Links an entry, which must be in no list, into the bucket for its expiration, here or in a coarser wheel.
   *
   * @returns the bucket, or `undefined` if the entry is due already and was linked nowhere. O(levels).
   */
  add(slot: number, expirationMs: number): TimerTaskList | undefined {
    if (expirationMs < this.currentTimeMs + this.tickMs) return undefined;
    // A coarser wheel cannot take it for due: its clock is this one's, rounded down to this interval.
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- a loop instead of a call per level
    let wheel: TimingWheel = this;
    while (expirationMs >= wheel.#endMs) wheel = wheel.#overflowWheel ?? wheel.#addOverflowWheel();
    return wheel.#link(slot, expirationMs);
  }

  /** Moves the clocks of this wheel and of those above to `timeMs`. No bucket before it may hold tasks. */
  advanceClock(timeMs: number): void {
    const tick = Math.floor(timeMs / this.tickMs);
    if (tick <= this.#currentTick) return;
    this.#currentTick = tick;
    this.#currentIndex = tick % this.wheelSize;
    this.#endMs = this.currentTimeMs + this.intervalMs;
    this.#overflowWheel?.advanceClock(timeMs);
  }

  #link(slot: number, expirationMs: number): TimerTaskList {
    const tick = Math.floor(expirationMs / this.tickMs);
    const index = this.#currentIndex + (tick - this.#currentTick);
    const bucket = this.#bucketAt(index < this.wheelSize ? index : index - this.wheelSize);
    bucket.add(slot);
    if (!bucket.isQueued) {
      bucket.expirationMs = tick * this.tickMs;
      this.#delayQueue.offer(bucket);
    }
    return bucket;
  }

  #addOverflowWheel(): TimingWheel {
    const { intervalMs, wheelSize, currentTimeMs } = this;
    this.#overflowWheel = new TimingWheel(
      intervalMs,
      wheelSize,
      currentTimeMs,
      this.#table,
      this.#delayQueue,
    );
    return this.#overflowWheel;
  }

  #bucketAt(index: number): TimerTaskList {
    return (this.buckets[index] ??= new TimerTaskList(this.#table, this.tickMs));
  }
}
