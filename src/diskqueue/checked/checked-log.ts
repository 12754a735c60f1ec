import { Serial } from '../../core/serial.ts';
import { allOf, setAside, isOutOfRoom, type FileSystem, unlinkIfThere } from '../../log/file-system.ts';
import type { AppendResult, CorruptionEvent, MessageLog, StoredMessage } from '../message-log.ts';
import { AckJournal } from './ack-journal.ts';
import type { AckRanges } from '../ack-ranges.ts';
import { Ledger } from './ledger.ts';
import { locateStart, measureUnknown } from './locate-start.ts';
import { LogReader } from './log-reader.ts';
import {
  listSegments,
  recoverSegments,
  type RecoveredSegments,
  tidySegments,
} from '../../log/recover-segments.ts';
import { RECORD_HEADER_BYTES } from '../../log/segment-format.ts';
import { SegmentWriter } from '../../log/segment-writer.ts';
import { segmentFileName, type Segment } from '../../log/segment.ts';

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
  readonly #ledger: Ledger;
  readonly #reader: LogReader;
  /** Ascending; the writer's is the last. */
  readonly #segments: Segment[];
  #writer: SegmentWriter | undefined;
  #lastNumber: number;
  /** Messages before `next` may be not on the disk. */
  #doubt: { readonly next: number; readonly error: unknown } | undefined;
  /** A write was refused because the disk is full, and none has succeeded since. */
  #lacksRoom = false;
  #isWriting = false;
  /** Saves run one after the other. */
  readonly #saves = new Serial();

  private constructor(options: CheckedLogOptions, journal: AckJournal, found: RecoveredSegments) {
    this.#options = options;
    this.#journal = journal;
    this.#ledger = new Ledger(journal, options.onCorruption);
    this.#segments = [...found.segments];
    this.#reader = new LogReader({
      ...{ files: options.files, segments: this.#segments, journal, ledger: this.#ledger },
      written: () => this.#writer?.segment,
    });
    this.#lastNumber = Math.max(found.lastNumber, journal.openedEnd.segment);
  }

  /** Finds out what is there, cuts off what is torn, and reports what is missing. */
  static async open(options: CheckedLogOptions): Promise<CheckedLog> {
    const { files, folder, name } = options;
    const journal = await AckJournal.open(files, folder, name);
    const expected = journal.wasWhole ? journal.acks.prefix : undefined;
    const found = await recoverSegments(files, folder, name, expected);
    await tidySegments(files, folder, found);
    for (const { path, size, reason } of found.misplaced) {
      options.onCorruption({ file: path, offset: 0, bytes: size, reason });
    }
    const log = new CheckedLog(options, journal, found);
    try {
      await log.#begin(found);
      return log;
    } catch (error) {
      await log.#closeFiles().catch(() => undefined);
      throw error;
    }
  }

  get depth(): number {
    return this.#ledger.depth;
  }

  get bytes(): number {
    return this.#ledger.bytes;
  }

  takeWrittenOff(): number {
    return this.#ledger.takeWrittenOff();
  }

  get hasUnsavedAcks(): boolean {
    return this.#journal.hasUnsaved;
  }

  async append(messages: readonly Uint8Array[]): Promise<AppendResult> {
    const result = await this.#write(messages);
    const mayTryAgain = this.#lacksRoom && result.appended === 0;
    return mayTryAgain && (await this.#makeRoom()) ? this.#write(messages) : result;
  }

  async sync(): Promise<void> {
    const writer = this.#writer;
    try {
      if (writer !== undefined) {
        await this.#counted(writer, () => writer.sync());
        this.#journal.noteDurable(writer.segment.next);
      }
    } finally {
      if (writer?.isBroken === true) await this.#abandon(writer);
    }
    this.#throwDoubt();
  }

  read(): Promise<StoredMessage[]> {
    return this.#reader.read();
  }

  acknowledge(message: StoredMessage): void {
    this.#ledger.acknowledge(message);
  }

  /**
   * The prefix first, then the segments behind it go, then the rest: on a disk that is full the prefix needs no room, and
   * the rest has that of the segments.
   */
  saveAcks(isDurable: boolean): Promise<void> {
    return this.#saves.run(async () => {
      await this.#dropFullWriter();
      await this.#reader.leaveAcknowledged();
      const gone = this.#trimmable(); // now: what is acknowledged from here on may be not in the cursor
      const last = gone.at(-1);
      if (last !== undefined) this.#noteEnded(last);
      await this.#journal.savePrefix();
      if (last !== undefined) {
        await this.#journal.sync();
        await this.#trim(gone);
      }
      await this.#journal.saveRanges(isDurable || last !== undefined);
      if (isDurable) await this.#journal.sync();
    });
  }

  async empty(): Promise<void> {
    const end = Math.max(this.#acks.end, this.#segments.at(-1)?.next ?? 0);
    this.#ledger.empty(end);
    this.#journal.forgetHints();
    await allOf([
      () => this.#reader.close(),
      async () => {
        await this.saveAcks(true);
        await this.#dropWriter(); // its segment need not be sealed: all of it is acknowledged, durably
        if (this.#trimmable().length > 0) await this.saveAcks(true);
      },
    ]);
  }

  async close(): Promise<void> {
    const writer = this.#writer;
    await allOf([
      async () => {
        if (writer !== undefined) await this.#end(writer);
      },
      async () => {
        const mustSave = this.hasUnsavedAcks;
        if (!mustSave && !this.#journal.hasUnsavedEnd) return;
        await this.saveAcks(true).catch((error: unknown) => {
          if (mustSave) throw error;
        });
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

  async #begin({ damages, lastNumber }: RecoveredSegments): Promise<void> {
    const { files, folder, name } = this.#options;
    const journal = this.#journal;
    const end = this.#segments.at(-1)?.next;
    const lastPath = `${folder}/${segmentFileName(name, journal.openedEnd.segment)}`;
    this.#ledger.countMessages(this.#segments, damages, lastPath);
    // Nothing is ever added to a segment of another process.
    if (lastNumber > 0) journal.noteEnd({ segment: lastNumber, isEnded: true, next: end ?? 0 });
    const isLastMissed = lastNumber < journal.openedEnd.segment;
    if (isLastMissed) journal.noteEnd({ ...journal.openedEnd, isEnded: true });
    const { prefix, ranges } = journal.acks;
    await measureUnknown(files, this.#segments, ranges);
    const { position, bytes } = await locateStart(files, this.#segments, prefix, journal.openedHint);
    this.#ledger.countBytes(bytes);
    this.#reader.startAt(position);
    if (position !== undefined) journal.noteHint(position);
    // The next segment begins after what is lost: that it is lost, and how many bytes are not, must be known before.
    if (journal.acks.end > (end ?? Infinity)) await this.saveAcks(true);
    // A full disk does not keep anybody from reading; the next save tries again.
    const mustReserve = this.#segments.length > 0 || isLastMissed;
    if (this.#trimmable().length > 0 || isLastMissed) await this.saveAcks(true).catch(() => undefined);
    else if (mustReserve) await this.#saves.run(() => journal.reserve()).catch(() => undefined);
  }

  async #write(messages: readonly Uint8Array[]): Promise<AppendResult> {
    this.#isWriting = true;
    const result = await this.#tryToWrite(messages).catch((error: unknown) => ({ appended: 0, error }));
    this.#isWriting = false;
    this.#lacksRoom = isOutOfRoom(result.error);
    return result;
  }

  async #tryToWrite(messages: readonly Uint8Array[]): Promise<AppendResult> {
    const writer = await this.#writerFor((messages[0] as Uint8Array).length);
    return this.#counted(writer, () => writer.append(messages));
  }

  /** Does something to the writer that may make messages readable, and counts those. */
  async #counted<R>(writer: SegmentWriter, action: () => Promise<R>): Promise<R> {
    const { segment } = writer;
    const { next, end } = segment;
    try {
      return await action();
    } finally {
      const messages = segment.next - next;
      this.#ledger.appended(messages, segment.end - end - messages * RECORD_HEADER_BYTES);
    }
  }

  async #writerFor(length: number): Promise<SegmentWriter> {
    const writer = this.#writer;
    const isUsable = writer?.isBroken === false && writer.segment.isGone !== true;
    if (isUsable && writer.hasRoomFor(length)) return writer;
    if (writer !== undefined) await this.#end(writer);
    return this.#newWriter();
  }

  async #end(writer: SegmentWriter): Promise<void> {
    try {
      if (!writer.isBroken) {
        await this.#counted(writer, () => writer.seal());
        this.#noteEnded(writer.segment);
      }
      this.#writer = undefined;
    } finally {
      if (writer.isBroken) await this.#abandon(writer);
    }
  }

  async #dropWriter(): Promise<void> {
    const writer = this.#writer;
    this.#writer = undefined;
    await writer?.close().catch(() => undefined);
  }

  /**
   * On a full disk the segment that is being written goes, too, if all of it is acknowledged: there may be no other one,
   * and nothing can be added to it.
   */
  async #dropFullWriter(): Promise<void> {
    const writer = this.#writer;
    if (!this.#lacksRoom || this.#isWriting || writer?.isSettled !== true) return;
    const { base, next } = writer.segment;
    if (base < next && next <= this.#acks.prefix) await this.#dropWriter();
  }

  /** @returns whether there may be more room now. */
  async #makeRoom(): Promise<boolean> {
    const before = this.#segments.length;
    await this.saveAcks(true).catch(() => undefined);
    return this.#segments.length < before;
  }

  #noteEnded({ number, next }: Segment): void {
    this.#journal.noteEnd({ segment: number, isEnded: true, next });
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
    await this.#saves.run(() => this.#journal.reserve()); // or what is put now could not be given back
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
        await this.#noteMade(writer.segment.number);
        return writer;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
        this.#lastNumber++; // one that could not be made, nor removed; a name is never used twice
      }
    }
  }

  /** It is missed from now on, if somebody removes it. That is no reason to refuse a message. */
  async #noteMade(number: number): Promise<void> {
    this.#journal.noteEnd({ segment: number, isEnded: false, next: 0 });
    const save = async (): Promise<void> => {
      await this.#journal.savePrefix();
      await this.#journal.sync();
    };
    await this.#saves.run(save).catch(() => undefined); // the next save says it
  }

  async #abandon(writer: SegmentWriter): Promise<void> {
    if (this.#writer === writer) this.#writer = undefined;
    if (writer.doubt !== undefined) this.#doubt = { next: writer.segment.next, ...writer.doubt };
    await writer.abandon();
  }

  /** Segments that nobody needs: all of it is acknowledged, and it is neither read nor written. */
  #trimmable(): Segment[] {
    const { prefix } = this.#acks;
    const [first] = this.#segments;
    if (first === undefined || first.next > prefix) return [];
    const inUse = [this.#reader.segment?.number, this.#writer?.segment.number, Infinity];
    const firstUsed = Math.min(...inUse.filter((number) => number !== undefined));
    return this.#segments.filter(({ next, number }) => next <= prefix && number < firstUsed);
  }

  /** The cursor is on the disk. */
  async #trim(gone: readonly Segment[]): Promise<void> {
    const { files, folder } = this.#options;
    for (const { path, header } of gone) {
      if (header === undefined) await setAside(files, folder, path);
      else await unlinkIfThere(files, path);
      this.#segments.shift();
    }
    await files.syncFolder(folder);
  }

  async #closeFiles(): Promise<void> {
    const writer = this.#writer;
    this.#writer = undefined;
    const open = [this.#reader, writer, this.#journal].filter((file) => file !== undefined);
    await allOf(open.map((file) => () => file.close()));
  }
}
