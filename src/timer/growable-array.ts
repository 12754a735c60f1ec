/** A typed array whose length follows its buffer. */
interface TypedArrayConstructor<A> {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer): A;
}

/** Address space asked for when a table is made: room for 16 million entries, of which nothing is used yet. */
const RESERVED_ENTRIES = 2 ** 24;
/** When even this much address space is refused, the host is out of memory. */
const LEAST_RESERVED_ENTRIES = 2 ** 10;

/**
 * A typed array that grows in place.
 *
 * WHY. Doubling by copy stops the world: 5 million entries of 16 bytes take tens of milliseconds to move. A
 * list of pages never moves, but costs a second lookup on every link that is followed (12 ns of 45 on a
 * cancel + add). A resizable `ArrayBuffer` reserves addresses once and commits memory as it grows: one flat
 * array, no copy, a stall of microseconds (`npm run bench -- timer --filter growth`).
 *
 * Past the reservation the content moves once, to one four times as large.
 */
export class GrowableArray<A extends Int32Array | Float64Array> {
  /** Changes when the content moves: read it anew after every `grow`. */
  values: A;
  readonly #type: TypedArrayConstructor<A>;
  readonly #bytesPerEntry: number;

  constructor(type: TypedArrayConstructor<A>, elementsPerEntry: number, entries: number) {
    this.#type = type;
    this.#bytesPerEntry = type.BYTES_PER_ELEMENT * elementsPerEntry;
    this.values = new type(this.#reserve(entries, RESERVED_ENTRIES));
  }

  /** Makes room for `entries` in all; what is new is zero. Cost: microseconds within the reservation. */
  grow(entries: number): void {
    const buffer = this.values.buffer as ArrayBuffer;
    const bytes = entries * this.#bytesPerEntry;
    if (bytes <= buffer.maxByteLength) {
      buffer.resize(bytes);
      return;
    }
    const moved = new this.#type(this.#reserve(entries, entries * 4));
    moved.set(this.values);
    this.values = moved;
  }

  /** A host may refuse a large reservation (a limit on address space): then a smaller one does, and moves earlier. */
  #reserve(entries: number, reservedEntries: number): ArrayBuffer {
    const bytes = entries * this.#bytesPerEntry;
    for (let reserved = Math.max(reservedEntries, entries); ; reserved /= 4) {
      const maxByteLength = Math.max(Math.floor(reserved) * this.#bytesPerEntry, bytes);
      try {
        return new ArrayBuffer(bytes, { maxByteLength });
      } catch (error) {
        if (reserved <= Math.max(entries, LEAST_RESERVED_ENTRIES)) throw error;
      }
    }
  }
}
