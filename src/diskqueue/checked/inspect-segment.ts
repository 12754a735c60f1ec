import { type File, type FileSystem, withFile } from '../../log/file-system.ts';
import type { CorruptionEvent } from '../message-log.ts';
import type { CursorState } from './cursor-format.ts';
import {
  readFooter,
  type FoundFooter,
  decodeSegmentHeader,
  FOOTER_BYTES,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  type SegmentHeader,
} from '../../log/segment-format.ts';
import { SegmentScan, type LostPiece, type SegmentPiece } from '../../log/segment-reader.ts';
import type { Segment } from '../../log/segment.ts';

/** One segment, of which every byte was read. */
export interface InspectedSegment {
  readonly segment: Segment;
  readonly size: number;
  readonly isSealed: boolean;
  /** Messages that can be read; and those of them that are not acknowledged. */
  readonly messages: number;
  readonly unacknowledged: number;
  readonly problems: readonly CorruptionEvent[];
  readonly notes: readonly string[];
}

/** @param onBytes - told how far it is, after each block. */
export async function inspectSegment(
  files: FileSystem,
  segment: Segment,
  size: number,
  cursor: CursorState,
  onBytes: (bytes: number) => void,
): Promise<InspectedSegment> {
  const inspection = new Inspection(segment, size, cursor);
  if (segment.header === undefined) inspection.unreadable();
  else {
    const { header } = segment;
    await withFile(files, segment.path, 'read', (file) => inspection.read(file, header, onBytes));
  }
  onBytes(size);
  return inspection;
}

class Inspection implements InspectedSegment {
  readonly segment: Segment;
  readonly size: number;
  isSealed = false;
  messages = 0;
  unacknowledged = 0;
  readonly problems: CorruptionEvent[] = [];
  readonly notes: string[] = [];
  readonly #cursor: CursorState;
  #payloadBytes = 0;
  /** Messages that a repair has given up: the footer counts them. */
  #lost = 0;
  #hasHint = false;
  #isDamaged = false;

  constructor(segment: Segment, size: number, cursor: CursorState) {
    this.segment = segment;
    this.size = size;
    this.#cursor = cursor;
  }

  unreadable(): void {
    const { base, next } = this.segment;
    this.#problem(0, this.size, 'the header of the segment is damaged', base, next);
  }

  async read(file: File, header: SegmentHeader, onBytes: (bytes: number) => void): Promise<void> {
    await this.#checkHeader(file);
    const { end, next } = this.segment;
    const scan = new SegmentScan(file, header, SEGMENT_HEADER_BYTES, header.baseSequence);
    for (let pieces = await scan.next(end, next); pieces.length > 0; pieces = await scan.next(end, next)) {
      for (const piece of pieces) this.#take(piece);
      onBytes(scan.offset);
    }
    if (scan.sequence < next && !this.#areAcknowledged(scan.sequence, next)) {
      this.#problem(end, 0, 'the segment ends too early', scan.sequence, next);
    } else if (scan.sequence > next) {
      this.#problem(end, 0, 'there are more messages in it than the next segment says');
    }
    await this.#checkEnd(file, header);
    this.#checkHint();
  }

  /** Either copy does; a crash may have left half of them. */
  async #checkHeader(file: File): Promise<void> {
    const { path } = this.segment;
    const half = SEGMENT_HEADER_BYTES / 2;
    for (const offset of [0, half]) {
      const copy = Buffer.alloc(half);
      const read = await file.read(copy, offset);
      if (decodeSegmentHeader(copy) !== undefined) continue;
      const isMissing = copy.subarray(0, read).every((byte) => byte === 0);
      if (isMissing && offset > 0) this.notes.push(`${path}: its header is there once`);
      else this.#problem(offset, half, 'a copy of the header is damaged');
    }
  }

  #take(piece: SegmentPiece): void {
    const { hint, acks } = this.#cursor;
    if (piece.kind === 'message') {
      this.messages++;
      this.#payloadBytes += piece.payload.length;
      if (!acks.has(piece.sequence)) this.unacknowledged++;
    } else if (piece.kind === 'damage') {
      this.#isDamaged = true;
      const { offset, end, from, to = this.segment.next, reason } = piece;
      if (from < to && this.#areAcknowledged(from, to)) {
        this.notes.push(`${this.segment.path} at ${offset}: ${reason}; it is acknowledged`);
      } else this.#problem(offset, end - offset, reason, from, to);
    } else if (piece.kind === 'lost') this.#takeLost(piece);
    else this.#problem(piece.offset, piece.end - piece.offset, 'a footer before the end');
    const isHint = piece.offset === hint?.offset && 'sequence' in piece && piece.sequence === hint.sequence;
    this.#hasHint ||= isHint;
  }

  #takeLost({ offset, end, from, to }: LostPiece): void {
    this.#lost += to - from;
    this.#payloadBytes += end - offset - (to - from) * RECORD_HEADER_BYTES;
    const lost = to - from === 1 ? `message ${from} was` : `messages ${from} to ${to - 1} were`;
    if (to > from) this.notes.push(`${this.segment.path}: ${lost} lost before it was repaired`);
  }

  async #checkEnd(file: File, header: SegmentHeader): Promise<void> {
    const { path, end } = this.segment;
    const footer = await readFooter(file, header, end);
    this.isSealed = footer !== undefined;
    if (footer !== undefined) this.#checkFooter(footer, end);
    const rest = this.size - end - (this.isSealed ? FOOTER_BYTES : 0);
    if (rest > 0) this.notes.push(`${path}: ${rest} bytes at ${this.size - rest} belong to nothing`);
    if (rest <= FOOTER_BYTES && this.isSealed) return;
    if ((await readFooter(file, header, this.size - FOOTER_BYTES)) !== undefined) {
      this.#problem(this.size - FOOTER_BYTES, FOOTER_BYTES, 'its footer is not where the segment ends');
    }
  }

  #checkFooter({ sequence, messages, payloadBytes }: FoundFooter, offset: number): void {
    const { base, next } = this.segment;
    const isRight = sequence === base + messages && sequence <= next;
    const holds = messages === this.messages + this.#lost && payloadBytes === Math.max(this.#payloadBytes, 0);
    if (isRight && (holds || this.#isDamaged)) return;
    this.#problem(offset, FOOTER_BYTES, 'its footer counts something else than what is in it');
  }

  /** It may lead to a segment that is gone, or past the end: then nobody follows it. */
  #checkHint(): void {
    const { hint } = this.#cursor;
    if (hint?.segment !== this.segment.number || this.#hasHint || hint.offset >= this.segment.end) return;
    this.notes.push(
      `${this.segment.path}: the cursor says that message ${hint.sequence} is at ${hint.offset}`,
    );
  }

  #areAcknowledged(from: number, to: number): boolean {
    return this.#cursor.acks.nextAfter(from) >= to;
  }

  #problem(offset: number, bytes: number, reason: string, from = 0, to = 0): void {
    const sequences = to > from ? { firstSequence: from, lastSequence: to - 1 } : {};
    this.problems.push({ file: this.segment.path, offset, bytes, ...sequences, reason });
  }
}
