import { isOutOfRoom, type File, type FileSystem, isMissing, unlinkIfThere } from '../../log/file-system.ts';
import type { LogPosition } from '../../log/segment.ts';
import type { AckedRange, AckRanges } from '../ack-ranges.ts';
import {
  decodeCursor,
  encodeCursor,
  encodePrefix,
  encodeRange,
  isLater,
  RANGES,
  RECORD_BYTES,
  RESERVE,
  SLOTS,
  type CursorPrefix,
  type CursorState,
  type LogEnd,
} from './cursor-format.ts';

/** Made anew when its ranges have grown by this since it was made, in bytes, and to twice what it was. */
const LONG = 1024 * 1024;

/** The file of acknowledgements of one queue. */
export class CursorFile {
  readonly #files: FileSystem;
  readonly #folder: string;
  readonly #path: string;
  #file: File | undefined;
  /** What was loaded can be written in place. */
  #isReusable = false;
  /** Its size; where the next range goes; and that place when the file was made. */
  #size = 0;
  #offset = RANGES;
  #madeOffset = RANGES;
  /** Behind the last message of the ranges before `#offset`. */
  #rangesEnd = 0;
  /** The slot that is on the disk, and is not written over before the other one is there. */
  #safeSlot: 0 | 1 = 0;
  /** The prefix in the other slot, while it is not on the disk. */
  #unsafePrefix: number | undefined;
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

  /** Whether it can be written in place: it was made, or reused, and no sync of it has failed. */
  get isOpen(): boolean {
    return this.#file !== undefined;
  }

  /** Reads what is acknowledged; nothing is, if there is no cursor or it is none. */
  async load(): Promise<CursorState> {
    const bytes = (await readIfThere(this.#files, this.#path)) ?? Buffer.alloc(0);
    const decoded = decodeCursor(bytes);
    const { state, slots } = decoded;
    this.#isReusable = state.damages.length === 0 && slots.length === 2 && bytes.length >= RANGES + RESERVE;
    this.#size = bytes.length;
    this.#offset = this.#madeOffset = decoded.liveEnd;
    this.#rangesEnd = state.acks.end;
    this.#safeSlot = isLater(slots[1], slots[0]) ? 1 : 0;
    return state;
  }

  /** Goes on with the file that was loaded, if it can be written in place. @returns whether it can. */
  async reuse(): Promise<boolean> {
    if (!this.#isReusable) return false;
    await unlinkIfThere(this.#files, this.#newPath);
    const file = await this.#files.open(this.#path, 'write');
    try {
      await file.sync(); // what a process that was killed has written is about to be relied on
    } catch (error) {
      await file.close().catch(() => undefined);
      throw error;
    }
    this.#file = file;
    this.#isReusable = false;
    return true;
  }

  /**
   * Writes the prefix in place. If it rejects for want of room, where a file system does not write in place, it may be
   * tried again; else the next save makes the file anew.
   */
  async writePrefix(prefix: CursorPrefix): Promise<void> {
    const slot = this.#safeSlot === 0 ? 1 : 0;
    const bytes = Buffer.alloc(RECORD_BYTES);
    encodePrefix(bytes, 0, prefix);
    await this.#write(bytes, SLOTS[slot]);
    this.#unsafePrefix = prefix.prefix;
  }

  /** Adds ranges. If it rejects for want of room, it may be tried again; else the next save makes the file anew. */
  async append(ranges: readonly AckedRange[]): Promise<void> {
    if (ranges.length === 0) return;
    const bytes = Buffer.alloc(RECORD_BYTES * ranges.length);
    ranges.forEach((range, i) => {
      encodeRange(bytes, i * RECORD_BYTES, range);
    });
    await this.#write(bytes, this.#offset);
    this.#offset += bytes.length;
    this.#size = Math.max(this.#size, this.#offset);
    for (const { to } of ranges) this.#rangesEnd = Math.max(this.#rangesEnd, to);
  }

  /** How many ranges can be added in place. */
  get reservedRanges(): number {
    return Math.floor((this.#size - this.#offset) / RECORD_BYTES);
  }

  /** Whether it is time to make it anew. */
  get isLong(): boolean {
    return this.#offset > 2 * this.#madeOffset + LONG;
  }

  /** Makes the file anew, from all that is acknowledged, and durable. The old one holds until the new one does. */
  async rewrite(acks: AckRanges, hint: LogPosition | undefined, end: LogEnd): Promise<void> {
    const { ranges } = acks;
    const bytes = encodeCursor(ranges, { prefix: acks.prefix, hint, end });
    const rangesEnd = acks.end;
    const file = await this.#replace(bytes);
    this.#file = file;
    this.#isReusable = false;
    this.#size = bytes.length;
    this.#offset = this.#madeOffset = RANGES + RECORD_BYTES * ranges.length;
    this.#rangesEnd = rangesEnd;
    this.#safeSlot = 0;
    this.#unsafePrefix = undefined;
    this.#isUnsynced = false;
  }

  /** @throws after a failed sync the file is not used again: the next save makes it anew. */
  async sync(): Promise<void> {
    const file = this.#file;
    if (file === undefined || !this.#isUnsynced) return;
    try {
      await file.sync();
    } catch (error) {
      await this.close().catch(() => undefined);
      throw error;
    }
    this.#isUnsynced = false;
    if (this.#unsafePrefix === undefined) return;
    this.#safeSlot = this.#safeSlot === 0 ? 1 : 0;
    if (this.#unsafePrefix >= this.#rangesEnd) this.#offset = RANGES;
    this.#unsafePrefix = undefined;
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  async remove(): Promise<void> {
    await unlinkIfThere(this.#files, this.#path);
    await unlinkIfThere(this.#files, this.#newPath);
  }

  get #newPath(): string {
    return `${this.#path}.new`;
  }

  async #write(bytes: Buffer, at: number): Promise<void> {
    const file = this.#file as File;
    this.#isUnsynced = true;
    try {
      await file.write(bytes, at);
    } catch (error) {
      if (!isOutOfRoom(error)) await this.close().catch(() => undefined);
      else if (at + bytes.length > this.#size) await file.truncate(this.#size).catch(() => undefined);
      throw error;
    }
  }

  /** What could not be finished would take room on a disk that has none. */
  async #replace(bytes: Buffer): Promise<File> {
    await unlinkIfThere(this.#files, this.#newPath);
    const file = await this.#files.create(this.#newPath);
    try {
      await file.write(bytes, 0);
      await file.sync();
      await this.#files.rename(this.#newPath, this.#path);
      await this.close().catch(() => undefined); // from here on the old file has no name
      await this.#files.syncFolder(this.#folder);
      return file;
    } catch (error) {
      await file.close().catch(() => undefined);
      await this.#files.unlink(this.#newPath).catch(() => undefined);
      throw error;
    }
  }
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
