import { createFile, type File, type FileSystem } from '../../log/file-system.ts';
import { BUFFER_BYTES, bufferFor, type EncodedRecords } from '../../log/segment-writer.ts';
import type { AppendResult } from '../message-log.ts';
import type { DataFile } from './data-files.ts';
import { writeRecord, LENGTH_BYTES, type Position } from './format.ts';

/**
 * Appends to one data file.
 *
 *      0              file.end        synced         written
 *      ├── readable ─────┼── on the disk ─┼── with the host ─┤
 *                        └───────── pending ────────────────┘
 *
 * Pending records become readable when the log publishes them: at once, or when the metadata that covers them is on the
 * disk.
 */
export class DataWriter {
  readonly file: DataFile;
  /** Number of records that are not readable yet, and the bytes of their messages. */
  pendingRecords = 0;
  pendingBytes = 0;
  /** Whether the file may have bytes behind the last written record. */
  isTorn = false;
  readonly #handle: File;
  readonly #maxBytes: number;
  #buffer: Buffer = Buffer.allocUnsafeSlow(0);
  #written: number;
  #synced: number;

  /** @param file - ends with a complete record. */
  constructor(file: DataFile, handle: File, maxBytes: number) {
    this.file = file;
    this.#handle = handle;
    this.#maxBytes = maxBytes;
    this.#written = this.#synced = file.end;
  }

  /** Creates a file. Resolves when its name is on the disk. Rejects if there is such a file. */
  static async create(
    files: FileSystem,
    folder: string,
    file: DataFile,
    maxBytes: number,
  ): Promise<DataWriter> {
    const handle = await createFile(files, file.path, () => files.syncFolder(folder));
    return new DataWriter(file, handle, maxBytes);
  }

  get position(): Position {
    return { number: this.file.number, offset: this.#written };
  }

  /** Whether a readable record is not on the disk. */
  get isReadableUnsynced(): boolean {
    return this.file.end > this.#synced;
  }

  /** go-diskqueue's rule: a file is full if the record would exceed the limit, unless it is the first one. */
  fits(length: number, after = 0): boolean {
    const used = this.#written + after;
    return used === 0 || used + LENGTH_BYTES + length <= this.#maxBytes;
  }

  /** Writes as many of the messages as fit in this file. */
  async append(messages: readonly Uint8Array[]): Promise<AppendResult> {
    let appended = 0;
    while (appended < messages.length) {
      let encoded: EncodedRecords;
      try {
        encoded = this.#encode(messages, appended); // there may be no memory for it
        if (encoded.count === 0) break;
        await this.#handle.write(encoded.bytes, this.#written);
      } catch (error) {
        await this.#cut(this.#written);
        return { appended, error };
      }
      const { count, bytes } = encoded;
      this.#written += bytes.length;
      this.pendingRecords += count;
      this.pendingBytes += bytes.length - count * LENGTH_BYTES;
      appended += count;
    }
    return { appended };
  }

  /** After a rejection the file must not be written any more: the host may have dropped what it could not write. */
  async sync(): Promise<void> {
    if (this.#synced === this.#written) return;
    const written = this.#written;
    await this.#handle.sync();
    this.#synced = written;
  }

  publish(): void {
    this.file.end = this.#written;
    this.file.unreadRecords += this.pendingRecords;
    this.file.unreadBytes += this.pendingBytes;
    this.pendingRecords = 0;
    this.pendingBytes = 0;
  }

  /** Removes the pending records durably; sets `isTorn` if that fails. */
  async takeBack(): Promise<void> {
    this.#written = this.file.end;
    this.pendingRecords = 0;
    this.pendingBytes = 0;
    await this.#cut(this.#written);
    try {
      if (!this.isTorn) await this.#handle.sync();
      this.#synced = this.#written;
    } catch {
      this.isTorn = true;
    }
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  async #cut(end: number): Promise<void> {
    try {
      await this.#handle.truncate(end);
    } catch {
      this.isTorn = true;
    }
  }

  /** Encodes as many records as fit in the buffer and in the file; at least one if it fits in the file. */
  #encode(messages: readonly Uint8Array[], first: number): EncodedRecords {
    let count = 0;
    let at = 0;
    for (let i = first; i < messages.length; i++) {
      const message = messages[i] as Uint8Array;
      const length = LENGTH_BYTES + message.length;
      if (!this.fits(message.length, at) || (count > 0 && at + length > BUFFER_BYTES)) break;
      if (count === 0) this.#buffer = bufferFor(length, this.#buffer);
      at = writeRecord(this.#buffer, at, message);
      count++;
    }
    return { count, bytes: this.#buffer.subarray(0, at) };
  }
}
