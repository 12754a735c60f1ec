import { DelayQueue } from './delay-queue.ts';
import { DueQueue } from './due-queue.ts';
import { TimerTable, type TimerTaskList } from './timer-table.ts';
import { isWorthSorting, sortSpan } from './sort-span.ts';
import { TimingWheel } from './timing-wheel.ts';

/** The last moment there is: past it a number cannot hold every millisecond. 285 000 years. */
const HORIZON_MS = Number.MAX_SAFE_INTEGER;

/**
 * Entries that one turn moves between wheels or to the due queue at most, so that a bucket of millions cannot hold the event
 * loop: a few milliseconds. A turn costs 1 ms besides, so fewer would make such a bucket late.
 */
const MOVES_PER_TURN = 2 ** 16;

/** How a deadline becomes a multiple of the tick: 'up' is never early, 'down' is Kafka's. */
export type Rounding = 'up' | 'down';

/**
 * Everything that waits in one timer: the wheels, the delay queue of their buckets, and the queue of what is due.
 *
 * It knows numbers and lists. It reads no clock, arms nothing and calls no user code: the timer does that.
 *
 * A turn moves a bounded number of entries. If that is not enough the wheels are behind: their clocks stand at the bucket they
 * have come to, which is half empty and still first in the delay queue, and what is due behind it waits in its buckets. No
 * entry can overtake another one, because the wheels only go on when that bucket is empty.
 */
export class TimerWheels {
  readonly table = new TimerTable();
  readonly due = new DueQueue(this.table);
  readonly delayQueue = new DelayQueue();
  /** The finest wheel; the others hang above it. */
  readonly first: TimingWheel;
  /** A field, so that tests can stop the wheels anywhere. */
  movesPerTurn = MOVES_PER_TURN;
  /** What operations between two turns may still move: they catch up too. */
  #movesLeft = MOVES_PER_TURN;
  /** The time that the wheels were to reach and have not; `Infinity` if they have. */
  #goalMs = Infinity;
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

  /** How many wheels there are. */
  get levels(): number {
    let levels = 0;
    for (let wheel: TimingWheel | undefined = this.first; wheel; wheel = wheel.overflowWheel) levels++;
    return levels;
  }

  /** Whether buckets are left that are overdue. What was in them may have been cancelled since the last turn. */
  get isBehind(): boolean {
    if (this.#goalMs === Infinity) return false;
    return (this.delayQueue.peek()?.expirationMs ?? Infinity) <= this.#goalMs;
  }

  /**
   * Links an entry, which must be in no list, where it waits until `delayMs` from now: in a bucket, or in the
   * queue of what is due if the delay is not positive. O(levels).
   *
   * The wheels must have caught up with `nowMs`, as far as they may. If they are behind, an entry whose delay is not positive
   * goes to the bucket of `nowMs`, behind what is overdue.
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
    const overdue = this.isBehind ? this.#addBehind(slot, nowMs) : undefined;
    if (overdue !== undefined) return overdue;
    this.due.add(slot, nowMs);
    return this.due.list;
  }

  /**
   * Begins a turn: `catchUp` with all the moves of a turn, or with as many as it takes.
   *
   * @returns whether a bucket that held tasks fell due.
   */
  startTurn(nowMs: number, isBounded: boolean): boolean {
    this.#movesLeft = isBounded ? this.movesPerTurn : Infinity;
    const fellDue = this.catchUp(nowMs);
    if (!isBounded) this.#movesLeft = this.movesPerTurn;
    return fellDue;
  }

  /**
   * Brings the wheels to `nowMs`, or as near as the moves of this turn allow: what fell due moves to the due queue, in order of
   * expiration.
   *
   * @returns whether a bucket that held tasks fell due.
   */
  catchUp(nowMs: number): boolean {
    if (nowMs < this.first.nextTickMs && this.#goalMs === Infinity) return false;
    const fellDue = this.#expireUntil(nowMs);
    if (this.#goalMs === Infinity) this.first.advanceClock(nowMs);
    return fellDue;
  }

  /** Empties every bucket, however much it is, without moving the clocks any further than to the last one. */
  expireAll(): void {
    this.#movesLeft = Infinity;
    this.#expireUntil(Infinity);
  }

  #expireUntil(timeMs: number): boolean {
    let fellDue = false;
    while (this.#movesLeft > 0) {
      const bucket = this.delayQueue.poll(timeMs);
      if (bucket === undefined) break;
      this.first.advanceClock(bucket.expirationMs);
      if (!this.#isSortable(bucket, timeMs) || !this.#expireSpan(bucket)) this.#empty(bucket);
      fellDue = true;
    }
    const isDone = (this.delayQueue.peek()?.expirationMs ?? Infinity) > timeMs;
    this.#goalMs = isDone ? Infinity : timeMs;
    return fellDue;
  }

  /** The list that falls due first, or has: what the timer must wake for. */
  earliest(): TimerTaskList | undefined {
    return this.due.isEmpty ? this.delayQueue.peek() : this.due.list;
  }

  /** Puts an entry that is due behind what is overdue: into the bucket of `nowMs`, which may be the one that is half empty. */
  #addBehind(slot: number, nowMs: number): TimerTaskList | undefined {
    this.table.setExpiration(slot, Math.floor(nowMs / this.#tickMs) * this.#tickMs);
    const bucket = this.first.add(slot);
    if (bucket !== undefined) return bucket;
    const current = this.delayQueue.peek();
    if (current === undefined || current.expirationMs > this.first.currentTimeMs) return undefined;
    this.table.setExpiration(slot, current.expirationMs);
    current.add(slot);
    return current;
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

  /**
   * Moves everything in a bucket's span to the due queue: the bucket's entries, and those of finer ones in it.
   *
   * @returns false, and has changed nothing, if that is more than may be moved now.
   */
  #expireSpan(bucket: TimerTaskList): boolean {
    const { expirationMs: startMs, tickMs } = bucket;
    const buckets = [bucket];
    let size = bucket.size;
    const lastMs = startMs + tickMs - 1;
    for (let finer = this.delayQueue.poll(lastMs); finer; finer = this.delayQueue.poll(lastMs)) {
      buckets.push(finer);
      size += finer.size;
    }
    if (size > this.#movesLeft) {
      for (const finer of buckets.slice(1)) this.delayQueue.offer(finer, finer.expirationMs);
      return false;
    }
    this.#movesLeft -= size;
    // What waits in a finer bucket arrived there before what would come down to it now.
    buckets.sort((a, b) => a.tickMs - b.tickMs);
    this.due.addAll(sortSpan(buckets, startMs, this.#tickMs, tickMs / this.#tickMs, this.table));
    return true;
  }

  /**
   * Adds each entry again, now that the clock has reached its bucket: it lands in a finer one, or is due. What may not be moved
   * any more stays, and the bucket is queued again: it is still the first one.
   */
  #empty(bucket: TimerTaskList): void {
    const { table, first, due } = this;
    const count = Math.min(bucket.size, this.#movesLeft);
    let slot = bucket.first;
    for (let moved = 0; moved < count; moved++) {
      const next = table.next(slot);
      if (first.add(slot) === undefined) due.add(slot, bucket.expirationMs);
      slot = next;
    }
    table.cutBefore(bucket.sentinel, slot, count);
    this.#movesLeft -= count;
    if (!bucket.isEmpty) this.delayQueue.offer(bucket, bucket.expirationMs);
  }
}
