import { randomInt } from 'node:crypto';
import { createFile, isDiskFull, type File, type FileSystem } from './file-system.ts';
import {
  encodeFooter,
  encodeRecord,
  encodeSegmentHeader,
  FOOTER_BYTES,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  type SegmentHeader,
  type AppendResult,
  type LogPosition,
  type Segment,
} from './segment.ts';

/** Maximum bytes of one write; a longer record is written alone. */
export const BUFFER_BYTES = 1024 * 1024;

/**
 * When so many bytes, or a quarter of a segment, are not on the disk, a sync begins that nothing waits for: the sync at the end of the
 * segment, which appends wait for, must not have all of it to write.
 */
const UNSYNCED_BYTES = 1024 * 1024;

/**
 * Behind records that are to be durable at once come zeros, at most so many bytes, which the next records are written over. A sync of
 * bytes that the file had before need not make its new size and place durable: on ext4 it takes two fifths less time for 15 kB, and a
 * sixth less for 256 bytes (SQLite and PostgreSQL write into old files for that). A short file gets as many zeros as it is long.
 */
const MOST_ZEROS = 256 * 1024;
/** Zeros end at a multiple of it: file systems write pages. */
const PAGE_BYTES = 4096;

/** Memory that the records of a write are encoded in: `buffer`, unless the first record needs another one. */
export function bufferFor(length: number, buffer: Buffer): Buffer {
  const wanted = Math.max(length, BUFFER_BYTES);
  return buffer.length === wanted ? buffer : Buffer.allocUnsafeSlow(wanted);
}

/** The bytes of so many records, in memory that the next ones overwrite. */
export interface EncodedRecords {
  readonly count: number;
  readonly bytes: Buffer;
}

/**
 * Appends to one segment, from its creation to its footer.
 *
 * A write that fails is taken back by truncating the file, durably: otherwise its bytes could appear after a crash among
 * those that are written in the same place later. If that fails too, or a sync fails, the writer is broken and is not used
 * again: after a failed `fsync` the host may have dropped what was not written, and report success the next time (the
 * "fsyncgate" of PostgreSQL). The next segment's header holds the end of this one.
 */
export class SegmentWriter {
  readonly segment: Segment;
  readonly #file: File;
  readonly #header: SegmentHeader;
  readonly #type: number;
  readonly #maxBytes: number;
  #buffer: Buffer = Buffer.allocUnsafeSlow(0);
  /** Where the next record goes, its sequence, and the offset before which everything is on the disk. */
  #offset = SEGMENT_HEADER_BYTES;
  #sequence: number;
  #synced = SEGMENT_HEADER_BYTES;
  /** Where the zeros end that are there to be written over; nothing but zeros is between the last record and this. */
  #zerosEnd = 0;
  /** Whether there was no space for zeros. */
  #isDiskFull = false;
  #failure: { readonly error: unknown } | undefined;
  /** The sync that nothing waits for; it does not reject. */
  #background: Promise<void> | undefined;
  /** Its failure, until an append has returned it. */
  #unreported: { readonly error: unknown } | undefined;

  private constructor(file: File, path: string, header: SegmentHeader, type: number, maxBytes: number) {
    const { number, baseSequence: base } = header;
    this.segment = { path, number, header, base, end: SEGMENT_HEADER_BYTES, next: base };
    this.#file = file;
    this.#header = header;
    this.#sequence = base;
    this.#type = type;
    this.#maxBytes = maxBytes;
  }

  /** Creates a segment. When it resolves, its name and its header are on the disk. */
  static async create(
    files: FileSystem,
    folder: string,
    path: string,
    fields: Omit<SegmentHeader, 'salt'>,
    type: number,
    maxBytes: number,
  ): Promise<SegmentWriter> {
    const header: SegmentHeader = { ...fields, salt: randomInt(2 ** 32) };
    const file = await createFile(files, path, async (made) => {
      await made.write(encodeSegmentHeader(header), 0);
      await made.sync();
      await files.syncFolder(folder);
    });
    return new SegmentWriter(file, path, header, type, maxBytes);
  }

  get isBroken(): boolean {
    return this.#failure !== undefined;
  }

  /** The failure of a sync that nothing has waited for, once: the next append returns it. */
  takeUnreported(): { readonly error: unknown } | undefined {
    const failure = this.#unreported;
    this.#unreported = undefined;
    return failure;
  }

  /** Why readable records may be missing on the disk, for good; undefined if they are there. */
  get possibleLoss(): { readonly error: unknown } | undefined {
    return this.segment.end > this.#synced ? this.#failure : undefined;
  }

  /** Whether everything that was written is readable. */
  get isSettled(): boolean {
    return this.segment.end === this.#offset;
  }

  /** Where the next record goes. */
  get position(): LogPosition {
    return { segment: this.segment.number, offset: this.#offset, sequence: this.#sequence };
  }

  /** Whether a record belongs in this segment: it fits, together with the footer, or is the first. */
  fits(length: number, after = 0): boolean {
    const used = this.#offset + after;
    if (used === SEGMENT_HEADER_BYTES) return true;
    return used + RECORD_HEADER_BYTES + length + FOOTER_BYTES <= this.#maxBytes;
  }

  /** Writes as many of the records as belong in this segment. */
  async append(payloads: readonly Uint8Array[]): Promise<AppendResult> {
    let appended = 0;
    while (appended < payloads.length) {
      let encoded: EncodedRecords;
      try {
        encoded = this.#encode(payloads, appended); // there may be no memory for it
        if (encoded.count === 0) break;
        await this.#write(encoded.bytes);
      } catch (error) {
        await this.#takeBack();
        return { appended, error };
      }
      const { count, bytes } = encoded;
      if (bytes.length <= BUFFER_BYTES) this.segment.tail = { offset: this.#offset, bytes };
      else this.#buffer = Buffer.allocUnsafeSlow(0); // a long record must not stay in memory
      this.#offset += bytes.length;
      this.#sequence += count;
      appended += count;
      if (this.#header.isAlwaysDurable) continue; // records become readable only when they are on the disk
      this.#publish();
      const unsynced = this.#offset - this.#synced;
      if (unsynced >= Math.min(UNSYNCED_BYTES, this.#maxBytes / 4))
        this.#background ??= this.#syncInBackground();
    }
    return { appended };
  }

  /** Makes everything durable, and readable. If it rejects, the writer is broken. */
  async sync(): Promise<void> {
    await this.#background;
    if (this.#failure !== undefined) throw this.#failure.error;
    if (this.#synced === this.#offset) return;
    await this.#syncFile();
    this.#publish();
  }

  /**
   * Ends the segment durably. If the disk has no space for a footer, there is none. If it rejects, it can be repeated
   * unless the writer is broken.
   */
  async seal(): Promise<void> {
    await this.sync();
    const footer = encodeFooter(this.#header, this.#offset, this.#sequence);
    try {
      if (this.#zerosEnd > this.#offset) await this.#file.truncate(this.#offset); // a footer is the last thing in a file
      await this.#file.write(footer, this.#offset);
      await this.#syncFile();
    } catch (error) {
      await this.#takeBack();
      if (this.isBroken || !isDiskFull(error)) throw error;
    }
    await this.close().catch(() => undefined); // everything is on the disk
  }

  /** Truncates what is not readable, if that is possible, and closes the file. */
  async abandon(): Promise<void> {
    await this.#file.truncate(this.segment.end).catch(() => undefined);
    await this.close().catch(() => undefined);
  }

  async close(): Promise<void> {
    await this.#background;
    this.segment.tail = undefined;
    await this.#file.close();
  }

  /** Writes what is at the beginning of the buffer, and zeros behind it if the next records need some. */
  async #write(bytes: Buffer): Promise<void> {
    const zeros = this.#zerosBehind(bytes.length);
    if (zeros > 0) {
      const end = bytes.length + zeros;
      this.#buffer.fill(0, bytes.length, end);
      try {
        await this.#file.write(this.#buffer.subarray(0, end), this.#offset);
        this.#zerosEnd = this.#offset + end;
        return;
      } catch (error) {
        if (!isDiskFull(error)) throw error;
        this.#isDiskFull = true;
        await this.#takeBack();
        if (this.isBroken) throw error;
      }
    }
    await this.#file.write(bytes, this.#offset);
  }

  #zerosBehind(length: number): number {
    const end = this.#offset + length;
    if (!this.#header.isAlwaysDurable || this.#isDiskFull || end <= this.#zerosEnd) return 0;
    const wanted = Math.ceil((end + Math.min(end, MOST_ZEROS)) / PAGE_BYTES) * PAGE_BYTES;
    return Math.max(Math.min(wanted, this.#maxBytes, this.#offset + this.#buffer.length) - end, 0);
  }

  #publish(): void {
    this.segment.end = this.#offset;
    this.segment.next = this.#sequence;
  }

  async #takeBack(): Promise<void> {
    if (this.isBroken) return; // `abandon` truncates it
    this.#zerosEnd = 0;
    try {
      await this.#file.truncate(this.#offset);
      await this.#file.sync();
    } catch (error) {
      this.#failure = { error };
    }
  }

  async #syncInBackground(): Promise<void> {
    try {
      await this.#syncFile();
    } catch (error) {
      this.#unreported = { error };
    }
    this.#background = undefined;
  }

  /** A sync that failed is never repeated. */
  async #syncFile(): Promise<void> {
    const offset = this.#offset;
    try {
      await this.#file.sync();
      this.#synced = offset;
    } catch (error) {
      this.#failure = { error };
      throw error;
    }
  }

  /** Encodes as many records as fit in the buffer and in the segment, at least one if it belongs in the segment. */
  #encode(payloads: readonly Uint8Array[], first: number): EncodedRecords {
    const { salt } = this.#header;
    let count = 0;
    let at = 0;
    this.segment.tail = undefined; // its bytes are overwritten
    for (let i = first; i < payloads.length; i++) {
      const payload = payloads[i] as Uint8Array;
      const length = RECORD_HEADER_BYTES + payload.length;
      if (!this.fits(payload.length, at) || (count > 0 && at + length > BUFFER_BYTES)) break;
      if (count === 0) this.#buffer = bufferFor(length, this.#buffer);
      const isSynced = count === 0 && this.#synced === this.#offset;
      at = encodeRecord(this.#buffer, at, this.#type, payload, this.#sequence + count, salt, isSynced);
      count++;
    }
    return { count, bytes: this.#buffer.subarray(0, at) };
  }
}
