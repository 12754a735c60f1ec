import { type FileSystem, withFile } from '../../log/file-system.ts';
import type { LogOptions } from '../../log/log.ts';
import type { CorruptionEvent } from '../message-log.ts';
import { examineDataFiles, type ExaminedFile, type ExaminedDataFiles } from './examine-data-files.ts';
import { dataFileName, LENGTH_BYTES, type Metadata, type Position, type QueueFiles } from './format.ts';

export interface DataFile {
  readonly number: number;
  readonly path: string;
  /** Where its readable records end, in bytes. */
  end: number;
  /** Number of readable records that were not delivered yet. */
  unreadRecords: number;
  /** Bytes of their messages. */
  unreadBytes: number;
  /** Whether a part of it cannot be read: then it is set aside instead of deleted. */
  isDamaged: boolean;
}

export interface NsqLogOptions extends Omit<LogOptions, 'isReadOnly' | 'wallNow'> {
  /** Distinguishes a torn record from a damaged one; stored messages are read whatever their length. */
  readonly maxMessageSize: number;
  readonly onCorruption: (event: CorruptionEvent) => void;
}

/**
 * The data files of an open queue, its two positions in them, and its size.
 *
 *      passed          files                     current
 *      ┌──── 7 ────┐   ┌──── 8 ────┐┌──── 9 ────┐┌──── 10 ──
 *      └───────────┘   └──────▲────┘└───────────┘└──────────▲
 *                             read position                 write position
 *
 * The read position is in the first file, or where the next one will begin. A file that has ended and has no record
 * behind the read position is passed: its end is never read.
 */
export class DataFiles {
  /** Number of messages that are not acknowledged, and their bytes. */
  depth = 0;
  bytes = 0;
  /** The file that is appended to: the last one, or none yet. */
  current: DataFile | undefined;
  /** Files with records behind the read position; ascending. */
  readonly #files: DataFile[];
  /** Files that are acknowledged as a whole, and not removed yet; ascending. */
  readonly #passed: Set<DataFile>;
  #offset: number;
  /** Number of the current file, or of the next one to create. */
  #number: number;
  /** Number of records behind the read position, those acknowledged out of order included. */
  #records = 0;

  private constructor({ names, files }: ExaminedDataFiles, metadata: Metadata | undefined) {
    const isPassed = ({ number }: ExaminedFile): boolean => number < (metadata?.read.number ?? 0);
    const unread = files.filter((file) => !isPassed(file));
    const last = unread.at(-1);
    this.#files = unread.map(toDataFile);
    this.#passed = new Set(files.filter(isPassed).map(toDataFile));
    this.#offset = unread[0]?.from ?? 0;
    if (last !== undefined && canAppendTo(last, metadata)) this.current = this.#files.at(-1);
    this.#number = this.current?.number ?? unusedNumber(names, metadata);
    for (const { records, bytes } of unread) this.addReadable(records, bytes);
    this.#advance();
  }

  /** Examines the files, removes torn records, and makes durable what the metadata does not cover yet. */
  static async recover(options: NsqLogOptions, metadata: Metadata | undefined): Promise<DataFiles> {
    const { files, folder, name, maxBytesPerFile, maxMessageSize, onCorruption } = options;
    const longestRecord = Math.max(maxBytesPerFile, maxMessageSize + LENGTH_BYTES);
    const found = await examineDataFiles(files, folder, name, metadata, longestRecord);
    for (const temporary of found.names.temporary) {
      await files.unlink(`${folder}/${temporary}`).catch(() => undefined); // it may stay: no name is used twice
    }
    for (const file of found.files) {
      if (file.size > file.known || file.number > (metadata?.write.number ?? -1)) await settle(files, file);
    }
    for (const damage of found.damages) onCorruption(damage);
    return new DataFiles(found, metadata);
  }

  /** Those that are not acknowledged as a whole, the oldest first. */
  get all(): readonly DataFile[] {
    return this.#files;
  }

  get readPosition(): Position {
    const [first] = this.#files;
    const offset = this.#offset;
    return first === undefined ? { number: this.#number, offset: 0 } : { number: first.number, offset };
  }

  get writePosition(): Position {
    return { number: this.#number, offset: this.current?.end ?? 0 };
  }

  /** Returns the metadata for when writing continues at `write`, and `pending` more records are readable. */
  metadataAt(write: Position, pending: number): Metadata {
    const [first] = this.#files;
    const isPassed = first === undefined || (pending === 0 && this.#offset >= first.end);
    return { depth: this.#records + pending, read: isPassed ? write : this.readPosition, write };
  }

  /** Returns the first file with records at or behind a position, and the offset of the first of them. */
  firstBehind({ number, offset }: Position): { file: DataFile; offset: number } | undefined {
    for (const file of this.#files) {
      const from = file.number === number ? offset : 0;
      if (file.number >= number && from < file.end) return { file, offset: from };
    }
    return undefined;
  }

  /** Returns the next file, which the caller creates. */
  next(folder: string, queue: string): DataFile {
    const path = `${folder}/${dataFileName(queue, this.#number)}`;
    return { number: this.#number, path, end: 0, unreadRecords: 0, unreadBytes: 0, isDamaged: false };
  }

  /** Makes a file that was created the current one. */
  begin(file: DataFile): void {
    this.#files.push(file);
    this.current = file;
  }

  /** Leaves out a number of which there is a file of unknown origin: it is never written over. */
  skipNumber(): void {
    this.#number++;
  }

  /** Ends the current file: nothing more is appended to it. */
  endCurrent(): void {
    this.current = undefined;
    this.#number++;
    this.#advance();
  }

  /** Counts records that have become readable; with negative numbers, records that cannot be read after all. */
  addReadable(records: number, bytes: number): void {
    this.#records += records;
    this.depth += records;
    this.bytes += bytes;
  }

  /** @param records - the number of records that the read position moves over. */
  moveReadPosition({ number, offset }: Position, records: number): void {
    for (let [first] = this.#files; first !== undefined && first.number < number; [first] = this.#files) {
      this.#pass(first);
    }
    this.#offset = offset;
    this.#records -= records;
    this.#advance();
  }

  /** Passes all files; writing continues in a file that is yet to be created. */
  passAll(number: number): void {
    for (const file of this.#files) this.#passed.add(file);
    this.#files.length = 0;
    this.current = undefined;
    this.#number = number;
    this.#offset = 0;
    this.#records = this.depth = this.bytes = 0;
  }

  passedBefore(number: number): DataFile[] {
    return [...this.#passed].filter((file) => file.number < number);
  }

  forget(file: DataFile): void {
    this.#passed.delete(file);
  }

  #advance(): void {
    for (let [first] = this.#files; first !== undefined && first !== this.current; [first] = this.#files) {
      if (this.#offset < first.end) return;
      this.#pass(first);
    }
  }

  #pass(first: DataFile): void {
    this.#passed.add(first);
    this.#files.shift();
    this.#offset = 0;
  }
}

function toDataFile({ number, path, end, records, bytes, state }: ExaminedFile): DataFile {
  return { number, path, end, unreadRecords: records, unreadBytes: bytes, isDamaged: state === 'damaged' };
}

async function settle(files: FileSystem, { path, end, state }: ExaminedFile): Promise<void> {
  await withFile(files, path, 'write', async (handle) => {
    if (state === 'torn') await handle.truncate(end);
    await handle.sync();
  });
}

/** Whether the file is exactly what the metadata describes: a reader that follows the metadata must find its end there. */
function canAppendTo({ number, size, known, state }: ExaminedFile, metadata: Metadata | undefined): boolean {
  return number === metadata?.write.number && size === known && state === 'whole';
}

/** Returns the number of a file that was never written or set aside. */
function unusedNumber({ data, bad }: QueueFiles, metadata: Metadata | undefined): number {
  const unused = Math.max(-1, ...data.slice(-1), ...bad) + 1;
  if (metadata === undefined) return unused;
  const { number, offset } = metadata.write;
  return Math.max(unused, offset > 0 ? number + 1 : number);
}
