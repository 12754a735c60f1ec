import type { Log } from '../../log/log.ts';
import type { SegmentPiece, SegmentReader } from '../../log/segment-reader.ts';
import type { LogPosition, Segment } from '../../log/segment.ts';
import type { AckRanges } from '../ack-ranges.ts';

/** Some pieces of a segment, from `start` on. */
export interface ReadPieces {
  readonly segment: Segment;
  readonly start: LogPosition;
  readonly pieces: readonly SegmentPiece[];
}

/** Reads a log once, segment by segment, and skips segments of which every message is acknowledged. */
export class LogReader {
  readonly #log: Log;
  readonly #acks: AckRanges;
  #start: LogPosition | undefined;
  #reader: SegmentReader | undefined;
  #isReading = false;

  constructor(log: Log, acks: AckRanges) {
    this.#log = log;
    this.#acks = acks;
  }

  /** The segment that is being read. */
  get segment(): Segment | undefined {
    return this.#reader?.segment;
  }

  /** Reading begins there, unless it has begun. */
  startAt(position: LogPosition | undefined): void {
    this.#start = position;
  }

  /** Returns the next pieces, at least one; undefined at the end of the log. */
  async read(): Promise<ReadPieces | undefined> {
    this.#isReading = true;
    try {
      return await this.#read();
    } finally {
      this.#isReading = false;
    }
  }

  /** Closes the segment that is being read if it is not needed any more, so that it can be removed. */
  async leaveAcknowledged(): Promise<void> {
    if (!this.#isReading) await this.#leaveAcknowledged();
  }

  async close(): Promise<void> {
    const reader = this.#reader;
    this.#reader = undefined;
    this.#start = undefined;
    await reader?.close();
  }

  async #read(): Promise<ReadPieces | undefined> {
    for (;;) {
      const reader = await this.#readerOf();
      if (reader === undefined) return undefined;
      const { segment, position: start } = reader;
      const pieces = await reader.next();
      if (pieces.length > 0) return { segment, start, pieces };
      if (start.offset < segment.end) continue; // it has grown meanwhile
      const { segments } = this.#log;
      const next = segments[segments.indexOf(segment) + 1];
      if (next === undefined) return undefined;
      this.#reader = await this.#log.openReader(next);
      await reader.close();
      const missing = reader.missingAtEnd();
      if (missing !== undefined) return { segment, start, pieces: [missing] };
    }
  }

  /** The segment that is being read, or the first one that is needed. */
  async #readerOf(): Promise<SegmentReader | undefined> {
    await this.#leaveAcknowledged();
    if (this.#reader !== undefined) return this.#reader;
    const segment = this.#log.segments.find((each) => this.#isNeeded(each));
    if (segment === undefined) return undefined;
    const start = this.#start?.segment === segment.number ? this.#start : undefined;
    this.#reader = await this.#log.openReader(segment, start);
    this.#start = undefined;
    return this.#reader;
  }

  async #leaveAcknowledged(): Promise<void> {
    const reader = this.#reader;
    if (reader === undefined || this.#isNeeded(reader.segment)) return;
    this.#reader = undefined;
    await reader.close();
  }

  #isNeeded(segment: Segment): boolean {
    return segment.next > this.#acks.prefix || segment === this.#log.written;
  }
}
