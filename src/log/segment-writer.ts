import { randomInt } from 'node:crypto';

import { isOutOfRoom, type File, type FileSystem } from './file-system.ts';
import {
  encodeFooter,
  encodeMessage,
  encodeSegmentHeader,
  FOOTER_BYTES,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  type SegmentHeader,
} from './segment-format.ts';
import { emptySegment, type AppendResult, type Segment } from './segment.ts';

/** Memory that messages are encoded in, in bytes; a longer message gets its own. */
const BUFFER_BYTES = 1024 * 1024;

/** What a new segment follows. */
export interface Predecessor {
  readonly number: number;
  readonly next: number;
  readonly end: number;
}

/**
 * Appends to one segment, from its making to its footer.
 *
 * A write that fails is taken back by cutting the file, durably: or after a crash its bytes could stand among those that
 * are written in the same place later. If that fails too, or a sync does, the writer is broken, and is not used again:
 * after a failed `fsync` the host may have dropped what was not written, and say that all is well the next time (the
 * "fsyncgate" of PostgreSQL). The next segment's header says where this one ends.
 */
export class SegmentWriter {
  readonly segment: Segment;
  readonly #file: File;
  readonly #salt: number;
  readonly #maxBytes: number;
  /** Whether what is written becomes readable only when it is on the disk. */
  readonly #hidesUnsynced: boolean;
  #buffer: Buffer = Buffer.allocUnsafeSlow(0);
  /** Where the next record goes, its sequence, and up to where all is on the disk. */
  #offset = SEGMENT_HEADER_BYTES;
  #sequence: number;
  #synced = SEGMENT_HEADER_BYTES;
  #payloadBytes = 0;
  #failure: { readonly error: unknown } | undefined;

  private constructor(file: File, segment: Segment, header: SegmentHeader, maxBytes: number) {
    this.#file = file;
    this.segment = segment;
    this.#salt = header.salt;
    this.#sequence = header.baseSequence;
    this.#hidesUnsynced = header.isAlwaysDurable;
    this.#maxBytes = maxBytes;
  }

  /** Makes a segment: when it resolves, its name and its header are on the disk. */
  static async create(
    files: FileSystem,
    folder: string,
    path: string,
    previous: Predecessor,
    options: { isAlwaysDurable: boolean; maxBytes: number; wallMs: number },
  ): Promise<SegmentWriter> {
    const header: SegmentHeader = {
      number: previous.number + 1,
      salt: randomInt(2 ** 32),
      baseSequence: previous.next,
      previousEnd: previous.end,
      isAlwaysDurable: options.isAlwaysDurable,
      createdWallMs: Math.max(0, Math.floor(options.wallMs)),
    };
    const file = await files.create(path);
    try {
      await file.write(encodeSegmentHeader(header), 0);
      await file.sync();
      await files.syncFolder(folder);
    } catch (error) {
      await file.close().catch(() => undefined);
      await files.unlink(path).catch(() => undefined);
      throw error;
    }
    return new SegmentWriter(file, emptySegment(path, header), header, options.maxBytes);
  }

  get isBroken(): boolean {
    return this.#failure !== undefined;
  }

  /** Why messages that can be read are perhaps not on the disk, and never will be; undefined if they are. */
  get doubt(): { readonly error: unknown } | undefined {
    return this.segment.end > this.#synced ? this.#failure : undefined;
  }

  /** Whether everything that was written is readable. */
  get isSettled(): boolean {
    return this.segment.end === this.#offset;
  }

  /** Whether a message still belongs in this segment: it fits, with the footer, or is the first. */
  hasRoomFor(length: number, after = 0): boolean {
    const used = this.#offset + after;
    if (used === SEGMENT_HEADER_BYTES) return true;
    return used + RECORD_HEADER_BYTES + length + FOOTER_BYTES <= this.#maxBytes;
  }

  /** Writes as many of the messages as belong in this segment. */
  async append(messages: readonly Uint8Array[]): Promise<AppendResult> {
    let appended = 0;
    while (appended < messages.length) {
      const { count, bytes, payloadBytes } = this.#encode(messages, appended);
      if (count === 0) break;
      try {
        await this.#file.write(bytes, this.#offset);
      } catch (error) {
        await this.#takeBack();
        return { appended, error };
      }
      this.segment.tail = { offset: this.#offset, bytes };
      this.#offset += bytes.length;
      this.#sequence += count;
      this.#payloadBytes += payloadBytes;
      appended += count;
      if (!this.#hidesUnsynced) this.#publish();
    }
    return { appended };
  }

  /** Makes it all durable, and readable. If it rejects, the writer is broken. */
  async sync(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure.error;
    if (this.#synced === this.#offset) return;
    await this.#syncFile();
    this.#synced = this.#offset;
    this.#publish();
  }

  /**
   * Ends the segment for good, and durably. Where there is no room for a footer, it is done without. If it rejects, it can
   * be tried again unless the writer is broken.
   */
  async seal(): Promise<void> {
    await this.sync();
    const messages = this.#sequence - this.segment.base;
    const footer = encodeFooter({ messages, payloadBytes: this.#payloadBytes }, this.#sequence, this.#salt);
    try {
      await this.#file.write(footer, this.#offset);
      await this.#syncFile();
    } catch (error) {
      if (!this.isBroken) await this.#takeBack();
      if (this.isBroken || !isOutOfRoom(error)) throw error;
    }
    await this.close().catch(() => undefined); // it is all on the disk
  }

  /** Cuts off what is not readable, as well as it can be done: nobody was promised it. */
  async abandon(): Promise<void> {
    await this.#file.truncate(this.segment.end).catch(() => undefined);
    await this.close().catch(() => undefined);
  }

  async close(): Promise<void> {
    this.segment.tail = undefined;
    await this.#file.close();
  }

  #publish(): void {
    this.segment.end = this.#offset;
    this.segment.next = this.#sequence;
  }

  async #takeBack(): Promise<void> {
    try {
      await this.#file.truncate(this.#offset);
      await this.#file.sync();
    } catch (error) {
      this.#failure = { error };
    }
  }

  /** Once it has failed, it is never tried again. */
  async #syncFile(): Promise<void> {
    try {
      await this.#file.sync();
    } catch (error) {
      this.#failure = { error };
      throw error;
    }
  }

  /** Encodes as many messages as fit in the buffer and in the segment, one at least if it fits in the segment. */
  #encode(
    messages: readonly Uint8Array[],
    first: number,
  ): { count: number; bytes: Buffer; payloadBytes: number } {
    let count = 0;
    let at = 0;
    let payloadBytes = 0;
    this.segment.tail = undefined; // what it shows is overwritten
    for (let i = first; i < messages.length; i++) {
      const message = messages[i] as Uint8Array;
      const length = RECORD_HEADER_BYTES + message.length;
      if (!this.hasRoomFor(message.length, at) || (count > 0 && at + length > BUFFER_BYTES)) break;
      if (count === 0) this.#makeRoom(length);
      const isSynced = count === 0 && this.#synced === this.#offset;
      at = encodeMessage(this.#buffer, at, message, this.#sequence + count, this.#salt, isSynced);
      payloadBytes += message.length;
      count++;
    }
    return { count, bytes: this.#buffer.subarray(0, at), payloadBytes };
  }

  #makeRoom(length: number): void {
    const wanted = Math.max(length, BUFFER_BYTES);
    if (this.#buffer.length !== wanted) this.#buffer = Buffer.allocUnsafeSlow(wanted);
  }
}
