import type { TimerTable } from './timer-table.ts';
import { TimerTaskList, type DelayQueue } from './timer-task-list.ts';

/*
 * Hierarchical timing wheels (Varghese and Lauck, 1987), in the shape Kafka gave them.
 *
 * HOW and WHY. A wheel is a ring of buckets, each for a span of one tick. Adding is O(1) because the bucket is
 * computed from the expiration; a heap needs O(log n). A task further away than one turn goes to the overflow
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

/** A bucket that holds tasks. */
export interface BucketSnapshot {
  /** Its index in the ring. */
  readonly index: number;
  /** When it expires, in milliseconds on the timer's clock. */
  readonly expirationMs: number;
  /** Number of tasks in the bucket. */
  readonly size: number;
}

/** A wheel. */
export interface LevelSnapshot {
  /** The time span of a bucket. */
  readonly tickMs: number;
  /** Number of buckets in the ring. */
  readonly wheelSize: number;
  /** The length of a turn: `tickMs × wheelSize`. */
  readonly intervalMs: number;
  /** The wheel's clock, a multiple of `tickMs`. */
  readonly currentTimeMs: number;
  /** The buckets that hold tasks, by index. */
  readonly buckets: BucketSnapshot[];
}

/** One level of the wheels. */
export class TimingWheel {
  readonly tickMs: number;
  readonly wheelSize: number;
  /** The length of a turn: `tickMs × wheelSize`. */
  readonly intervalMs: number;
  /** Each is made when it is first needed: until then a wheel costs an array. */
  readonly buckets: (TimerTaskList | undefined)[];
  readonly #table: TimerTable;
  readonly #delayQueue: DelayQueue;
  /** The next coarser wheel; undefined until a task needs it. */
  overflowWheel: TimingWheel | undefined;
  /** This wheel's clock: the timer's, rounded down to the tick. Three values follow from it: `add` would need a division for each. */
  currentTimeMs = 0;
  /** When the clock must advance: what expires before is due already. */
  nextTickMs = 0;
  #currentIndex = 0;
  #endMs = 0;
  /** `log2(tickMs)` if a turn takes 32-bit arithmetic: a shift then replaces the division of `add`, for 5 ns less. Else -1. */
  readonly #shift: number;

  constructor(tickMs: number, wheelSize: number, startMs: number, table: TimerTable, delayQueue: DelayQueue) {
    this.tickMs = tickMs;
    this.wheelSize = wheelSize;
    this.intervalMs = tickMs * wheelSize;
    this.buckets = new Array<TimerTaskList | undefined>(wheelSize).fill(undefined);
    this.#table = table;
    this.#delayQueue = delayQueue;
    const shift = Math.log2(tickMs);
    this.#shift = shift % 1 === 0 && this.intervalMs <= 2 ** 31 ? shift : -1;
    this.#setTick(Math.floor(startMs / tickMs));
  }

  /**
   * Links an entry, which must be in no list, into the bucket for its expiration, here or in a coarser wheel. O(levels). The
   * expiration is read from the table: as an argument V8 would box it, at every call that is not inlined.
   *
   * @returns the bucket; `undefined` if the entry is due already and was not linked.
   */
  add(slot: number): TimerTaskList | undefined {
    const expirationMs = this.#table.expirationOf(slot);
    if (expirationMs < this.nextTickMs) return undefined;
    // It cannot be due in a coarser wheel, whose clock is this one's, rounded down to this interval.
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- a loop instead of a call per level
    let wheel: TimingWheel = this;
    while (expirationMs >= wheel.#endMs) wheel = wheel.overflowWheel ?? wheel.#addOverflowWheel();
    const aheadMs = expirationMs - wheel.currentTimeMs;
    const ticks = wheel.#shift < 0 ? Math.floor(aheadMs / wheel.tickMs) : aheadMs >> wheel.#shift;
    const ahead = wheel.#currentIndex + ticks;
    const index = ahead < wheel.wheelSize ? ahead : ahead - wheel.wheelSize;
    const bucket = wheel.buckets[index] ?? wheel.#addBucket(index);
    this.#table.append(bucket.sentinel, slot);
    if (!bucket.isQueued) this.#delayQueue.offer(bucket, wheel.currentTimeMs + ticks * wheel.tickMs);
    return bucket;
  }

  /** Advances the clocks of this wheel and of those above to `timeMs`. No bucket before it may hold tasks. */
  advanceClock(timeMs: number): void {
    if (timeMs < this.nextTickMs) return;
    this.#setTick(Math.floor(timeMs / this.tickMs));
    this.overflowWheel?.advanceClock(timeMs);
  }

  /** Returns a copy of its state. O(buckets). */
  snapshot(): LevelSnapshot {
    const { tickMs, wheelSize, intervalMs, currentTimeMs } = this;
    const buckets = this.buckets.flatMap((bucket, index) =>
      bucket === undefined || bucket.isEmpty
        ? []
        : [{ index, expirationMs: bucket.expirationMs, size: bucket.size }],
    );
    return { tickMs, wheelSize, intervalMs, currentTimeMs, buckets };
  }

  #setTick(tick: number): void {
    this.currentTimeMs = tick * this.tickMs;
    this.nextTickMs = this.currentTimeMs + this.tickMs;
    this.#currentIndex = tick % this.wheelSize;
    this.#endMs = this.currentTimeMs + this.intervalMs;
  }

  #addOverflowWheel(): TimingWheel {
    const { intervalMs, wheelSize, currentTimeMs } = this;
    const wheel = new TimingWheel(intervalMs, wheelSize, currentTimeMs, this.#table, this.#delayQueue);
    this.overflowWheel = wheel;
    return wheel;
  }

  #addBucket(index: number): TimerTaskList {
    const bucket = new TimerTaskList(this.#table, this.tickMs);
    this.buckets[index] = bucket;
    return bucket;
  }
}
