import {
  createFile,
  isDiskFull,
  ifThere,
  unlinkIfThere,
  withFile,
  type File,
  type FileSystem,
} from '../../log/file-system.ts';
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

/** The file is rewritten when its ranges have grown by this many bytes, and to twice their size when it was made. */
const LONG = 1024 * 1024;

/** Names of the file of a queue, and of the one that is to replace it. */
export function cursorFileNames(queue: string): readonly [string, string] {
  const name = `${queue}.cursor`;
  return [name, `${name}.new`];
}

export class CursorFile {
  readonly path: string;
  /** Whether a write is not yet on the disk. */
  isUnsynced = false;
  readonly #files: FileSystem;
  readonly #folder: string;
  readonly #newPath: string;
  #file: File | undefined;
  /** Whether the loaded file can be written in place. */
  #isReusable = false;
  /** Size of the file; offset of the next range; and that offset when the file was made. */
  #size = 0;
  #offset = RANGES;
  #madeOffset = RANGES;
  /** The sequence after the last message of the ranges before `#offset`. */
  #rangesEnd = 0;
  /** The slot that is on the disk. It is not overwritten before the other one is on the disk. */
  #safeSlot: 0 | 1 = 0;
  /** Prefix in the other slot, while that is not on the disk. */
  #unsafePrefix: number | undefined;

  constructor(files: FileSystem, folder: string, queue: string) {
    this.#files = files;
    this.#folder = folder;
    const [name, newName] = cursorFileNames(queue);
    this.path = `${folder}/${name}`;
    this.#newPath = `${folder}/${newName}`;
  }

  /** Whether it can be written in place: it was made or reused, and no sync of it has failed. */
  get isOpen(): boolean {
    return this.#file !== undefined;
  }

  /** Reads the file. Without a valid cursor nothing is acknowledged. */
  async load(): Promise<CursorState> {
    const bytes = await readIfThere(this.#files, this.path);
    const decoded = decodeCursor(bytes);
    const { state, slots } = decoded;
    this.#isReusable = state.damages.length === 0 && slots.length === 2 && bytes.length >= RANGES + RESERVE;
    this.#size = bytes.length;
    this.#offset = this.#madeOffset = decoded.liveEnd;
    this.#rangesEnd = state.acks.end;
    this.#safeSlot = isLater(slots[1], slots[0]) ? 1 : 0;
    return state;
  }

  /** Uses the loaded file, if it can be written in place. @returns whether it can. */
  async reuse(): Promise<boolean> {
    if (!this.#isReusable) return false;
    await unlinkIfThere(this.#files, this.#newPath);
    const file = await this.#files.open(this.path, 'write');
    try {
      await file.sync(); // the writes of a process that was killed are relied on from now on
    } catch (error) {
      await file.close().catch(() => undefined);
      throw error;
    }
    this.#file = file;
    this.#isReusable = false;
    return true;
  }

  /**
   * Writes the prefix in place. If it rejects because the disk is full, which happens on file systems that copy on write,
   * it can be repeated; after any other error the next save rewrites the file.
   */
  async writePrefix(prefix: CursorPrefix): Promise<void> {
    const slot = this.#safeSlot === 0 ? 1 : 0;
    const bytes = Buffer.alloc(RECORD_BYTES);
    encodePrefix(bytes, 0, prefix);
    await this.#write(bytes, SLOTS[slot]);
    this.#unsafePrefix = prefix.prefix;
  }

  /** Adds ranges. If it rejects because the disk is full, it can be repeated; else the next save rewrites the file. */
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

  /** Number of ranges that can be added in place. */
  get reservedRanges(): number {
    return Math.floor((this.#size - this.#offset) / RECORD_BYTES);
  }

  get isLong(): boolean {
    return this.#offset > 2 * this.#madeOffset + LONG;
  }

  /** Rewrites the file durably, with all acknowledgements. The old file is valid until the new one is. */
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
    this.isUnsynced = false;
  }

  /** After a failed sync the file is not used again: the next save rewrites it. */
  async sync(): Promise<void> {
    const file = this.#file;
    if (file === undefined || !this.isUnsynced) return;
    try {
      await file.sync();
    } catch (error) {
      await this.close().catch(() => undefined);
      throw error;
    }
    this.isUnsynced = false;
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

  async #write(bytes: Buffer, at: number): Promise<void> {
    const file = this.#file as File;
    this.isUnsynced = true;
    try {
      await file.write(bytes, at);
    } catch (error) {
      if (!isDiskFull(error)) await this.close().catch(() => undefined);
      else if (at + bytes.length > this.#size) await file.truncate(this.#size).catch(() => undefined);
      throw error;
    }
  }

  /** An unfinished file is removed: the disk may be full. */
  async #replace(bytes: Buffer): Promise<File> {
    await unlinkIfThere(this.#files, this.#newPath);
    return createFile(this.#files, this.#newPath, async (file) => {
      await file.write(bytes, 0);
      await file.sync();
      await this.#files.rename(this.#newPath, this.path);
      await this.close().catch(() => undefined); // the old file has no name any more
      await this.#files.syncFolder(this.#folder);
    });
  }
}

function readIfThere(files: FileSystem, path: string): Promise<Buffer> {
  const reading = withFile(files, path, 'read', async (file) => {
    const bytes = Buffer.alloc(await files.size(path));
    return bytes.subarray(0, await file.read(bytes, 0));
  });
  return ifThere(reading, Buffer.alloc(0));
}
