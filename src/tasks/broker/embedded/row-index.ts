import { Index, type TaskRow } from './task-lists.ts';

/*
 * A hash of an id: FNV-1a of its characters, http://www.isthe.com/chongo/tech/comp/fnv. An integer of 32 bits with a sign: V8 needs no memory
 * for it.
 */
const FNV_BASIS = 0x81_1c_9d_c5 | 0;
const FNV_PRIME = 0x01_00_01_93;

function hashOf(id: string): number {
  let hash = FNV_BASIS;
  for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), FNV_PRIME);
  return hash;
}

/** Returns the hash of an id whose bytes these are; undefined unless it is ASCII. */
export function hashOfBytes(bytes: Uint8Array, start: number, end: number): number | undefined {
  let hash = FNV_BASIS;
  let all = 0;
  for (let i = start; i < end; i++) {
    const byte = bytes[i] as number;
    hash = Math.imul(hash ^ byte, FNV_PRIME);
    all |= byte;
  }
  return all > 0x7f ? undefined : hash;
}

/** Slots that are searched for a hash: few slots that are behind one another are taken, unless ids were chosen so. */
const MOST_SEARCHED = 64;

/**
 * Rows by the hashes of their ids, made for as many as there will be: rows only leave it. A `Map` of them would take three times as long.
 *
 *      slots     · 3 · · 1 2 · ·         at the hash or behind it: the position + 1; 0 is free
 *      hashes    a b c                   by position
 *      rows      A B C
 */
class PackedRows {
  readonly #slots: Int32Array;
  readonly #hashes: Int32Array;
  readonly #rows: (TaskRow | undefined)[] = [];
  size = 0;

  constructor(capacity: number) {
    this.#slots = new Int32Array(2 ** Math.ceil(Math.log2(capacity * 2)));
    this.#hashes = new Int32Array(capacity);
  }

  /** @returns false if another row has the hash, or there is no free slot near it. */
  add(row: TaskRow, hash: number): boolean {
    const slot = this.#slotOf(hash);
    if (this.#slots[slot] !== 0) return false;
    this.#hashes[this.#rows.length] = hash;
    this.#slots[slot] = this.#rows.push(row);
    this.size++;
    return true;
  }

  get(id: string): TaskRow | undefined {
    const row = this.#rows[this.#positionOf(id)];
    return row?.id === id ? row : undefined;
  }

  /** @returns false if it is not here. */
  delete(row: TaskRow): boolean {
    const position = this.#positionOf(row.id);
    if (this.#rows[position] !== row) return false;
    this.#rows[position] = undefined;
    this.size--;
    return true;
  }

  *values(): Generator<TaskRow, void, undefined> {
    for (const row of this.#rows) if (row !== undefined) yield row;
  }

  /** The position of the only row that may have an id; -1 if there is none. */
  #positionOf(id: string): number {
    const slot = this.#slotOf(hashOf(id));
    return (this.#slots[slot] ?? 0) - 1;
  }

  /** The slot of a hash, or the free one that it would get; -1 if both are too far away. */
  #slotOf(hash: number): number {
    const last = this.#slots.length - 1;
    for (let searched = 0; searched < MOST_SEARCHED; searched++) {
      const slot = (hash + searched) & last;
      const position = (this.#slots[slot] as number) - 1;
      if (position < 0 || this.#hashes[position] === hash) return slot;
    }
    return -1;
  }
}

/**
 * The rows of a queue by their ids.
 *
 *      packed    by a hash of the id     tasks that a reopen has found, and whose ids are still bytes (journaled-row.ts)
 *      others    by the id               all other tasks
 *
 * A million strings and a map of them would take a third of the time of a reopen. A row stays where it is until it is removed.
 */
export class RowIndex {
  #packed: PackedRows | undefined;
  #capacity = 0;
  readonly #others = new Index<TaskRow>();

  get size(): number {
    return (this.#packed?.size ?? 0) + this.#others.map.size;
  }

  get(id: string): TaskRow | undefined {
    return this.#others.map.get(id) ?? this.#packed?.get(id);
  }

  has(id: string): boolean {
    return this.get(id) !== undefined;
  }

  /** The loop may add and remove rows. */
  *values(): Generator<TaskRow, void, undefined> {
    if (this.#packed !== undefined) yield* this.#packed.values();
    yield* this.#others.map.values();
  }

  add(row: TaskRow): void {
    this.#others.set(row.id, row);
  }

  /** Called before `addPacked`. @param capacity - number of rows, or more. */
  reserve(capacity: number): void {
    this.#capacity = capacity;
  }

  /** Adds a row by the hash of its id. @returns false if it has to be added by its id. */
  addPacked(row: TaskRow, hash: number): boolean {
    this.#packed ??= new PackedRows(this.#capacity);
    return this.#packed.add(row, hash);
  }

  delete(row: TaskRow): void {
    if (this.#packed?.delete(row) !== true) this.#others.delete(row.id);
    else if (this.#packed.size === 0) this.#packed = undefined;
  }
}

/** Numbers of one page: most rows have the number after that of the row that was read before, or the next but one. */
const PAGE_NUMBERS = 32;

/** Rows by their numbers, in pages: a map of each row would take most of the time of a replay. */
export class RowsByNumber<R extends { readonly number: number }> {
  readonly #pages = new Map<number, (R | undefined)[]>();
  #pageNumber = NaN;
  #page: (R | undefined)[] | undefined;

  get(number: number): R | undefined {
    return this.#pageOf(number)?.[number % PAGE_NUMBERS];
  }

  set(row: R): void {
    const page = this.#pageOf(row.number) ?? this.#addPage();
    page[row.number % PAGE_NUMBERS] = row;
  }

  delete({ number }: R): void {
    const page = this.#pageOf(number);
    if (page !== undefined) page[number % PAGE_NUMBERS] = undefined;
  }

  *values(): Generator<R, void, undefined> {
    for (const page of this.#pages.values()) for (const row of page) if (row !== undefined) yield row;
  }

  #pageOf(number: number): (R | undefined)[] | undefined {
    const pageNumber = Math.floor(number / PAGE_NUMBERS);
    if (pageNumber !== this.#pageNumber) {
      this.#pageNumber = pageNumber;
      this.#page = this.#pages.get(pageNumber);
    }
    return this.#page;
  }

  /** Adds the page that `#pageOf` has not found. */
  #addPage(): (R | undefined)[] {
    const page = new Array<R | undefined>(PAGE_NUMBERS).fill(undefined);
    this.#pages.set(this.#pageNumber, page);
    this.#page = page;
    return page;
  }
}
