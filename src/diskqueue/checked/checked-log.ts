import { allOf } from '../all-of.ts';
import type { FileSystem } from '../file-system.ts';
import type { AppendResult, CorruptionEvent, MessageLog, StoredMessage } from '../message-log.ts';
import { AckJournal } from './ack-journal.ts';
import { UNKNOWN_BYTES, type AckRanges } from './ack-ranges.ts';
import { renameIfThere, unlinkIfThere } from '../missing-files.ts';
import type { LogPosition } from './cursor-file.ts';
import { LeftOut } from './left-out.ts';
import { damagedBytes, firstOf, locateStart, measureUnknown } from './locate-start.ts';
import { Losses, missingBytes } from './losses.ts';
import {
  listSegments,
  recoverSegments,
  type FoundDamage,
  type RecoveredSegments,
} from './recover-segments.ts';
import { RECORD_HEADER_BYTES } from './segment-format.ts';
import { SegmentReader } from './segment-reader.ts';
import type { DamagePiece, LostPiece, MessagePiece } from './segment-scan.ts';
import { SegmentWriter } from './segment-writer.ts';
import { segmentFileName, type Segment } from './segment.ts';
import { tidySegments } from './tidy-segments.ts';

/** What a log is made from. */
export interface CheckedLogOptions {
  readonly files: FileSystem;
  readonly folder: string;
  readonly name: string;
  readonly maxBytesPerFile: number;
  /** Whether a message is readable only when it is on the disk. */
  readonly isAlwaysDurable: boolean;
  readonly wallNow: () => number;
  readonly onCorruption: (event: CorruptionEvent) => void;
}

/**
 * The default format: a log of checked segments, and a cursor.
 *
 *      segments   ┌──── 7 ────┐┌──── 8 ────┐┌──── 9 ──
 *                 │ · · ✓ ✓ ✓ ││ ✓ . ✓ . . ││ . . . .│◄── append
 *                 └───────────┘└─────▲─────┘└─────────
 *                       ▲            └ read              ✓ acknowledged
 *                       └ goes when the cursor that says so is on the disk
 *
 * The log is the truth. The cursor says what may be left out; without it everything comes again. How segments look is in
 * segment-format.ts, how they are found again in recover-segments.ts.
 */
export class CheckedLog implements MessageLog {
  readonly #options: CheckedLogOptions;
  readonly #journal: AckJournal;
  readonly #losses: Losses;
  /** Ascending; the writer's is the last. */
  readonly #segments: Segment[];
  /** Where reading begins. */
  #start: LogPosition | undefined;
  #writer: SegmentWriter | undefined;
  #reader: SegmentReader | undefined;
  #lastNumber: number;
  #depth = 0;
  #bytes = 0;
  #writtenOff = 0;
  /** Messages before `next` may be not on the disk. */
  #doubt: { readonly next: number; readonly error: unknown } | undefined;
  /** Of what was counted when the log was opened. */
  #leftOut = new LeftOut(0, []);

  private constructor(options: CheckedLogOptions, journal: AckJournal, found: RecoveredSegments) {
    this.#options = options;
    this.#journal = journal;
    this.#losses = new Losses(journal, options.onCorruption);
    this.#segments = [...found.segments];
    this.#lastNumber = found.lastNumber;
  }

  /** Finds out what is there, cuts off what is torn, and reports what is missing. */
  static async open(options: CheckedLogOptions): Promise<CheckedLog> {
    const { files, folder, name } = options;
    const journal = await AckJournal.open(files, folder, name);
    const expected = journal.wasWhole ? journal.acks.prefix : undefined;
    const found = await recoverSegments(files, folder, name, expected);
    await tidySegments(files, folder, found);
    const log = new CheckedLog(options, journal, found);
    try {
      await log.#begin(found.damages);
      return log;
    } catch (error) {
      await log.#closeFiles().catch(() => undefined);
      throw error;
    }
  }

  get depth(): number {
    return this.#depth;
  }

  get bytes(): number {
    return this.#bytes;
  }

  takeWrittenOff(): number {
    const bytes = this.#writtenOff;
    this.#writtenOff = 0;
    return bytes;
  }

  get hasUnsavedAcks(): boolean {
    return this.#journal.hasUnsaved;
  }

  async append(messages: readonly Uint8Array[]): Promise<AppendResult> {
    try {
      const writer = await this.#writerFor((messages[0] as Uint8Array).length);
      return await this.#counted(writer, () => writer.append(messages));
    } catch (error) {
      return { appended: 0, error };
    }
  }

  async sync(): Promise<void> {
    const writer = this.#writer;
    try {
      if (writer !== undefined) await this.#counted(writer, () => writer.sync());
    } finally {
      if (writer?.isBroken === true) await this.#abandon(writer);
    }
    this.#throwDoubt();
  }

  async read(): Promise<StoredMessage[]> {
    for (;;) {
      const reader = await this.#readerOf();
      if (reader === undefined) return [];
      const { segment, offset, sequence: next } = reader;
      this.#journal.noteHint({ segment: segment.number, offset, sequence: next });
      const pieces = await reader.next();
      if (pieces.length === 0 && !(await this.#passSegment(reader))) return [];
      const messages: StoredMessage[] = [];
      for (const piece of pieces) {
        if (piece.kind === 'damage') this.#passDamage(reader.segment, piece);
        else if (piece.kind === 'lost') this.#passLost(reader.segment, piece);
        else if (piece.kind === 'message' && !this.#passAcked(piece)) {
          messages.push({ sequence: piece.sequence, data: Buffer.from(piece.payload) });
        }
      }
      if (messages.length > 0) return messages;
    }
  }

  acknowledge({ sequence, data }: StoredMessage): void {
    if (this.#journal.add(sequence, sequence + 1, data.length) === 0) return;
    this.#depth--;
    this.#bytes -= data.length;
  }

  async saveAcks(isDurable: boolean): Promise<void> {
    const gone = this.#trimmable(); // now: what is acknowledged from here on may be not in the cursor
    const mustTrim = gone.length > 0;
    await this.#journal.save(mustTrim);
    if (isDurable || mustTrim) await this.#journal.sync();
    if (mustTrim) await this.#trim(gone);
  }

  async empty(): Promise<void> {
    const end = Math.max(this.#acks.end, this.#segments.at(-1)?.next ?? 0);
    this.#journal.add(this.#acks.prefix, end, UNKNOWN_BYTES);
    this.#journal.forgetHints();
    this.#depth = 0;
    this.#bytes = 0;
    this.#writtenOff = 0;
    this.#leftOut = new LeftOut(end, []);
    this.#start = undefined;
    const reader = this.#reader;
    this.#reader = undefined;
    await allOf([async () => reader?.close(), () => this.saveAcks(true), () => this.#dropWriter()]);
  }

  async close(): Promise<void> {
    const writer = this.#writer;
    await allOf([
      async () => {
        if (writer !== undefined) await this.#end(writer);
      },
      async () => {
        if (this.hasUnsavedAcks) await this.saveAcks(true);
      },
      () => this.#closeFiles(),
    ]);
    this.#throwDoubt();
  }

  async remove(): Promise<void> {
    const { files, folder, name } = this.#options;
    for (const { path } of await listSegments(files, folder, name)) await unlinkIfThere(files, path);
    await this.#journal.remove();
    await files.syncFolder(folder);
  }

  get #acks(): AckRanges {
    return this.#journal.acks;
  }

  async #begin(damages: readonly FoundDamage[]): Promise<void> {
    const end = this.#segments.at(-1)?.next;
    this.#account(damages);
    const { files } = this.#options;
    const journal = this.#journal;
    const { prefix, ranges } = journal.acks;
    await measureUnknown(files, this.#segments, ranges);
    const { position, bytes } = await locateStart(files, this.#segments, prefix, journal.openedHint);
    this.#start = position;
    this.#bytes = bytes - journal.acks.bytesBeyond;
    this.#leftOut = new LeftOut(prefix, ranges);
    if (position !== undefined) journal.noteHint(position);
    // The next segment begins after what is lost: that it is lost, and how many bytes are not, must be known before.
    if (journal.acks.end > (end ?? Infinity)) await journal.save(true);
    // A full disk does not keep anybody from reading; the next save tries again.
    if (this.#trimmable().length > 0) await this.saveAcks(true).catch(() => undefined);
  }

  /** What is missing, and how much is left. */
  #account(damages: readonly FoundDamage[]): void {
    const journal = this.#journal;
    const { acks } = journal;
    const [first] = this.#segments;
    if (!journal.wasWhole && first !== undefined) journal.add(acks.prefix, first.base, UNKNOWN_BYTES);
    for (const { segment, piece } of damages) this.#losses.damage(segment, piece);
    let expected = acks.prefix;
    for (const segment of this.#segments) {
      if (segment.base > expected) this.#losses.before(segment, expected);
      expected = Math.max(expected, segment.next);
    }
    // What was acknowledged and is not there was lost with a machine that it was not promised to survive.
    journal.add(expected, acks.end, UNKNOWN_BYTES);
    const last = this.#segments.at(-1);
    if (last !== undefined) last.next = Math.max(last.next, acks.end); // as the next one will say
    this.#depth = Math.max(expected, acks.end) - acks.prefix - acks.beyond;
  }

  /** Does something to the writer that may make messages readable, and counts those. */
  async #counted<R>(writer: SegmentWriter, action: () => Promise<R>): Promise<R> {
    const { segment } = writer;
    const { next, end } = segment;
    try {
      return await action();
    } finally {
      const messages = segment.next - next;
      this.#depth += messages;
      this.#bytes += segment.end - end - messages * RECORD_HEADER_BYTES;
    }
  }

  async #writerFor(length: number): Promise<SegmentWriter> {
    const writer = this.#writer;
    if (writer?.hasRoomFor(length) === true && !writer.isBroken) return writer;
    if (writer !== undefined) await this.#end(writer);
    return this.#newWriter();
  }

  async #end(writer: SegmentWriter): Promise<void> {
    try {
      if (!writer.isBroken) await this.#counted(writer, () => writer.seal());
      this.#writer = undefined;
    } finally {
      if (writer.isBroken) await this.#abandon(writer);
    }
  }

  /** Its segment need not be sealed if all of it is acknowledged, durably. */
  async #dropWriter(): Promise<void> {
    const writer = this.#writer;
    if (writer === undefined || this.hasUnsavedAcks) return;
    this.#writer = undefined;
    await writer.close().catch(() => undefined);
    const gone = this.#trimmable();
    if (gone.length > 0) await this.#trim(gone);
  }

  /** What could not be brought to the disk is not brought there by asking again. */
  #throwDoubt(): void {
    const doubt = this.#doubt;
    if (doubt === undefined) return;
    if (this.#acks.prefix < doubt.next) throw doubt.error;
    this.#doubt = undefined;
  }

  async #newWriter(): Promise<SegmentWriter> {
    const { files, folder, name, isAlwaysDurable, maxBytesPerFile, wallNow } = this.#options;
    const last = this.#segments.at(-1);
    const next = Math.max(this.#acks.end, last?.next ?? 0);
    const options = { isAlwaysDurable, maxBytes: maxBytesPerFile, wallMs: wallNow() };
    for (;;) {
      const number = this.#lastNumber;
      const previous = { number, next, end: last?.number === number ? last.end : 0 };
      const path = `${folder}/${segmentFileName(name, number + 1)}`;
      try {
        const writer = await SegmentWriter.create(files, folder, path, previous, options);
        this.#lastNumber++;
        this.#segments.push(writer.segment);
        this.#writer = writer;
        return writer;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
        this.#lastNumber++; // one that could not be made, nor removed; a name is never used twice
      }
    }
  }

  async #abandon(writer: SegmentWriter): Promise<void> {
    if (this.#writer === writer) this.#writer = undefined;
    if (writer.doubt !== undefined) this.#doubt = { next: writer.segment.next, ...writer.doubt };
    await writer.abandon();
  }

  /** The segment that is being read, or the first one that is left. */
  async #readerOf(): Promise<SegmentReader | undefined> {
    if (this.#reader !== undefined) return this.#reader;
    const { prefix } = this.#acks;
    const segment = this.#segments.find(({ next, number }) => next > prefix || number === this.#lastNumber);
    if (segment === undefined) return undefined;
    const start = this.#start?.segment === segment.number ? this.#start : firstOf(segment);
    this.#reader = await SegmentReader.open(this.#options.files, segment, start);
    this.#start = undefined;
    return this.#reader;
  }

  /** The segment was read to its end. @returns whether there is another one. */
  async #passSegment(reader: SegmentReader): Promise<boolean> {
    const { segment, sequence } = reader;
    if (reader.offset < segment.end) return true; // it has grown meanwhile
    const next = this.#segments[this.#segments.indexOf(segment) + 1];
    if (next === undefined) return false;
    const following = await SegmentReader.open(this.#options.files, next);
    this.#reader = following;
    if (sequence < segment.next) this.#passEnd(segment, sequence);
    await reader.close();
    return true;
  }

  /** @returns whether an earlier process has acknowledged it. */
  #passAcked({ sequence, payload }: MessagePiece): boolean {
    const isAcked = this.#acks.has(sequence);
    this.#pass(sequence + 1, isAcked ? payload.length : 0);
    return isAcked;
  }

  #passDamage(segment: Segment, piece: DamagePiece): void {
    this.#pass(piece.to ?? segment.next, damagedBytes(piece, segment));
    this.#depth -= this.#losses.damage(segment, piece);
  }

  /** Whoever repaired the segment has told. */
  #passLost(segment: Segment, piece: LostPiece): void {
    const bytes = damagedBytes(piece, segment);
    this.#pass(piece.to, bytes);
    this.#depth -= this.#journal.add(piece.from, piece.to, bytes);
  }

  /** The file of a segment has ended before the segment does. */
  #passEnd(segment: Segment, from: number): void {
    this.#pass(segment.next, missingBytes(segment, from));
    this.#depth -= this.#losses.end(segment, from);
  }

  /** Everything before `to` was read; of the last piece, nobody gets these bytes. */
  #pass(to: number, bytes: number): void {
    const writtenOff = this.#leftOut.pass(to, bytes);
    this.#bytes -= writtenOff;
    this.#writtenOff += writtenOff;
  }

  /** Segments that nobody needs: all of it is acknowledged, and it is neither read nor written. */
  #trimmable(): Segment[] {
    const { prefix } = this.#acks;
    const [first] = this.#segments;
    if (first === undefined || first.next > prefix) return [];
    const inUse = [this.#reader?.segment.number, this.#writer?.segment.number, Infinity];
    const firstUsed = Math.min(...inUse.filter((number) => number !== undefined));
    return this.#segments.filter(({ next, number }) => next <= prefix && number < firstUsed);
  }

  /** The cursor is on the disk. */
  async #trim(gone: readonly Segment[]): Promise<void> {
    const { files, folder } = this.#options;
    for (const { path, header } of gone) {
      if (header === undefined) await renameIfThere(files, path, `${path}.damaged`);
      else await unlinkIfThere(files, path);
      this.#segments.shift();
    }
    await files.syncFolder(folder);
  }

  async #closeFiles(): Promise<void> {
    const [reader, writer] = [this.#reader, this.#writer];
    this.#reader = undefined;
    this.#writer = undefined;
    const open = [reader, writer, this.#journal].filter((file) => file !== undefined);
    await allOf(open.map((file) => () => file.close()));
  }
}
