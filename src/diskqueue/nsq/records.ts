import type { File } from '../../log/file-system.ts';
import { endOfRecord, LENGTH_BYTES } from './format.ts';

/** Bytes read at once: of records; a longer one gets memory of its own. */
const BLOCK_BYTES = 128 * 1024;
/** The same while only their headers matter. */
const COUNT_BLOCK_BYTES = 256 * 1024;

export interface RecordCount {
  /** Where the last complete record ends. */
  readonly end: number;
  readonly records: number;
  /** Bytes of their messages. */
  readonly bytes: number;
  /** Number of empty messages at the end. On the disk they are zeros. */
  readonly lastEmpty: number;
  readonly lastEmptyFrom: number;
  /** The length in the header of the incomplete record behind `end`; undefined if there is no complete header. */
  readonly nextLength: number | undefined;
}

/** Counts records by their headers, up to `end` or the first that is not complete. */
export async function countRecords(file: File, from: number, end: number): Promise<RecordCount> {
  const block = Buffer.allocUnsafeSlow(Math.min(COUNT_BLOCK_BYTES, end - from));
  let at = from;
  let records = 0;
  let bytes = 0;
  let lastEmpty = 0;
  let nextLength: number | undefined;
  while (at < end && nextLength === undefined) {
    const filled = await file.read(block.subarray(0, Math.min(block.length, end - at)), at);
    if (filled < LENGTH_BYTES) break;
    const blockStart = at;
    while (at + LENGTH_BYTES <= blockStart + filled) {
      const length = block.readInt32BE(at - blockStart);
      const next = endOfRecord(length, at, end);
      if (next === undefined) {
        nextLength = length;
        break;
      }
      at = next;
      records++;
      bytes += length;
      lastEmpty = length === 0 ? lastEmpty + 1 : 0;
    }
  }
  const lastEmptyFrom = at - lastEmpty * LENGTH_BYTES;
  return { end: at, records, bytes, lastEmpty, lastEmptyFrom, nextLength };
}

export interface ReadRecord {
  /** A copy. */
  readonly data: Buffer;
  readonly end: number;
}

/** Reads the records of one data file, in order, up to the `end` of the readable ones, which may grow. */
export class RecordReader<F extends { readonly end: number }> {
  readonly file: F;
  readonly #handle: File | undefined;
  readonly #block: Buffer = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  /** Where the next record begins. */
  offset: number;

  /**
   * @param handle - undefined if the file does not exist: all of it is damaged.
   * @param offset - where a record begins.
   */
  constructor(file: F, handle: File | undefined, offset: number) {
    this.file = file;
    this.#handle = handle;
    this.offset = offset;
  }

  /**
   * Returns the next records: as many as one block of the file holds, and none at its end; undefined if the bytes at
   * `offset` are not a record.
   *
   * @throws the error of the file system; then nothing has changed, and the call can be repeated.
   */
  async next(): Promise<ReadRecord[] | undefined> {
    const { end } = this.file;
    if (this.offset >= end) return [];
    if (this.#handle === undefined) return undefined;
    const filled = await this.#handle.read(
      this.#block.subarray(0, Math.min(BLOCK_BYTES, end - this.offset)),
      this.offset,
    );
    const records = this.#recordsIn(this.#block.subarray(0, filled), end);
    if (records.length === 0) records.push(...(await this.#longRecord(this.#handle, filled, end)));
    const last = records.at(-1);
    if (last === undefined) return undefined;
    this.offset = last.end;
    return records;
  }

  /** Whether the file did not exist when it was to be read. */
  get isRemoved(): boolean {
    return this.#handle === undefined;
  }

  async close(): Promise<void> {
    await this.#handle?.close();
  }

  /** Returns the records of which the block has every byte. */
  #recordsIn(block: Buffer, end: number): ReadRecord[] {
    const records: ReadRecord[] = [];
    const start = this.offset;
    let at = start;
    while (at - start + LENGTH_BYTES <= block.length) {
      const next = endOfRecord(block.readInt32BE(at - start), at, end);
      if (next === undefined || next - start > block.length) break;
      const payload = block.subarray(at - start + LENGTH_BYTES, next - start);
      records.push({ data: Buffer.from(payload), end: next });
      at = next;
    }
    return records;
  }

  async #longRecord(handle: File, filled: number, end: number): Promise<ReadRecord[]> {
    if (filled < LENGTH_BYTES) return [];
    const next = endOfRecord(this.#block.readInt32BE(0), this.offset, end);
    if (next === undefined) return [];
    const data = Buffer.allocUnsafeSlow(next - this.offset - LENGTH_BYTES);
    const read = await handle.read(data, this.offset + LENGTH_BYTES);
    return read < data.length ? [] : [{ data, end: next }];
  }
}
