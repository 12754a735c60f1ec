import { TimerTable } from './timer-table.ts';
import { DelayQueue, DueQueue, type TimerTaskList } from './timer-task-list.ts';
import type { Rounding } from './timer.ts';
import { TimingWheel, type LevelSnapshot } from './timing-wheel.ts';

/**
 * Most entries that one turn moves between wheels or to the due queue, so that a bucket of millions cannot hold the event
 * loop: a few milliseconds. Each turn costs 1 ms besides, so fewer would make such a bucket late.
 */
const MOVES_PER_TURN = 2 ** 16;

/** The state of a timer, as a picture of its wheels needs it: a copy. */
export interface TimerSnapshot {
  /** The time of the snapshot on the timer's clock. */
  readonly nowMs: number;
  /** Number of pending tasks, including those that are due. */
  readonly size: number;
  /** Number of tasks that are due and have not run yet. */
  readonly dueNow: number;
  /** The wheels, finest first. */
  readonly levels: LevelSnapshot[];
  /** The expirations of all buckets that hold tasks, ascending, equal ones repeated. */
  readonly delayQueue: number[];
}

/**
 * All pending entries of one timer: the wheels, the delay queue of their buckets, and the due queue.
 *
 * It consists of numbers and lists. It reads no clock, arms no wake-up and calls no user code.
 *
 * A turn moves a bounded number of entries. If that is not enough the wheels are behind: their clocks stand at the bucket they
 * have reached, which is half empty and still first in the delay queue, and later overdue entries stay in their buckets. No
 * entry can overtake another one, because the wheels only advance when that bucket is empty.
 */
export class TimerWheels {
  readonly table = new TimerTable();
  readonly due = new DueQueue(this.table);
  readonly delayQueue = new DelayQueue();
  /** The finest wheel, which leads to the others. */
  readonly first: TimingWheel;
  /** A field, so that tests can stop the wheels at any entry. */
  movesPerTurn = MOVES_PER_TURN;
  /** Entries that may still be moved before the next turn: operations between two turns catch up too. */
  #movesLeft = MOVES_PER_TURN;
  /** The time that the wheels have not reached although they should have; `Infinity` if they are not behind. */
  #goalMs = Infinity;
  readonly #tickMs: number;
  readonly #roundsUp: boolean;
  /** The latest expiration: past it a number cannot hold every millisecond. 285 000 years. */
  readonly #lastMs: number;

  constructor(tickMs: number, wheelSize: number, startMs: number, rounding: Rounding) {
    this.#tickMs = tickMs;
    this.#roundsUp = rounding === 'up';
    this.first = new TimingWheel(tickMs, wheelSize, startMs, this.table, this.delayQueue);
    this.#lastMs = Math.floor(Number.MAX_SAFE_INTEGER / tickMs) * tickMs;
  }

  /** The wheels, finest first. */
  get levels(): TimingWheel[] {
    const levels: TimingWheel[] = [];
    for (let wheel: TimingWheel | undefined = this.first; wheel; wheel = wheel.overflowWheel)
      levels.push(wheel);
    return levels;
  }

  /** Returns a copy of the state. O(buckets), however many tasks are pending. */
  snapshot(nowMs: number): TimerSnapshot {
    return {
      nowMs,
      size: this.table.size,
      dueNow: this.due.size,
      levels: this.levels.map((wheel) => wheel.snapshot()),
      delayQueue: this.delayQueue.expirations(),
    };
  }

  /** Whether overdue buckets are left. Their entries may have been cancelled since the last turn. */
  get isBehind(): boolean {
    if (this.#goalMs === Infinity) return false;
    return (this.delayQueue.peek()?.expirationMs ?? Infinity) <= this.#goalMs;
  }

  /**
   * Links an entry, which must be in no list: into the bucket for `delayMs` from now, or into the due queue if the delay is
   * not positive. O(levels).
   *
   * The wheels must have caught up with `nowMs`, as far as they may. If they are behind, an entry whose delay is not positive
   * goes to the bucket of `nowMs`, behind what is overdue.
   *
   * @returns the list of the entry; the timer must wake at its expiration.
   */
  place(slot: number, delayMs: number, nowMs: number): TimerTaskList {
    if (delayMs > 0) {
      this.table.setExpiration(slot, this.#roundToTick(nowMs + delayMs));
      const bucket = this.first.add(slot);
      if (bucket !== undefined) return bucket;
    }
    return this.#addDue(slot, nowMs);
  }

  /**
   * Links an entry, which must be in no list, into the bucket for `deadlineMs`, or into the due queue if the wheels have reached
   * that. They need not have caught up with the clock: the next turn finds an overdue bucket. O(levels).
   *
   * @returns the list of the entry; the timer must wake at its expiration.
   */
  placeAt(slot: number, deadlineMs: number): TimerTaskList {
    this.table.setExpiration(slot, this.#roundToTick(deadlineMs));
    return this.first.add(slot) ?? this.#addDue(slot, this.first.currentTimeMs);
  }

  /**
   * Begins a turn: catches up with the moves of one turn, or with as many as necessary.
   *
   * @returns whether a bucket that held tasks fell due.
   */
  startTurn(nowMs: number, isBounded: boolean): boolean {
    this.#movesLeft = isBounded ? this.movesPerTurn : Infinity;
    const fellDue = this.catchUp(nowMs);
    if (!isBounded) this.#movesLeft = this.movesPerTurn; // for what is inserted before the next turn
    return fellDue;
  }

  /**
   * Advances the wheels to `nowMs`, or as near as the moves of this turn allow: what fell due moves to the due queue, in order
   * of expiration.
   *
   * @returns whether a bucket that held tasks fell due.
   */
  catchUp(nowMs: number): boolean {
    const fellDue = this.#expireUntil(nowMs);
    if (this.#goalMs === Infinity) this.first.advanceClock(nowMs);
    return fellDue;
  }

  /** Empties every bucket, and advances the clocks only to the last one. */
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

  /** The first list that falls due or is due: the timer must wake for it. */
  earliest(): TimerTaskList | undefined {
    return this.due.isEmpty ? this.delayQueue.peek() : this.due.list;
  }

  /** Adds an entry that is due to the due queue, or behind what is overdue. */
  #addDue(slot: number, nowMs: number): TimerTaskList {
    const overdue = this.isBehind ? this.#addBehind(slot, nowMs) : undefined;
    if (overdue !== undefined) return overdue;
    // They may stand at a bucket that was emptied by hand since: what is added later must not get into one before this entry.
    this.first.advanceClock(nowMs);
    this.due.add(slot, nowMs);
    return this.due.list;
  }

  /** Adds an entry that is due behind what is overdue: to the bucket of `nowMs`, which may be the half-empty one. */
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
    if (deadlineMs >= this.#lastMs) return this.#lastMs;
    const tickMs = this.#tickMs;
    // Never early: a deadline beyond a whole number of ticks exceeds it by more than the division could round away.
    const ticks = tickMs === 1 ? deadlineMs : deadlineMs / tickMs;
    return (this.#roundsUp ? Math.ceil(ticks) : Math.floor(ticks)) * tickMs;
  }

  /**
   * Whether the whole span of a bucket is overdue, and has so many entries that it should be sorted. A coarser bucket with the
   * same expiration must come first, though: it has entries for this span.
   */
  #isSortable({ size, tickMs, expirationMs }: TimerTaskList, timeMs: number): boolean {
    return (
      isWorthSorting(tickMs / this.#tickMs, size) &&
      expirationMs + tickMs <= timeMs &&
      this.delayQueue.peek()?.expirationMs !== expirationMs
    );
  }

  /**
   * Moves the span of a bucket to the due queue: its entries, and those of the finer buckets in the span.
   *
   * @returns false, and changes nothing, if that is more than may be moved now.
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
    // The entries of a finer bucket arrived there before those that would move down to it now.
    buckets.sort((a, b) => a.tickMs - b.tickMs);
    const sorted = sortSpan(buckets, size, startMs, this.#tickMs, tickMs / this.#tickMs, this.table);
    this.first.advanceClock(this.table.expirationOf(sorted[size - 1] as number));
    this.due.addAll(sorted);
    return true;
  }

  /**
   * Adds each entry of the bucket that the clock has reached again: to a finer bucket, or to the due queue. What may not be
   * moved in this turn stays, and the bucket is queued again: it is still the first one.
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

/*
 * Sorting an overdue span.
 *
 * HOW and WHY. When a pump is late, a coarse bucket can be overdue from end to end. Moving its entries down level by level would
 * touch each row, and the one it is linked behind, once a level, and with a million entries every touch is a cache miss. Sorting
 * by counting touches each row twice: once to read when it expires, once to link it. The second touch finds its addresses in an
 * array and not in the row before, so the misses overlap. The first one reads each list from both ends, so that two overlap.
 *
 *      bucket for 64 … 127        count per tick           slots by tick                due queue
 *      7 → 3 → 9 → 4        ──►   64: 2, 66: 1, 90: 1 ──►  [ 3, 4 | 9 | 7 ]      ──►    … → 3 → 4 → 9 → 7
 *      90  64  66  64
 */

/** A span of more ticks costs more to count than it saves. */
const MAX_TICKS = 2 ** 16;
/** Bounds the memory of a sort: 12 bytes an entry, 1.5 MiB. A fuller bucket is emptied level by level. */
const MAX_ENTRIES = 2 ** 17;
/** With fewer entries per tick, counting the ticks is the larger part of the work. */
const TICKS_PER_ENTRY = 4;

/** Whether sorting is faster than emptying a bucket of so many ticks and entries level by level. */
export function isWorthSorting(ticks: number, entries: number): boolean {
  return ticks > 1 && ticks <= MAX_TICKS && entries <= MAX_ENTRIES && entries * TICKS_PER_ENTRY >= ticks;
}

/**
 * Empties buckets that lie in one span of `ticks` ticks and have `total` entries. O(entries + ticks).
 *
 * @returns their entries in order of expiration; equal ones in the order of the buckets, then in their order there.
 */
export function sortSpan(
  buckets: readonly TimerTaskList[],
  total: number,
  startMs: number,
  tickMs: number,
  ticks: number,
  table: TimerTable,
): Int32Array {
  const slots = new Int32Array(total);
  const offsets = new Int32Array(total);
  // One element longer, and each tick is counted in the element after its own: the prefix sums are where each tick starts.
  const places = new Int32Array(ticks + 1);
  let end = 0;
  for (const { sentinel, size } of buckets) {
    let front = table.next(sentinel);
    let back = table.prev(sentinel);
    const start = end;
    end += size;
    for (let i = start, j = end - 1; i <= j; i++, j--) {
      slots[i] = front;
      slots[j] = back;
      offsets[i] = (table.expirationOf(front) - startMs) / tickMs;
      offsets[j] = (table.expirationOf(back) - startMs) / tickMs;
      front = table.next(front);
      back = table.prev(back);
    }
    table.cutBefore(sentinel, sentinel, size);
  }
  for (let i = 0; i < total; i++) {
    const offset = offsets[i] as number;
    places[offset + 1] = (places[offset + 1] as number) + 1;
  }
  for (let tick = 1; tick <= ticks; tick++) {
    places[tick] = (places[tick] as number) + (places[tick - 1] as number);
  }
  const sorted = new Int32Array(total);
  for (let i = 0; i < total; i++) {
    const offset = offsets[i] as number;
    const place = places[offset] as number;
    sorted[place] = slots[i] as number;
    places[offset] = place + 1;
  }
  return sorted;
}
