import type { FileSystem } from '../../log/file-system.ts';
import type { Log } from '../../log/log.ts';
import {
  RECORD_HEADER_BYTES,
  firstOf,
  payloadBytes,
  type LogPosition,
  type Segment,
} from '../../log/segment.ts';
import { SegmentReader, type SegmentPiece } from '../../log/segment-reader.ts';
import type { AckedRange, AckRanges } from '../ack-ranges.ts';
import type { CursorSnapshot } from '../message-log.ts';

interface ReadPieces {
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

  get segment(): Segment | undefined {
    return this.#reader?.segment;
  }

  /** Where reading goes on; undefined if it has not begun. */
  get cursor(): CursorSnapshot | undefined {
    const reader = this.#reader;
    if (reader !== undefined) return { file: reader.segment.path, offset: reader.position.offset };
    const start = this.#start;
    const segment = this.#log.segments.find(({ number }) => number === start?.segment);
    return start && segment && { file: segment.path, offset: start.offset };
  }

  /** Reading begins there, in the first segment that is needed; by default, with its first record. */
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
      const missing = reader.missingAtEnd();
      await reader.close().catch(() => undefined); // or what is missing would not be reported
      if (missing !== undefined) return { segment, start, pieces: [missing] };
    }
  }

  /** The segment that is being read, or the first one that is needed. */
  async #readerOf(): Promise<SegmentReader | undefined> {
    await this.#leaveAcknowledged();
    if (this.#reader !== undefined) return this.#reader;
    const segment = this.#log.segments.find((each) => this.#isNeeded(each));
    if (segment === undefined) return undefined;
    this.#reader = await this.#log.openReader(segment, this.#start);
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

interface LogStart {
  /** Position of the first message that is not acknowledged, or of one not long before it; undefined if there is none. */
  readonly position: LogPosition | undefined;
  /** Bytes of the messages from the first one that is not acknowledged to the end of the log. */
  readonly bytes: number;
}

/** Finds the first message that is not acknowledged. Reads from the hint, or else from the beginning of its segment. */
export async function locateStart(
  files: FileSystem,
  segments: readonly Segment[],
  prefix: number,
  hint: LogPosition | undefined,
): Promise<LogStart> {
  const at = segments.findIndex(({ next }) => next > prefix);
  const segment = segments[at];
  if (segment === undefined) return { position: undefined, bytes: 0 };
  const isUsable = hint !== undefined && (await isRight(files, segment, prefix, hint));
  const position = await scanTo(files, segment, prefix, isUsable ? hint : firstOf(segment));
  const later = segments.slice(at + 1).map((other) => payloadBytes(other, firstOf(other)));
  return { position, bytes: later.reduce((sum, bytes) => sum + bytes, payloadBytes(segment, position)) };
}

/**
 * Measures acknowledged ranges of which the bytes are not known: some of their messages may be missing. Reads at most two
 * segments for each such range, and nothing for the others.
 */
export async function measureUnknown(
  files: FileSystem,
  segments: readonly Segment[],
  ranges: readonly AckedRange[],
): Promise<void> {
  for (const range of ranges) {
    if (!Number.isNaN(range.bytes)) continue;
    const from = await locateStart(files, segments, range.from, undefined);
    const to = await locateStart(files, segments, range.to, undefined);
    range.bytes = from.bytes - to.bytes;
  }
}

/** Bytes that a piece counts for as long as it is taken for messages. */
export function damagedBytes(
  { header, next }: Segment,
  { offset, end, from, to = next }: Exclude<SegmentPiece, { kind: 'record' }>,
): number {
  return header === undefined ? 0 : end - offset - (to - from) * RECORD_HEADER_BYTES;
}

/** A hint is used if a message of that sequence is there, and not after the first one that is needed. */
async function isRight(
  files: FileSystem,
  segment: Segment,
  prefix: number,
  hint: LogPosition,
): Promise<boolean> {
  if (hint.segment !== segment.number || hint.sequence > prefix) return false;
  const reader = await SegmentReader.open(files, segment, hint);
  for await (const [piece] of reader) return piece?.kind === 'record';
  return false;
}

/** Reads from a position to the first message that is not acknowledged. */
async function scanTo(
  files: FileSystem,
  segment: Segment,
  prefix: number,
  from: LogPosition,
): Promise<LogPosition> {
  const reader = await SegmentReader.open(files, segment, from);
  let position = from;
  for await (const pieces of reader) {
    for (const piece of pieces) {
      const sequence = sequenceAfter(piece, segment);
      if (sequence > prefix) continue;
      position = { segment: segment.number, offset: piece.end, sequence };
    }
    if (reader.position.sequence > prefix) break;
  }
  return position;
}

function sequenceAfter(piece: SegmentPiece, { next }: Segment): number {
  return piece.kind === 'record' ? piece.sequence + 1 : (piece.to ?? next);
}
