import type { File, FileSystem } from '../file-system.ts';
import { isMissing, unlinkIfThere } from '../missing-files.ts';
import { AckRanges, UNKNOWN_BYTES, type AckedRange } from '../ack-ranges.ts';
import { shortCrc32 } from './crc32.ts';
import { zeroSectorIn } from './zero-sector.ts';
import { readUInt64, writeUInt64 } from './segment-format.ts';

/*
 * The bytes of the cursor: which messages are acknowledged. It only grows, and is made anew when it has grown enough.
 *
 *      0   magic 8
 *      8   records of 48 bytes, of two kinds:
 *            CRC of the rest 4 · zero 4 · from 8 · to 8 · bytes 8 · zero 16
 *            CRC of the rest 4 · zero 4 · zero 8 · to 8 · segment 8 · offset 8 · sequence 8
 *
 * A record says that the messages `from` up to `to` are acknowledged, and of how many bytes their payloads are; 2^64 - 1
 * if that is not known. One whose `from` is 0 is the prefix: everything below `to` is. It says instead where a message is
 * that is not after the next one (`segment`, `offset`, `sequence`; zeros if that is not known): a hint, from where it is
 * not far to the first message that is not acknowledged.
 * A record that is not whole is passed over: the others are true all the same, for what is acknowledged stays so.
 */

const MAGIC = Buffer.from([0x89, 0x45, 0x53, 0x43, 0x43, 0x0d, 0x0a, 0x1a]);
const RECORD_BYTES = 48;
/** Of the first message of a queue. */
export const FIRST_SEQUENCE = 1;
/** Made anew when it has grown by this since it was made, in bytes, and to twice what it was: 20 000 records. */
const LONG = 1024 * 1024;

/** Where a message begins. */
export interface LogPosition {
  readonly segment: number;
  readonly offset: number;
  readonly sequence: number;
}

/** What the cursor says. */
export interface CursorState {
  readonly acks: AckRanges;
  readonly hint: LogPosition | undefined;
  /** Whether there was a cursor. */
  readonly isThere: boolean;
  /** Where something is in it that is no record: a crash leaves that at its end. */
  readonly damages: readonly CursorDamage[];
}

/** Bytes of a cursor that are no record. */
export interface CursorDamage {
  readonly offset: number;
  readonly bytes: number;
  /** As a write leaves it that was not finished: it ends early, or there is a sector of zeros in it. */
  readonly isTorn: boolean;
}

/** The file of acknowledgements of one queue. */
export class CursorFile {
  readonly #files: FileSystem;
  readonly #folder: string;
  readonly #path: string;
  #file: File | undefined;
  #length = 0;
  /** Its length when it was made. */
  #madeLength = 0;
  /** Something was written that is not yet on the disk. */
  #isUnsynced = false;

  constructor(files: FileSystem, folder: string, path: string) {
    this.#files = files;
    this.#folder = folder;
    this.#path = path;
  }

  /** Whether something was written that is not yet on the disk. */
  get isUnsynced(): boolean {
    return this.#isUnsynced;
  }

  /** Reads what is acknowledged; nothing is, if there is no cursor or it is none. */
  async load(): Promise<CursorState> {
    return decodeCursor((await readIfThere(this.#files, this.#path)) ?? Buffer.alloc(0));
  }

  /** Adds ranges, and the prefix. If it rejects, the next save makes the file anew. */
  async append(ranges: readonly AckedRange[], prefix: number, hint: LogPosition | undefined): Promise<void> {
    const bytes = encodeRanges(ranges, prefix, hint);
    const file = this.#file as File;
    this.#isUnsynced = true;
    try {
      await file.write(bytes, this.#length);
      this.#length += bytes.length;
    } catch (error) {
      await this.close().catch(() => undefined);
      throw error;
    }
  }

  /** Whether it is time to make it anew: it is long, or cannot be appended to. */
  get isLong(): boolean {
    return this.#file === undefined || this.#length > 2 * this.#madeLength + LONG;
  }

  /** Makes the file anew, from all that is acknowledged, and durable. The old one holds until the new one does. */
  async rewrite(acks: AckRanges, hint: LogPosition | undefined): Promise<void> {
    const temporary = `${this.#path}.new`;
    const bytes = Buffer.concat([MAGIC, encodeRanges(acks.ranges, acks.prefix, hint)]);
    await unlinkIfThere(this.#files, temporary);
    const file = await this.#files.create(temporary);
    try {
      await file.write(bytes, 0);
      await file.sync();
      await this.#files.rename(temporary, this.#path);
      await this.close().catch(() => undefined); // from here on the old file has no name
      await this.#files.syncFolder(this.#folder);
    } catch (error) {
      await file.close().catch(() => undefined);
      throw error;
    }
    this.#file = file;
    this.#length = bytes.length;
    this.#madeLength = bytes.length;
    this.#isUnsynced = false;
  }

  /** @throws after a failed sync the file is not used again: the next save makes it anew. */
  async sync(): Promise<void> {
    const file = this.#file;
    if (file === undefined || !this.#isUnsynced) return;
    try {
      await file.sync();
      this.#isUnsynced = false;
    } catch (error) {
      await this.close().catch(() => undefined);
      throw error;
    }
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  async remove(): Promise<void> {
    await unlinkIfThere(this.#files, this.#path);
    await unlinkIfThere(this.#files, `${this.#path}.new`);
  }
}

function encodeRanges(ranges: readonly AckedRange[], prefix: number, hint: LogPosition | undefined): Buffer {
  const bytes = Buffer.alloc(RECORD_BYTES * (ranges.length + 1));
  ranges.forEach((range, i) => {
    encodeRange(bytes, i * RECORD_BYTES, range);
  });
  encodePrefix(bytes, ranges.length * RECORD_BYTES, prefix, hint);
  return bytes;
}

function encodeRange(record: Buffer, at: number, { from, to, bytes }: AckedRange): void {
  writeUInt64(record, from, at + 8);
  writeUInt64(record, to, at + 16);
  if (bytes >= 0) writeUInt64(record, bytes, at + 24);
  else record.fill(0xff, at + 24, at + 32);
  encodeCrc(record, at);
}

function encodePrefix(record: Buffer, at: number, prefix: number, hint: LogPosition | undefined): void {
  writeUInt64(record, prefix, at + 16);
  writeUInt64(record, hint?.segment ?? 0, at + 24);
  writeUInt64(record, hint?.offset ?? 0, at + 32);
  writeUInt64(record, hint?.sequence ?? 0, at + 40);
  encodeCrc(record, at);
}

function encodeCrc(record: Buffer, at: number): void {
  record.writeUInt32LE(shortCrc32(record, at + 4, at + RECORD_BYTES, 0), at);
}

function decodeCursor(bytes: Buffer): CursorState {
  const acks = new AckRanges(FIRST_SEQUENCE);
  const damages: CursorDamage[] = [];
  let hint: LogPosition | undefined;
  let isThere = false;
  const note = (offset: number, part: Buffer): void => {
    const isTorn = part.length < RECORD_BYTES || zeroSectorIn(part, offset) !== undefined;
    damages.push({ offset, bytes: part.length, isTorn });
  };
  if (bytes.length > 0 && !MAGIC.equals(bytes.subarray(0, MAGIC.length))) {
    damages.push({ offset: 0, bytes: MAGIC.length, isTorn: false });
  }
  for (let at = MAGIC.length; at < bytes.length; at += RECORD_BYTES) {
    const record = bytes.subarray(at, at + RECORD_BYTES);
    if (!isWhole(record)) {
      note(at, record);
      continue;
    }
    isThere = true;
    const from = readUInt64(record, 8);
    const to = readUInt64(record, 16);
    acks.add(from, to, from === 0 ? 0 : decodeBytes(record));
    if (from === 0) hint = decodeHint(record);
  }
  return { acks, hint, isThere, damages };
}

function isWhole(record: Buffer): boolean {
  return record.length === RECORD_BYTES && record.readUInt32LE(0) === shortCrc32(record, 4, RECORD_BYTES, 0);
}

function decodeBytes(record: Buffer): number {
  const bytes = readUInt64(record, 24);
  return bytes <= Number.MAX_SAFE_INTEGER ? bytes : UNKNOWN_BYTES;
}

function decodeHint(record: Buffer): LogPosition | undefined {
  const sequence = readUInt64(record, 40);
  if (sequence === 0) return undefined;
  return { segment: readUInt64(record, 24), offset: readUInt64(record, 32), sequence };
}

async function readIfThere(files: FileSystem, path: string): Promise<Buffer | undefined> {
  try {
    const file = await files.open(path, 'read');
    try {
      const bytes = Buffer.alloc(await files.size(path));
      return bytes.subarray(0, await file.read(bytes, 0));
    } finally {
      await file.close();
    }
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
