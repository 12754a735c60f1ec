import { GrowableArray } from './growable-array.ts';
import { PAGE_SHIFT, ReferencePage, type EntryCallback } from './reference-page.ts';

/*
 * Where entries live: a row per timer, in flat memory that the collector never walks.
 *
 * HOW and WHY. A linked list of one object per timer costs V8 a write barrier per link and the collector a copy
 * per survivor. Here a link is a 32-bit number, and the four numbers that cancelling touches share 16 bytes, so
 * one cache line:
 *
 *     slot   links (Int32)                          expirations (Float64)   reference pages
 *            next   prev   list   generation
 *       1  [   7      7      1    count = 1 ]        .                                            a sentinel
 *       7  [   1      1      1        52    ]        1 766.0                 expire, request      an entry
 *       8  [   9      .     -1        13    ]        .                                            free, next free 9
 *
 * Lists are circular through their sentinel, which counts its entries where an entry has its generation. `list`
 * is the sentinel an entry hangs on, and -1 while it is free. 24 bytes a row, 8 more for the argument, and
 * (almost) none for the callback: see ReferencePage.
 *
 * A slot is reused, so an id also says which use it means: id = generation * 2^26 + slot. A slot that has been
 * through all 2^27 generations is retired (40 bytes lost per 134 million timers), so no id ever comes twice.
 *
 * Costs: every operation here is O(1). Memory grows to the most that ever waited at once, and stays.
 */

/** A row: four 32-bit numbers, and a 64-bit one behind them. */
const ROW_INT32S = 6;
const ROW_FLOAT64S = 3;
/** Where in the row the expiration is, in 64-bit numbers. */
const EXPIRATION = 2;
const NEXT = 0;
const PREV = 1;
const LIST = 2;
const GENERATION = 3;
/** A sentinel has no generation; it counts its entries there. */
const COUNT = GENERATION;

/** `links[LIST]` of a slot that holds nothing. */
const FREE = -1;
/** No slot: the end of the free list, and what a stale id refers to. Slot 0 is never handed out. */
export const NO_SLOT = 0;

/** `links[GENERATION]` of a row that is not an entry's: no id contains it. */
const NO_GENERATION = -1;

const SLOT_BITS = 26;
const SLOT_LIMIT = 2 ** SLOT_BITS;
const GENERATION_BITS = 27;

/** The smallest table, in slots. */
const FIRST_CAPACITY = 256;
/** The largest step in slots: bounds both the stall (microseconds) and what is committed and not yet used (2 %). */
const LARGEST_STEP = 2 ** 14;

/** The table of one timer: allocation of rows, ids, and doubly linked lists over them. */
export class TimerTable {
  readonly #memory = new GrowableArray<Int32Array>(Int32Array, ROW_INT32S, FIRST_CAPACITY);
  readonly #pages: ReferencePage[] = [];
  readonly #isUsed = (slot: number): boolean => this.#isEntry(slot);
  /** By sentinel. Few: a wheel makes its buckets when it needs them. */
  readonly #lists = new Map<number, TimerTaskList>();
  readonly #generationMask: number;
  /** Random, so that an id of another timer is as good as never valid here. */
  readonly #firstGeneration: number;
  /** Two views of the same rows. */
  #rows = this.#memory.values;
  #expirations = new Float64Array(this.#rows.buffer);
  #capacity = FIRST_CAPACITY;
  /** The first slot that was never used. */
  #top = NO_SLOT + 1;
  #firstFree = NO_SLOT;
  #size = 0;

  /** @param generationBits - fewer only in a test, which uses a slot up. */
  constructor(generationBits: number = GENERATION_BITS) {
    this.#generationMask = 2 ** generationBits - 1;
    this.#firstGeneration = Math.floor(Math.random() * 2 ** generationBits);
  }

  /** Entries in use. */
  get size(): number {
    return this.#size;
  }

  /** Slots ever used, sentinels included. */
  get top(): number {
    return this.#top;
  }

  /** A row for a new entry: in no list yet, so the caller must append it to one before anything else happens. */
  allocate(callback: EntryCallback, argument: unknown): number {
    const free = this.#firstFree;
    const slot = free === NO_SLOT ? this.#newEntrySlot() : free;
    if (free !== NO_SLOT) this.#firstFree = this.#rows[free * ROW_INT32S + NEXT] as number;
    this.#size++;
    (this.#pages[slot >>> PAGE_SHIFT] as ReferencePage).set(slot, callback, argument, this.#isUsed);
    return slot;
  }

  /** Takes a row out of use; it must be in no list. Its id is stale from here on. */
  release(slot: number): void {
    const rows = this.#rows;
    const row = slot * ROW_INT32S;
    const generation = ((rows[row + GENERATION] as number) + 1) & this.#generationMask;
    rows[row + GENERATION] = generation;
    rows[row + LIST] = FREE;
    this.#size--;
    (this.#pages[slot >>> PAGE_SHIFT] as ReferencePage).clear(slot);
    if (generation === this.#firstGeneration) return;
    rows[row + NEXT] = this.#firstFree;
    this.#firstFree = slot;
  }

  callbackOf(slot: number): EntryCallback {
    return (this.#pages[slot >>> PAGE_SHIFT] as ReferencePage).callbackOf(slot);
  }

  argumentOf(slot: number): unknown {
    return (this.#pages[slot >>> PAGE_SHIFT] as ReferencePage).argumentOf(slot);
  }

  /** In milliseconds on the timer's clock, a multiple of its tick. */
  expirationOf(slot: number): number {
    return this.#expirations[slot * ROW_FLOAT64S + EXPIRATION] as number;
  }

  setExpiration(slot: number, expirationMs: number): void {
    this.#expirations[slot * ROW_FLOAT64S + EXPIRATION] = expirationMs;
  }

  /** The number a user holds for an entry: unique for the life of the timer, never 0. */
  idOf(slot: number): number {
    return (this.#rows[slot * ROW_INT32S + GENERATION] as number) * SLOT_LIMIT + slot;
  }

  /** The entry an id stands for, or `NO_SLOT` if it is stale, of another timer, or no id at all. */
  slotOf(id: number): number {
    const generation = Math.floor(id / SLOT_LIMIT);
    const remainder = id - generation * SLOT_LIMIT;
    const slot = remainder | 0;
    if (slot !== remainder || slot <= NO_SLOT || slot >= this.#top || generation < 0) return NO_SLOT;
    if (this.#rows[slot * ROW_INT32S + GENERATION] !== generation) return NO_SLOT;
    return this.#isEntry(slot) ? slot : NO_SLOT;
  }

  /** A row that starts and ends a list. Sentinels are never given back: a wheel keeps its buckets. */
  newSentinel(list: TimerTaskList): number {
    const slot = this.#newSlot();
    const row = slot * ROW_INT32S;
    this.#rows[row + NEXT] = slot;
    this.#rows[row + PREV] = slot;
    this.#rows[row + LIST] = slot;
    this.#lists.set(slot, list);
    return slot;
  }

  /** A row that can be linked like an entry to mark a place in a list, and that no id can name. */
  newMarker(): number {
    const slot = this.#newSlot();
    const row = slot * ROW_INT32S;
    this.#rows[row + LIST] = FREE;
    this.#rows[row + GENERATION] = NO_GENERATION;
    return slot;
  }

  /** Links an entry at the end of a list. It must be in none. */
  append(sentinel: number, slot: number): void {
    const rows = this.#rows;
    const row = slot * ROW_INT32S;
    const head = sentinel * ROW_INT32S;
    const last = rows[head + PREV] as number;
    rows[row + NEXT] = sentinel;
    rows[row + PREV] = last;
    rows[row + LIST] = sentinel;
    rows[last * ROW_INT32S + NEXT] = slot;
    rows[head + PREV] = slot;
    rows[head + COUNT] = (rows[head + COUNT] as number) + 1;
  }

  /** `append` for each, with one write to each row: every link is known beforehand. */
  appendAll(sentinel: number, slots: Int32Array): void {
    const rows = this.#rows;
    const head = sentinel * ROW_INT32S;
    const { length } = slots;
    let prev = rows[head + PREV] as number;
    if (length > 0) rows[prev * ROW_INT32S + NEXT] = slots[0] as number;
    for (let i = 0; i < length; i++) {
      const slot = slots[i] as number;
      const row = slot * ROW_INT32S;
      rows[row + NEXT] = i + 1 < length ? (slots[i + 1] as number) : sentinel;
      rows[row + PREV] = prev;
      rows[row + LIST] = sentinel;
      prev = slot;
    }
    rows[head + PREV] = prev;
    rows[head + COUNT] = (rows[head + COUNT] as number) + length;
  }

  /**
   * Takes an entry out of the list it is in, and leaves the row for `append` or `release`.
   *
   * @returns the list's sentinel if it has become empty, else `NO_SLOT`.
   */
  unlink(slot: number): number {
    const rows = this.#rows;
    const row = slot * ROW_INT32S;
    const next = rows[row + NEXT] as number;
    const prev = rows[row + PREV] as number;
    const count = (rows[row + LIST] as number) * ROW_INT32S + COUNT;
    rows[prev * ROW_INT32S + NEXT] = next;
    rows[next * ROW_INT32S + PREV] = prev;
    rows[count] = (rows[count] as number) - 1;
    // Only the last entry has the sentinel on both sides.
    return next === prev ? next : NO_SLOT;
  }

  /** `unlink` and `release`. */
  discard(slot: number): number {
    const emptied = this.unlink(slot);
    this.release(slot);
    return emptied;
  }

  /** Forgets a list's entries, which stay chained by `next` up to the sentinel, for the caller to append anew. */
  detachAll(sentinel: number): void {
    const head = sentinel * ROW_INT32S;
    this.#rows[head + NEXT] = sentinel;
    this.#rows[head + PREV] = sentinel;
    this.#rows[head + COUNT] = 0;
  }

  /** Forgets the first `count` entries of a list, which the caller has appended elsewhere. `slot` comes after them. */
  cutBefore(sentinel: number, slot: number, count: number): void {
    const head = sentinel * ROW_INT32S;
    this.#rows[head + NEXT] = slot;
    this.#rows[slot * ROW_INT32S + PREV] = sentinel;
    this.#rows[head + COUNT] = (this.#rows[head + COUNT] as number) - count;
  }

  /** The list that a sentinel was made for. */
  listAt(sentinel: number): TimerTaskList {
    return this.#lists.get(sentinel) as TimerTaskList;
  }

  /** The sentinel of the list an entry is in. */
  sentinelOf(slot: number): number {
    return this.#rows[slot * ROW_INT32S + LIST] as number;
  }

  next(slot: number): number {
    return this.#rows[slot * ROW_INT32S + NEXT] as number;
  }

  prev(slot: number): number {
    return this.#rows[slot * ROW_INT32S + PREV] as number;
  }

  count(sentinel: number): number {
    return this.#rows[sentinel * ROW_INT32S + COUNT] as number;
  }

  /** Whether a slot holds something that is in a list: an entry, or a sentinel. */
  isLinked(slot: number): boolean {
    return (this.#rows[slot * ROW_INT32S + LIST] as number) > NO_SLOT;
  }

  /** Whether an entry holds the slot: not nothing, not a sentinel, not a marker. */
  #isEntry(slot: number): boolean {
    const row = slot * ROW_INT32S;
    const list = this.#rows[row + LIST] as number;
    return list > NO_SLOT && list !== slot && this.#rows[row + GENERATION] !== NO_GENERATION;
  }

  #newEntrySlot(): number {
    const slot = this.#newSlot();
    this.#rows[slot * ROW_INT32S + GENERATION] = this.#firstGeneration;
    return slot;
  }

  #newSlot(): number {
    if (this.#top === this.#capacity) this.#grow();
    const slot = this.#top++;
    if (slot >>> PAGE_SHIFT === this.#pages.length) this.#pages.push(new ReferencePage());
    return slot;
  }

  #grow(): void {
    if (this.#capacity === SLOT_LIMIT) throw new RangeError(`a timer holds at most ${SLOT_LIMIT} tasks`);
    const capacity = Math.min(this.#capacity + Math.min(this.#capacity, LARGEST_STEP), SLOT_LIMIT);
    this.#memory.grow(capacity);
    this.#capacity = capacity;
    this.#rows = this.#memory.values;
    this.#expirations = new Float64Array(this.#rows.buffer);
  }
}

/** The expiration of a bucket that waits for nothing. */
const UNSET_MS = -1;

/**
 * A doubly linked list of entries through a sentinel: one bucket of a wheel, or the queue of what is due.
 *
 * After Kafka's class of this name, with the links moved into the table; the sentinel's slot is all that is left.
 * A bucket is the element of the delay queue, so it knows when it expires and whether it is queued.
 */
export class TimerTaskList {
  /** The sentinel's slot in the table. */
  readonly sentinel: number;
  /** The length of the time span that shares this bucket, in milliseconds; 0 for a list outside any wheel. */
  readonly tickMs: number;
  /** When the bucket expires: the beginning of its time span. */
  expirationMs = UNSET_MS;
  /** Whether the delay queue holds it. A bucket that lost its last entry stays there until it comes to the top. */
  isQueued = false;
  readonly #table: TimerTable;

  constructor(table: TimerTable, tickMs: number) {
    this.#table = table;
    this.tickMs = tickMs;
    this.sentinel = table.newSentinel(this);
  }

  get size(): number {
    return this.#table.count(this.sentinel);
  }

  get isEmpty(): boolean {
    return this.#table.next(this.sentinel) === this.sentinel;
  }

  /** The slot at the head; only meaningful when the list is not empty. */
  get first(): number {
    return this.#table.next(this.sentinel);
  }

  /** Links an entry, which must be in no list, at the tail. */
  add(slot: number): void {
    this.#table.append(this.sentinel, slot);
  }
}
