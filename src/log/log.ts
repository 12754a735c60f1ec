import {
  allOf,
  codeOf,
  openUnlessRemoved,
  setAside,
  unlinkIfThere,
  type File,
  type FileSystem,
} from './file-system.ts';
import { recoverSegments, tidySegments, type RecoveredSegments } from './recover-segments.ts';
import {
  crc32,
  DATA,
  RECORD_HEADER_BYTES,
  FIRST_SEQUENCE,
  firstOf,
  payloadBytes,
  segmentFileName,
  type AppendResult,
  type LogPosition,
  type Segment,
} from './segment.ts';
import { SegmentReader, TailFile } from './segment-reader.ts';
import { SegmentWriter } from './segment-writer.ts';

export interface LogOptions {
  readonly files: FileSystem;
  readonly folder: string;
  /** Name of the log: the prefix of its files. */
  readonly name: string;
  /** Size of a segment, in bytes. A larger record gets a segment of its own. */
  readonly maxBytesPerFile: number;
  /** Whether a record is readable only when it is on the disk. */
  readonly isAlwaysDurable: boolean;
  /** Whether nothing changes, and what a crash has left stays as it is. No process may write the log meanwhile. @default false */
  readonly isReadOnly?: boolean;
  /** Type of its records: `DATA`, or from `FIRST_OWN_TYPE` to 255. A log with another type has another owner. @default DATA */
  readonly recordType?: number;
  readonly wallNow: () => number;
}

/** A part of the payload of a record. */
export interface PayloadPart {
  readonly position: LogPosition;
  /** Where in the payload the part begins, in bytes. */
  readonly start: number;
  readonly length: number;
  readonly crc: number;
}

/** Files that stay open between two calls of `read`: a log may have more than a process may open. */
const MOST_OPENED = 64;

interface OpenedFile {
  /** Undefined if another program has removed it. */
  readonly file: Promise<File | undefined>;
  readers: number;
}

/** What the owner of a log has read about it in another file. */
export interface KnownLog {
  /** Sequence of the first record that is still needed: how many records a damaged segment has cost follows from it. */
  readonly firstNeeded?: number | undefined;
  /** Number of the last segment: a number is never used twice, even if the file was removed. */
  readonly lastNumber?: number;
}

/** What an append has written, and where: the records of one append are behind one another in one segment. */
interface LogAppendResult extends AppendResult {
  /** Position of the first record; that of the next one is `positionAfter` it. Undefined if there was no segment. */
  readonly position?: LogPosition;
}

/**
 * A log: records with a sequence and a payload, in files that are called segments.
 *
 *      ┌──── 7 ────┐┌──── 8 ────┐┌──── 9 ──
 *      │ r r r r r ││ r r r r r ││ r r r │ ◄── append
 *      └───────────┘└───────────┘└───────
 *        ▲ remove: whole segments            read: segment by segment, or one record by its position
 *
 *      open      finds the segments, seals the last one, and returns what is damaged
 *      append    writes to the host; sync makes it durable. CommitLoop turns the two into group commit
 *      remove    is the only way in which a log gets smaller. To compact it, append the records of its first segment that
 *                are still needed, sync, and remove the segment
 *
 * A log does not interpret its records: its owner decides which of them are still needed. Its format is in
 * segment.ts, how it is recovered in recover-segments.ts. Its methods are not to be called at the same time, except
 * for `read` and readers, which may run at any time, and `remove`, which may run while records are appended.
 */
export class Log {
  readonly #options: LogOptions;
  /** Ascending; the segment of the writer is the last one. */
  readonly #segments: Segment[];
  #writer: SegmentWriter | undefined;
  #lastNumber: number;
  /** Of segments that are not written any more: see `next` and `appendedBytes`. */
  #next: number;
  #endedBytes = 0;
  /** Readable records before `next` may be missing on the disk, for good. */
  #possibleLoss: { readonly next: number; readonly error: unknown } | undefined;
  /** Files that `read` has opened, by the number of the segment; the one that was read last comes last. */
  readonly #opened = new Map<number, OpenedFile>();
  /** Numbers of the segments that are being removed. */
  readonly #leaving = new Set<number>();

  private constructor(options: LogOptions, found: RecoveredSegments, lastNumber: number) {
    this.#options = options;
    this.#segments = [...found.segments];
    this.#lastNumber = lastNumber;
    this.#next = this.#segments.at(-1)?.next ?? FIRST_SEQUENCE;
  }

  /**
   * Recovers what a crash has left. Nothing is appended to a segment of an earlier process.
   *
   * @throws ForeignLog - the files are those of another owner. They stay as they are.
   */
  static async open(
    options: LogOptions,
    known: KnownLog = {},
  ): Promise<{ readonly log: Log; readonly found: RecoveredSegments }> {
    const { files, folder, name, isReadOnly, recordType = DATA } = options;
    const found = await recoverSegments(files, folder, name, recordType, known.firstNeeded);
    if (isReadOnly !== true) await tidySegments(files, folder, found);
    return { log: new Log(options, found, Math.max(found.lastNumber, known.lastNumber ?? 0)), found };
  }

  /** Ascending. */
  get segments(): readonly Segment[] {
    return this.#segments;
  }

  get written(): Segment | undefined {
    return this.#writer?.segment;
  }

  /** The sequence after that of the last readable record. */
  get next(): number {
    return this.#writer?.segment.next ?? this.#next;
  }

  /** Bytes of the payloads that were appended since the log was opened, and are readable. */
  get appendedBytes(): number {
    return this.#endedBytes + (this.#writer === undefined ? 0 : bytesOf(this.#writer.segment));
  }

  /** Whether every record that was appended is readable. */
  get isSettled(): boolean {
    return this.#writer?.isSettled ?? true;
  }

  /** The next record gets this sequence, or a later one. */
  skipTo(sequence: number): void {
    const last = this.#segments.at(-1);
    if (last !== undefined) last.next = Math.max(last.next, sequence);
    this.#next = Math.max(this.#next, sequence);
  }

  /** Whether the next append goes to the segment that is being written, if its first payload has that length. */
  fits(length: number): boolean {
    const writer = this.#writer;
    return writer?.isBroken === false && writer.segment.isRemoved !== true && writer.fits(length);
  }

  /**
   * Writes records behind the last one, in order, to one segment. They are with the host then, not yet on the disk.
   *
   * @returns how many were written: at least one, unless there is an `error`. The others have left nothing behind. If they
   * are to be durable, `sync` before the next append of a record that does not `fit`.
   */
  async append(payloads: readonly Uint8Array[]): Promise<LogAppendResult> {
    try {
      const unreported = this.#writer?.takeUnreported();
      if (unreported !== undefined) return { appended: 0, error: unreported.error };
      if (!this.fits((payloads[0] as Uint8Array).length)) {
        await this.endSegment();
        await this.beginSegment();
      }
      const writer = this.#writer as SegmentWriter;
      const { position } = writer;
      const { appended, error } = await writer.append(payloads);
      return { appended, error, position };
    } catch (error) {
      return { appended: 0, error };
    }
  }

  /**
   * Makes what was appended durable, and then readable if it was not yet. If it rejects, the records since the last sync
   * will never be readable if they were not yet. Records that were readable and could not be made durable stay readable,
   * and every `sync` and `close` rejects until they are not needed any more: repeating a sync does not bring them back.
   *
   * @param firstNeeded - sequence of the first record that is still needed.
   */
  async sync(firstNeeded = 0): Promise<void> {
    const writer = this.#writer;
    try {
      await writer?.sync();
    } finally {
      if (writer?.isBroken === true) await this.#abandon(writer);
    }
    this.#throwPossibleLoss(firstNeeded);
  }

  /** Begins a segment after the last one: its name and its header are durable when it resolves. */
  async beginSegment(): Promise<Segment> {
    const {
      files,
      folder,
      name,
      recordType = DATA,
      maxBytesPerFile,
      isAlwaysDurable,
      wallNow,
    } = this.#options;
    const last = this.#segments.at(-1);
    const createdWallMs = Math.max(0, Math.floor(wallNow()));
    for (;;) {
      const number = this.#lastNumber + 1;
      const previousEnd = last?.number === this.#lastNumber ? last.end : 0;
      const header = { number, baseSequence: this.next, previousEnd, isAlwaysDurable, createdWallMs };
      const path = `${folder}/${segmentFileName(name, number)}`;
      try {
        this.#writer = await SegmentWriter.create(files, folder, path, header, recordType, maxBytesPerFile);
        this.#lastNumber = number;
        this.#segments.push(this.#writer.segment);
        return this.#writer.segment;
      } catch (error) {
        if (codeOf(error) !== 'EEXIST') throw error;
        this.#lastNumber = number; // a file that could be neither made nor removed
      }
    }
  }

  /** Seals the segment that is being written. @returns it, unless there is none or its file had failed before. */
  async endSegment(): Promise<Segment | undefined> {
    const writer = this.#writer;
    if (writer === undefined) return undefined;
    try {
      if (writer.isBroken) return undefined;
      await writer.seal();
      this.#release(writer);
      return writer.segment;
    } finally {
      if (writer.isBroken) await this.#abandon(writer);
    }
  }

  /** Closes the segment that is being written as it is, so that it can be removed. */
  async leaveSegment(): Promise<void> {
    const writer = this.#writer;
    if (writer === undefined) return;
    this.#release(writer);
    await writer.close().catch(() => undefined);
  }

  /** Opens a reader of a segment. @param start - position of a record of it; by default, of the first one. */
  openReader(segment: Segment, start?: LogPosition): Promise<SegmentReader> {
    return SegmentReader.open(this.#options.files, segment, start);
  }

  /**
   * Reads a part of a payload back, however large its record is. The file of the segment stays open for the next time.
   *
   * @returns undefined if the part is damaged, or its segment was removed, also by another program.
   */
  async read(part: PayloadPart): Promise<Buffer | undefined> {
    const segment = this.#segments.find(({ number }) => number === part.position.segment);
    if (segment === undefined || this.#leaving.has(segment.number)) return undefined;
    try {
      return await this.#readFrom(segment, part);
    } catch (error) {
      if (this.#leaving.has(segment.number) || !this.#segments.includes(segment)) return undefined;
      throw error;
    }
  }

  async #readFrom(
    segment: Segment,
    { position, start, length, crc }: PayloadPart,
  ): Promise<Buffer | undefined> {
    const opened = this.#openedFile(segment);
    opened.readers++;
    try {
      const file = await opened.file;
      if (file === undefined) return undefined;
      const bytes = Buffer.allocUnsafeSlow(length);
      const offset = position.offset + RECORD_HEADER_BYTES + start;
      const filled = await new TailFile(segment, file).read(bytes, offset);
      return filled === length && crc32(bytes) === crc ? bytes : undefined;
    } finally {
      opened.readers--;
      await this.#closeUnread();
    }
  }

  /** Removes segments that are not needed any more, the first ones or others; a damaged one is kept under another name. */
  async remove(segments: readonly Segment[]): Promise<void> {
    const { files, folder } = this.#options;
    for (const segment of segments) {
      this.#leaving.add(segment.number);
      try {
        await this.#closeFileOf(segment.number);
        if (segment.header === undefined) await setAside(files, folder, segment.path);
        else await unlinkIfThere(files, segment.path);
        this.#segments.splice(this.#segments.indexOf(segment), 1);
      } finally {
        this.#leaving.delete(segment.number);
      }
    }
    await files.syncFolder(folder);
  }

  /** Seals the last segment, and closes all files. @param firstNeeded - as in `sync`. */
  async close(firstNeeded = 0): Promise<void> {
    await allOf([
      () => this.endSegment(),
      () => this.leaveSegment(),
      ...[...this.#opened.keys()].map((number) => () => this.#closeFileOf(number)),
    ]);
    this.#throwPossibleLoss(firstNeeded);
  }

  #release({ segment }: SegmentWriter): void {
    this.#writer = undefined;
    this.#endedBytes += bytesOf(segment);
    this.#next = segment.next;
  }

  async #abandon(writer: SegmentWriter): Promise<void> {
    if (this.#writer === writer) this.#release(writer);
    if (writer.possibleLoss !== undefined)
      this.#possibleLoss = { next: writer.segment.next, ...writer.possibleLoss };
    await writer.abandon();
  }

  #throwPossibleLoss(firstNeeded: number): void {
    if (this.#possibleLoss === undefined) return;
    if (firstNeeded < this.#possibleLoss.next) throw this.#possibleLoss.error;
    this.#possibleLoss = undefined;
  }

  #openedFile({ number, path }: Segment): OpenedFile {
    const opened = this.#opened.get(number) ?? {
      file: openUnlessRemoved(this.#options.files, path),
      readers: 0,
    };
    this.#opened.delete(number);
    this.#opened.set(number, opened);
    opened.file.catch(() => this.#opened.get(number) === opened && this.#opened.delete(number));
    return opened;
  }

  /** Closes files that are not being read, those first that were read longest ago, until few enough are open. */
  async #closeUnread(): Promise<void> {
    for (const [number, { readers }] of this.#opened) {
      if (this.#opened.size <= MOST_OPENED) return;
      if (readers === 0) await this.#closeFileOf(number).catch(Boolean);
    }
  }

  async #closeFileOf(number: number): Promise<void> {
    const opened = this.#opened.get(number);
    this.#opened.delete(number);
    await opened?.file.then((file) => file?.close());
  }
}

function bytesOf(segment: Segment): number {
  return payloadBytes(segment, firstOf(segment));
}
