/*
 * The bytes of an entry of the journal: a kind, the length of the rest, the rest. What is in the rest: journal-format.ts.
 *
 * Numbers are little-endian; texts are UTF-8 behind their length.
 */

/** V8 has the bytes of such a short array in the array itself: copying them one by one is faster than a call. */
const SHORT_BYTES = 64;

/** The call that copies bytes takes as long as copying so many in words. */
const LONG_BYTES = 256;

const NO_BYTES = /* @__PURE__ */ Buffer.alloc(0);
const NO_VIEW = /* @__PURE__ */ new DataView(new ArrayBuffer(0));

/** Bytes in front of an entry: its kind and its length. */
const ENTRY_HEADER_BYTES = 5;

/** Size of the memory of a writer that has not grown. */
const WRITER_BYTES = 8_192;

/** Memory of writers that are done: allocating it anew costs more than writing into it. */
const spareMemory: Buffer[] = [];
const MOST_SPARE = 32;

/** Writes entries into memory that grows. */
export class EntryWriter {
  #bytes: Buffer = spareMemory.pop() ?? Buffer.allocUnsafeSlow(WRITER_BYTES);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;
  /** Where the entries that were ended end. One that was not, because an error was thrown, is written over. */
  #end = 0;

  get length(): number {
    return this.#end;
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#end);
  }

  begin(kind: number): void {
    this.#length = this.#end;
    this.#reserve(ENTRY_HEADER_BYTES);
    this.#bytes[this.#length] = kind;
    this.#length += ENTRY_HEADER_BYTES;
  }

  /** @returns the size of the entry, in bytes. */
  end(): number {
    const size = this.#length - this.#end;
    this.#view.setUint32(this.#end + 1, size - ENTRY_HEADER_BYTES, true);
    this.#end = this.#length;
    return size;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  uint32(value: number): void {
    this.#reserve(4);
    this.#view.setUint32(this.#length, value, true);
    this.#length += 4;
  }

  number(value: number): void {
    this.#reserve(8);
    this.#view.setFloat64(this.#length, value, true);
    this.#length += 8;
  }

  text(text: string): void {
    // A character of a string is at most three bytes.
    this.#reserve(4 + text.length * 3);
    const start = this.#length + 4;
    const written = this.#writeAscii(text, start) ? text.length : this.#bytes.write(text, start);
    this.#view.setUint32(this.#length, written, true);
    this.#length = start + written;
  }

  /** @returns where the bytes begin. */
  blob(bytes: Uint8Array): number {
    const { length } = bytes;
    this.#reserve(4 + length);
    this.#view.setUint32(this.#length, length, true);
    const start = this.#length + 4;
    if (length > SHORT_BYTES) this.#bytes.set(bytes, start);
    else for (let i = 0; i < length; i++) this.#bytes[start + i] = bytes[i] as number;
    this.#length = start + length;
    return start;
  }

  json(value: unknown): void {
    this.text(JSON.stringify(value));
  }

  /** Gives its memory to the next writer: `bytes` is not valid any more. `length` is. */
  release(): void {
    if (this.#bytes.length === WRITER_BYTES && spareMemory.length < MOST_SPARE) spareMemory.push(this.#bytes);
    this.#bytes = NO_BYTES;
    this.#view = NO_VIEW;
  }

  /** @returns whether it was written: a short text without other characters. */
  #writeAscii(text: string, start: number): boolean {
    const { length } = text;
    if (length > SHORT_BYTES) return false;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) return false;
      this.#bytes[start + i] = code;
    }
    return true;
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }
}

/** Reads entries. Texts and blobs are copies. */
export class EntryReader {
  readonly #bytes: Buffer;
  readonly #view: DataView;
  #start = 0;
  #at = 0;
  #end = 0;

  /** @param at - where it begins to read, if not in front of an entry. */
  constructor(bytes: Buffer, at = 0) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#at = at;
  }

  /**
   * Goes to the next entry, wherever the reader stands in this one.
   *
   * @returns its kind; undefined after the last one.
   * @throws Error - the record ends in the middle of an entry.
   */
  next(): number | undefined {
    this.#start = this.#end;
    if (this.#start === this.#bytes.length) return undefined;
    this.#at = this.#start + ENTRY_HEADER_BYTES;
    this.#end = this.#at + this.#view.getUint32(this.#start + 1, true);
    if (this.#end > this.#bytes.length) throw new Error('an entry is longer than its record');
    return this.#bytes[this.#start];
  }

  /** Where the rest of the entry begins that was not read yet. */
  get offset(): number {
    return this.#at;
  }

  get size(): number {
    return this.#end - this.#start;
  }

  /** How much of the entry was not read yet, in bytes. */
  get left(): number {
    return this.#end - this.#at;
  }

  /** Copies bytes from an offset to another one. @param view - of all of `to`. @returns where they end in it. */
  copy(from: number, end: number, to: Buffer, view: DataView, at: number): number {
    if (end - from > LONG_BYTES) return at + this.#bytes.copy(to, at, from, end);
    for (; from + 4 <= end; from += 4, at += 4) view.setInt32(at, this.#view.getInt32(from));
    for (; from < end; from++, at++) to[at] = this.#bytes[from] as number;
    return at;
  }

  /** The byte that is so far ahead of the next one. */
  byteAhead(offset: number): number {
    return this.#bytes[this.#at + offset] as number;
  }

  uint32Ahead(offset: number): number {
    return this.#view.getUint32(this.#at + offset, true);
  }

  byte(): number {
    return this.#bytes[this.#at++] as number;
  }

  uint32(): number {
    this.#at += 4;
    return this.#view.getUint32(this.#at - 4, true);
  }

  number(): number {
    this.#at += 8;
    const value = this.#view.getFloat64(this.#at - 8, true);
    const integer = value | 0; // V8 needs no memory for a small one
    return integer === value ? integer : value;
  }

  text(): string {
    const length = this.uint32();
    this.#at += length;
    return this.#bytes.toString('utf8', this.#at - length, this.#at);
  }

  skipText(): void {
    this.#at += 4 + this.uint32Ahead(0);
  }

  /** Reads the text at an offset. The reader stays where it is. */
  textAt(offset: number): string {
    const start = offset + 4;
    return this.#bytes.toString('utf8', start, start + this.#view.getUint32(offset, true));
  }

  /** Reads a text that is often the same as before: that one is returned then, so that it is in memory once. Only if it is ASCII. */
  textLike(before: string): string {
    const { length } = before;
    if (this.uint32Ahead(0) !== length) return this.text();
    for (let i = 0; i < length; i++) {
      const byte = this.#bytes[this.#at + 4 + i] as number;
      if (byte > 0x7f || byte !== before.charCodeAt(i)) return this.text(); // the bytes of 'é' are the codes of 'Ã©'
    }
    this.#at += 4 + length;
    return before;
  }

  blob(): Uint8Array {
    const length = this.uint32();
    const start = this.#at;
    this.#at += length;
    if (length > SHORT_BYTES) return new Uint8Array(this.#bytes.subarray(start, this.#at));
    const copy = new Uint8Array(length);
    for (let i = 0; i < length; i++) copy[i] = this.#bytes[start + i] as number;
    return copy;
  }

  json(): unknown {
    return JSON.parse(this.text());
  }
}
