import { type FileSystem, isMissing } from '../../log/file-system.ts';
import type { StoredMessage } from '../message-log.ts';
import type { AckJournal } from './ack-journal.ts';
import type { LogPosition } from '../../log/segment.ts';
import type { Ledger } from './ledger.ts';
import { firstOf } from './locate-start.ts';
import { SegmentReader } from '../../log/segment-reader.ts';
import type { Segment } from '../../log/segment.ts';

/** What a log is read with. */
export interface LogReaderOptions {
  readonly files: FileSystem;
  /** Ascending. They come and go. */
  readonly segments: readonly Segment[];
  readonly journal: AckJournal;
  readonly ledger: Ledger;
  /** The segment that is being written. */
  readonly written: () => Segment | undefined;
}

/** Goes through the messages of a log, segment by segment, and over those that are acknowledged. */
export class LogReader {
  readonly #options: LogReaderOptions;
  /** Where reading begins. */
  #start: LogPosition | undefined;
  #reader: SegmentReader | undefined;
  #isReading = false;

  constructor(options: LogReaderOptions) {
    this.#options = options;
  }

  /** The segment that is being read. */
  get segment(): Segment | undefined {
    return this.#reader?.segment;
  }

  /** Reading begins there, and nothing behind it was read. */
  startAt(position: LogPosition | undefined): void {
    this.#start = position;
  }

  /** As `MessageLog` has it. */
  async read(): Promise<StoredMessage[]> {
    this.#isReading = true;
    try {
      return await this.#read();
    } finally {
      this.#isReading = false;
    }
  }

  /** Goes on from a segment of which all is acknowledged meanwhile: nobody needs it, nor those behind it that are so too. */
  async leaveAcknowledged(): Promise<void> {
    if (!this.#isReading) await this.#leaveAcknowledged();
  }

  async close(): Promise<void> {
    const reader = this.#reader;
    this.#reader = undefined;
    this.#start = undefined;
    await reader?.close();
  }

  async #read(): Promise<StoredMessage[]> {
    const { journal, ledger } = this.#options;
    for (;;) {
      const reader = await this.#readerOf();
      if (reader === undefined) return [];
      const { segment } = reader;
      journal.noteHint(reader.position);
      const pieces = await reader.next();
      if (pieces.length === 0 && !(await this.#passSegment(reader))) return [];
      const messages: StoredMessage[] = [];
      for (const piece of pieces) {
        if (!ledger.pass(segment, piece) || piece.kind !== 'message') continue;
        messages.push({ sequence: piece.sequence, data: Buffer.from(piece.payload) });
      }
      if (messages.length > 0) return messages;
    }
  }

  /** The segment that is being read, or the first one that is left. */
  async #readerOf(): Promise<SegmentReader | undefined> {
    await this.#leaveAcknowledged();
    if (this.#reader !== undefined) return this.#reader;
    const segment = this.#options.segments.find((each) => this.#isNeeded(each));
    if (segment === undefined) return undefined;
    const start = this.#start?.segment === segment.number ? this.#start : firstOf(segment);
    this.#reader = await this.#open(segment, start);
    this.#start = undefined;
    return this.#reader;
  }

  async #leaveAcknowledged(): Promise<void> {
    const reader = this.#reader;
    if (reader === undefined || this.#isNeeded(reader.segment)) return;
    const { segments, ledger } = this.#options;
    this.#reader = undefined;
    for (const segment of segments.slice(segments.indexOf(reader.segment))) {
      if (this.#isNeeded(segment)) break;
      ledger.passUnread(segment, segment === reader.segment ? reader.position : firstOf(segment));
    }
    await reader.close();
  }

  #isNeeded(segment: Segment): boolean {
    const { journal, written } = this.#options;
    return segment.next > journal.acks.prefix || segment === written();
  }

  /** The segment was read to its end. @returns whether there is another one. */
  async #passSegment(reader: SegmentReader): Promise<boolean> {
    const { segment, position } = reader;
    const { segments, ledger } = this.#options;
    if (position.offset < segment.end) return true; // it has grown meanwhile
    const next = segments[segments.indexOf(segment) + 1];
    if (next === undefined) return false;
    const following = await this.#open(next, firstOf(next));
    this.#reader = following;
    if (position.sequence < segment.next) ledger.passEnd(segment, position);
    await reader.close();
    return true;
  }

  /** Somebody may have removed the file: then all that was in it is lost. */
  async #open(segment: Segment, start: LogPosition): Promise<SegmentReader> {
    try {
      return await SegmentReader.open(this.#options.files, segment, start);
    } catch (error) {
      if (!isMissing(error)) throw error;
      segment.isGone = true;
      return SegmentReader.ofMissing(segment, start);
    }
  }
}
