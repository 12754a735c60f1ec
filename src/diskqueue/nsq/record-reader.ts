import type { File, FileSystem } from '../../log/file-system.ts';
import type { DataFile } from './data-file.ts';
import { endOfRecord, RECORD_HEADER_BYTES } from './record.ts';

/** Bytes read at once. A record that is longer gets a piece of memory for itself. */
const BLOCK_BYTES = 128 * 1024;

/** A message, and where its record ends. */
export interface ReadRecord {
  /** A copy. */
  readonly data: Buffer;
  readonly end: number;
}

/** One data file that is being read: its handle, and how far it was read. */
export class RecordReader {
  readonly file: DataFile;
  readonly #handle: File;
  readonly #block: Buffer = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  #offset: number;

  private constructor(file: DataFile, handle: File, offset: number) {
    this.file = file;
    this.#handle = handle;
    this.#offset = offset;
  }

  /** @param offset - where a record begins. */
  static async open(files: FileSystem, file: DataFile, offset: number): Promise<RecordReader> {
    return new RecordReader(file, await files.open(file.path, 'read'), offset);
  }

  /** Where the next record begins. */
  get offset(): number {
    return this.#offset;
  }

  /**
   * The next records: as many as one block of the file holds, and none at the end of what is readable.
   *
   * @returns undefined if what stands here is no record.
   * @throws what the file system throws; then nothing has changed, and the call can be repeated.
   */
  async next(): Promise<ReadRecord[] | undefined> {
    const { end } = this.file;
    if (this.#offset >= end) return [];
    const filled = await this.#handle.read(
      this.#block.subarray(0, Math.min(BLOCK_BYTES, end - this.#offset)),
      this.#offset,
    );
    const records = this.#recordsIn(this.#block.subarray(0, filled), end);
    if (records.length === 0) records.push(...(await this.#longRecord(filled, end)));
    const last = records.at(-1);
    if (last === undefined) return undefined;
    this.#offset = last.end;
    return records;
  }

  /** Goes over what cannot be read, to a place where a record begins. */
  skipTo(offset: number): void {
    this.#offset = offset;
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  /** The records that are in the block as a whole. */
  #recordsIn(block: Buffer, end: number): ReadRecord[] {
    const records: ReadRecord[] = [];
    const start = this.#offset;
    let at = start;
    while (at - start + RECORD_HEADER_BYTES <= block.length) {
      const next = endOfRecord(block.readInt32BE(at - start), at, end);
      if (next === undefined || next - start > block.length) break;
      const payload = block.subarray(at - start + RECORD_HEADER_BYTES, next - start);
      records.push({ data: Buffer.from(payload), end: next });
      at = next;
    }
    return records;
  }

  async #longRecord(filled: number, end: number): Promise<ReadRecord[]> {
    if (filled < RECORD_HEADER_BYTES) return [];
    const next = endOfRecord(this.#block.readInt32BE(0), this.#offset, end);
    if (next === undefined) return [];
    const data = Buffer.allocUnsafeSlow(next - this.#offset - RECORD_HEADER_BYTES);
    const read = await this.#handle.read(data, this.#offset + RECORD_HEADER_BYTES);
    return read < data.length ? [] : [{ data, end: next }];
  }
}
