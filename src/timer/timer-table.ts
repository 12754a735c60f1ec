import { EscapementError } from '../core/errors.ts';
import { GrowableMemory } from './growable-memory.ts';

/*
 * The entries of a timer: a row each, in flat memory that the collector never walks.
 *
 * HOW and WHY. A linked list of one object per timer costs V8 a write barrier per link and the collector a copy
 * per survivor. Here a link is a 32-bit number, and the four numbers that cancelling touches share 16 bytes, so
 * one cache line:
 *
 *     slot   links (Int32)                          expirations (Float64)   reference pages
 *            next   prev   list   generation
 *       1  [   7      7      0    count = 1 ]        1 766.0                                      a sentinel
 *       7  [   1      1      1        52    ]        1 766.0                 expire, request      an entry
 *       8  [   9      .     -1        13    ]        .                                            free, next free 9
 *
 * Lists are circular through their sentinel, which counts its entries where an entry has its generation, and has the expiration
 * of the list. `list` is the sentinel of the list that an entry is in, 0 in a sentinel, and -1 while the row is free. 24 bytes a
 * row, 8 more for the argument, and (almost) none for the callback: see ReferencePage.
 *
 * A slot is reused, so an id contains its generation: id = generation * 2^26 + slot. A slot that has been through all 2^27
 * generations is retired (40 bytes lost per 134 million timers), so no id is ever used twice.
 *
 * Costs: every operation here is O(1). Memory grows to the largest number of entries pending at once, and stays.
 */

/** A row: four 32-bit numbers, and a 64-bit one behind them. */
const ROW_INT32S = 6;
const ROW_FLOAT64S = 3;
const ROW_BYTES = 24;
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

/** `links[GENERATION]` of a row that no id refers to. */
const NO_GENERATION = -1;
/** The expiration of a list that has never held an entry. */
const UNSET_MS = -1;

const SLOT_BITS = 26;
const SLOT_LIMIT = 2 ** SLOT_BITS;
/** The last slots are for buckets: once an entry has a slot, there is one for its bucket. */
const ENTRIES_END = SLOT_LIMIT - 2 ** 20;
const GENERATION_BITS = 27;

/** The smallest table, in slots. */
const FIRST_CAPACITY = 256;
/** The largest step in slots: bounds both the stall (microseconds) and what is committed and not yet used (2 %). */
const LARGEST_STEP = 2 ** 14;

/** Slots per page, as a shift. 4 096 references are 32 KiB: small enough to be an ordinary heap object. */
export const PAGE_SHIFT = 12;
const PAGE_SIZE = 2 ** PAGE_SHIFT;
const PAGE_MASK = PAGE_SIZE - 1;

/** What runs when an entry is due. */
export type EntryCallback = (argument: never) => void;

/** The table of one timer: allocation of rows, ids, and doubly linked lists over them. */
export class TimerTable {
  /** No entry gets this slot or a later one. A field, so that tests can fill the table. */
  entriesEnd = ENTRIES_END;
  readonly #memory = new GrowableMemory(FIRST_CAPACITY * ROW_BYTES);
  readonly #pages: ReferencePage[] = [];
  readonly #isUsed = (slot: number): boolean => this.#isEntry(slot);
  readonly #generationMask: number;
  /** Random, so that an id of another timer is as good as never valid here. */
  readonly #firstGeneration: number;
  /** Two views of the same rows. */
  #rows = new Int32Array(this.#memory.buffer);
  #expirations = new Float64Array(this.#memory.buffer);
  /** The first slot that was never used. */
  #top = NO_SLOT + 1;
  #firstFree = NO_SLOT;
  #size = 0;

  /** @param generationBits - fewer only in tests, which use up a slot. */
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

  /**
   * Returns a row for a new entry. It is in no list yet: the caller must append it to one before anything else happens.
   *
   * @throws EscapementError `ERR_TIMER_FULL` - nothing has changed.
   */
  allocate(callback: EntryCallback, argument: unknown): number {
    let slot = this.#firstFree;
    if (slot === NO_SLOT) slot = this.#newEntrySlot();
    else this.#firstFree = this.#rows[slot * ROW_INT32S + NEXT] as number;
    this.#size++;
    (this.#pages[slot >>> PAGE_SHIFT] as ReferencePage).set(slot, callback, argument, this.#isUsed);
    return slot;
  }

  /** Frees a row, which must be in no list. Its id is stale from here on. */
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

  /** The expiration of an entry or, by its sentinel, of a list: milliseconds on the timer's clock, a multiple of its tick. */
  expirationOf(slot: number): number {
    return this.#expirations[slot * ROW_FLOAT64S + EXPIRATION] as number;
  }

  setExpiration(slot: number, expirationMs: number): void {
    this.#expirations[slot * ROW_FLOAT64S + EXPIRATION] = expirationMs;
  }

  /** The id of an entry: unique for the life of the timer, never 0. */
  idOf(slot: number): number {
    return (this.#rows[slot * ROW_INT32S + GENERATION] as number) * SLOT_LIMIT + slot;
  }

  /** The slot of the entry that an id refers to; `NO_SLOT` if the id is stale, of another timer, or not an id at all. */
  slotOf(id: number): number {
    const slot = id & (SLOT_LIMIT - 1);
    // Not a whole number, and so no generation, if the id is none.
    const isCurrent = this.#rows[slot * ROW_INT32S + GENERATION] === (id - slot) / SLOT_LIMIT;
    return isCurrent && this.#isEntry(slot) ? slot : NO_SLOT;
  }

  /** Returns a row that starts and ends a list. Sentinels are never released: a wheel keeps its buckets. */
  newSentinel(): number {
    const slot = this.#newSlot();
    const row = slot * ROW_INT32S;
    this.#rows[row + NEXT] = slot;
    this.#rows[row + PREV] = slot;
    this.setExpiration(slot, UNSET_MS);
    return slot;
  }

  /** Returns a row that can be linked like an entry to mark a position in a list, and that no id refers to. */
  newMarker(): number {
    const slot = this.#newSlot();
    this.#rows[slot * ROW_INT32S + GENERATION] = NO_GENERATION;
    return slot;
  }

  /** Links an entry, which must be in no list, at the tail of a list. */
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

  /** Appends at least one entry, in order, with one write to each row: every link is known beforehand. */
  appendAll(sentinel: number, slots: Int32Array): void {
    const rows = this.#rows;
    const head = sentinel * ROW_INT32S;
    const { length } = slots;
    let prev = rows[head + PREV] as number;
    rows[prev * ROW_INT32S + NEXT] = slots[0] as number;
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
   * Removes an entry from its list, and leaves the row for `append` or `release`.
   *
   * @returns the sentinel of the list if it has become empty, else `NO_SLOT`.
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

  /** Unlinks and releases an entry. @returns as `unlink`. */
  discard(slot: number): number {
    const emptied = this.unlink(slot);
    this.release(slot);
    return emptied;
  }

  /**
   * Drops the first `count` entries of a list, for the caller to append elsewhere, or after that. They stay chained by `next`.
   *
   * @param slot - the entry after them; the sentinel if they are all.
   */
  cutBefore(sentinel: number, slot: number, count: number): void {
    const head = sentinel * ROW_INT32S;
    this.#rows[head + NEXT] = slot;
    this.#rows[slot * ROW_INT32S + PREV] = sentinel;
    this.#rows[head + COUNT] = (this.#rows[head + COUNT] as number) - count;
  }

  /** The sentinel of the list that an entry is in; `NO_SLOT` or less if the slot is in none. */
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

  /** Whether a slot holds an entry: it is not free, and neither a sentinel nor a marker. */
  #isEntry(slot: number): boolean {
    const row = slot * ROW_INT32S;
    const list = this.#rows[row + LIST] as number;
    return list > NO_SLOT && this.#rows[row + GENERATION] !== NO_GENERATION;
  }

  #newEntrySlot(): number {
    const slot = this.#newSlot(this.entriesEnd);
    this.#rows[slot * ROW_INT32S + GENERATION] = this.#firstGeneration;
    return slot;
  }

  #newSlot(end = SLOT_LIMIT): number {
    const slot = this.#top;
    if (slot >= end)
      throw new EscapementError('ERR_TIMER_FULL', `a timer holds at most ${ENTRIES_END} tasks`);
    if ((slot + 1) * ROW_INT32S > this.#rows.length) this.#grow();
    this.#top++;
    if (slot >>> PAGE_SHIFT === this.#pages.length) this.#pages.push(new ReferencePage());
    return slot;
  }

  #grow(): void {
    this.#memory.grow((this.#top + Math.min(this.#top, LARGEST_STEP)) * ROW_BYTES);
    this.#rows = new Int32Array(this.#memory.buffer);
    this.#expirations = new Float64Array(this.#memory.buffer);
  }
}

/**
 * What 4 096 slots refer to outside flat memory: a callback and its argument each.
 *
 * HOW and WHY. Timers come by the million and callbacks by the handful, so a page stores its callback once for
 * as long as all of its entries agree, and spreads into an array at the first that differs:
 *
 *                    page 0               page 1                      page 2
 *     callbacks   [ expire ]          [ retry | expire | … ]       [ (none) ]
 *                   uniform               mixed                      unused
 *     arguments   [ r0 | r1 | … ]     [ r4096 | …          ]       [        ]
 *
 * A uniform page costs 8 bytes instead of 32 KiB, and neither adding nor removing an entry writes a callback,
 * which spares the collector's write barrier. It forgets its callback with its last entry; a mixed page
 * forgets entry by entry, and stays mixed.
 */
export class ReferencePage {
  readonly #arguments: unknown[] = new Array<unknown>(PAGE_SIZE).fill(undefined);
  /** The callback of every entry, while the page is uniform. */
  #callback: EntryCallback | undefined;
  /** The callback of each entry, once the page is mixed. */
  #callbacks: (EntryCallback | undefined)[] | undefined;
  /** Entries in use. */
  #used = 0;

  /** Stores what an entry refers to. If the page must spread, `isUsed` returns which of its slots hold entries. */
  set(slot: number, callback: EntryCallback, argument: unknown, isUsed: (slot: number) => boolean): void {
    this.#arguments[slot & PAGE_MASK] = argument;
    this.#used++;
    if (this.#callback === callback) return;
    if (this.#callbacks === undefined && this.#callback === undefined) this.#callback = callback;
    else (this.#callbacks ??= this.#spread(slot & ~PAGE_MASK, isUsed))[slot & PAGE_MASK] = callback;
  }

  /** Forgets what a released entry referred to. */
  clear(slot: number): void {
    this.#arguments[slot & PAGE_MASK] = undefined;
    this.#used--;
    if (this.#callbacks !== undefined) this.#callbacks[slot & PAGE_MASK] = undefined;
    else if (this.#used === 0) this.#callback = undefined;
  }

  callbackOf(slot: number): EntryCallback {
    return (
      this.#callbacks === undefined ? this.#callback : this.#callbacks[slot & PAGE_MASK]
    ) as EntryCallback;
  }

  argumentOf(slot: number): unknown {
    return this.#arguments[slot & PAGE_MASK];
  }

  #spread(firstSlot: number, isUsed: (slot: number) => boolean): (EntryCallback | undefined)[] {
    const shared = this.#callback;
    this.#callback = undefined;
    return this.#arguments.map((_, i) => (isUsed(firstSlot + i) ? shared : undefined));
  }
}
