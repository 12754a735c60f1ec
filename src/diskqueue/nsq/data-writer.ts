import type { File, FileSystem } from '../../log/file-system.ts';
import type { AppendResult } from '../message-log.ts';
import type { DataFile } from './data-file.ts';
import type { Position } from './metadata.ts';
import { encodeRecord, RECORD_HEADER_BYTES } from './record.ts';

/** Memory that records are encoded in, in bytes; a longer one gets its own. */
const BUFFER_BYTES = 1024 * 1024;

/**
 * Appends to one data file.
 *
 *      0              file.end        synced         written
 *      ├── readable ─────┼── on the disk ─┼── with the host ─┤
 *                        └───────── pending ────────────────┘
 *
 * What is pending becomes readable when the log says so: at once, or when the metadata that knows it is on the disk.
 */
export class DataWriter {
  readonly file: DataFile;
  readonly #handle: File;
  readonly #maxBytes: number;
  #buffer: Buffer = Buffer.allocUnsafeSlow(0);
  #written: number;
  #synced: number;
  #pendingRecords = 0;
  #pendingBytes = 0;
  #isTorn = false;

  private constructor(file: DataFile, handle: File, maxBytes: number) {
    this.file = file;
    this.#handle = handle;
    this.#maxBytes = maxBytes;
    this.#written = this.#synced = file.end;
  }

  /** Goes on with a file that is whole. */
  static async resume(files: FileSystem, file: DataFile, maxBytes: number): Promise<DataWriter> {
    return new DataWriter(file, await files.open(file.path, 'write'), maxBytes);
  }

  /** Makes a file: when it resolves, its name is on the disk. Never writes over another one. */
  static async create(
    files: FileSystem,
    folder: string,
    file: DataFile,
    maxBytes: number,
  ): Promise<DataWriter> {
    const handle = await files.create(file.path);
    try {
      await files.syncFolder(folder);
    } catch (error) {
      await handle.close().catch(() => undefined);
      await files.unlink(file.path).catch(() => undefined);
      throw error;
    }
    return new DataWriter(file, handle, maxBytes);
  }

  /** Behind all that was written. */
  get position(): Position {
    return { number: this.file.number, offset: this.#written };
  }

  /** Records that are not readable yet. */
  get pendingRecords(): number {
    return this.#pendingRecords;
  }

  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Whether there may be bytes behind what was written. */
  get isTorn(): boolean {
    return this.#isTorn;
  }

  /** Whether something can be read that is not on the disk. */
  get isReadableUnsynced(): boolean {
    return this.file.end > this.#synced;
  }

  /** The rule of the original: a file is full when the record would go beyond the limit, unless it is the first. */
  hasRoomFor(length: number, after = 0): boolean {
    const used = this.#written + after;
    return used === 0 || used + RECORD_HEADER_BYTES + length <= this.#maxBytes;
  }

  /** Writes as many of the messages as belong in this file. */
  async append(messages: readonly Uint8Array[]): Promise<AppendResult> {
    let appended = 0;
    while (appended < messages.length) {
      const { count, bytes } = this.#encode(messages, appended);
      if (count === 0) break;
      try {
        await this.#handle.write(bytes, this.#written);
      } catch (error) {
        await this.#cut(this.#written);
        return { appended, error };
      }
      this.#written += bytes.length;
      this.#pendingRecords += count;
      this.#pendingBytes += bytes.length - count * RECORD_HEADER_BYTES;
      appended += count;
    }
    return { appended };
  }

  /** After it rejected, the file must not be written any more: the host may have dropped what it could not write. */
  async sync(): Promise<void> {
    if (this.#synced === this.#written) return;
    const written = this.#written;
    await this.#handle.sync();
    this.#synced = written;
  }

  /** What was written can be read. */
  publish(): void {
    this.file.end = this.#written;
    this.file.unreadRecords += this.#pendingRecords;
    this.file.unreadBytes += this.#pendingBytes;
    this.#pendingRecords = 0;
    this.#pendingBytes = 0;
  }

  /** Takes back what is not readable, durably; `isTorn` if that fails. */
  async takeBack(): Promise<void> {
    this.#written = this.file.end;
    this.#pendingRecords = 0;
    this.#pendingBytes = 0;
    await this.#cut(this.#written);
    try {
      if (!this.#isTorn) await this.#handle.sync();
      this.#synced = this.#written;
    } catch {
      this.#isTorn = true;
    }
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  async #cut(end: number): Promise<void> {
    try {
      await this.#handle.truncate(end);
    } catch {
      this.#isTorn = true;
    }
  }

  /** Encodes as many records as fit in the buffer and in the file, one at least if it fits in the file. */
  #encode(messages: readonly Uint8Array[], first: number): { count: number; bytes: Buffer } {
    let count = 0;
    let at = 0;
    for (let i = first; i < messages.length; i++) {
      const message = messages[i] as Uint8Array;
      const length = RECORD_HEADER_BYTES + message.length;
      if (!this.hasRoomFor(message.length, at) || (count > 0 && at + length > BUFFER_BYTES)) break;
      if (count === 0) this.#makeRoom(length);
      at = encodeRecord(this.#buffer, at, message);
      count++;
    }
    return { count, bytes: this.#buffer.subarray(0, at) };
  }

  #makeRoom(length: number): void {
    const wanted = Math.max(length, BUFFER_BYTES);
    if (this.#buffer.length !== wanted) this.#buffer = Buffer.allocUnsafeSlow(wanted);
  }
}
