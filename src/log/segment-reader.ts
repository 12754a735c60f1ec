import type { File, FileSystem } from './file-system.ts';
import {
  decodeFooter,
  decodeRecordHeader,
  FOOTER,
  isPayloadIntact,
  LOST,
  MARKER,
  RECORD_HEADER_BYTES,
  type RecordHeader,
  type SegmentFooter,
  type SegmentHeader,
  SEGMENT_HEADER_BYTES,
} from './segment-format.ts';
import type { LogPosition, Segment } from './segment.ts';

/** What stands at one place of a segment. */
export type SegmentPiece = MessagePiece | FooterPiece | DamagePiece | LostPiece;

export interface MessagePiece {
  readonly kind: 'message';
  readonly offset: number;
  /** Where the next piece begins. */
  readonly end: number;
  readonly sequence: number;
  readonly isSyncedBefore: boolean;
  /** A view of the scan's own memory, which the next block overwrites. */
  readonly payload: Buffer;
}

export interface FooterPiece {
  readonly kind: 'footer';
  readonly offset: number;
  readonly end: number;
  readonly sequence: number;
  readonly footer: SegmentFooter;
  /** No message is in it. */
  readonly from: number;
  readonly to: number;
}

/** Bytes that are no record, or a record whose payload is not what was written. */
export interface DamagePiece {
  readonly kind: 'damage';
  readonly offset: number;
  readonly end: number;
  /** The messages that were there: `from` up to, and not including, `to`. Undefined where nobody can tell their end. */
  readonly from: number;
  readonly to: number | undefined;
  readonly reason: string;
}

/** Where a repair has given messages up: `from` up to, and not including, `to`. */
export interface LostPiece {
  readonly kind: 'lost';
  readonly offset: number;
  readonly end: number;
  readonly from: number;
  readonly to: number;
}

const NO_RECORD = 'no record begins here';

/** Bytes read at once. A record that is longer gets a larger piece of memory, for itself. */
const BLOCK_BYTES = 128 * 1024;
const NOTHING = Buffer.alloc(0);

/**
 * Goes through the records of one segment, block by block, and over what is damaged to the next record.
 *
 * It ends: each piece begins after the one before. Reading past `end` is never tried, so a segment that somebody is
 * writing can be read as far as it is written.
 */
export class SegmentScan {
  readonly #file: Pick<File, 'read'>;
  readonly #header: SegmentHeader;
  #offset: number;
  #sequence: number;
  readonly #memory: Buffer = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  /** What was read last, and where in the file it begins. */
  #block: Buffer = NOTHING;
  #blockStart = 0;

  /** @param offset - where a record begins; @param sequence - the one that it is expected to have. */
  constructor(file: Pick<File, 'read'>, header: SegmentHeader, offset: number, sequence: number) {
    this.#file = file;
    this.#header = header;
    this.#offset = offset;
    this.#sequence = sequence;
  }

  /** Where the next piece begins. */
  get offset(): number {
    return this.#offset;
  }

  /** The sequence that the next message is expected to have. */
  get sequence(): number {
    return this.#sequence;
  }

  /**
   * The next pieces before `end`: as many as one block of the file holds, and none at the end.
   *
   * @param endSequence - the one that a message at `end` has, if it is known: damage up to there has cost those before.
   * @throws what the file system throws; then nothing has changed, and the call can be repeated.
   */
  async next(end: number, endSequence?: number): Promise<SegmentPiece[]> {
    if (this.#offset >= end) return [];
    await this.#load(this.#offset, Math.min(BLOCK_BYTES, end - this.#offset));
    const pieces: SegmentPiece[] = [];
    for (let piece = this.#parse(end); piece !== undefined; piece = this.#parse(end)) {
      pieces.push(piece);
      this.#pass(piece);
    }
    return pieces.length > 0 ? pieces : [await this.#difficult(end, endSequence)];
  }

  /** The piece at the offset, if it is a record that is in the block as a whole. */
  #parse(end: number): SegmentPiece | undefined {
    const at = this.#offset - this.#blockStart;
    const record = this.#recordAt(at, end);
    if (record === undefined) return undefined;
    const payloadEnd = at + RECORD_HEADER_BYTES + record.length;
    if (record.kind === LOST) return this.#lostPieceOf(record);
    return payloadEnd > this.#block.length ? undefined : this.#pieceOf(record, at);
  }

  /** The header of a record that may be the next one. */
  #recordAt(at: number, end: number): RecordHeader | undefined {
    const record = decodeRecordHeader(this.#block, at, this.#header.salt);
    if (record?.sequence !== this.#sequence) return undefined;
    const recordEnd = this.#blockStart + at + RECORD_HEADER_BYTES + record.length;
    return recordEnd > end ? undefined : record;
  }

  /** Its payload need not be in the block: it is nothing. */
  #lostPieceOf({ sequence, length, payloadCrc: messages }: RecordHeader): LostPiece {
    const offset = this.#offset;
    const end = offset + RECORD_HEADER_BYTES + length;
    return { kind: 'lost', offset, end, from: sequence, to: sequence + messages };
  }

  #pieceOf(record: RecordHeader, at: number): SegmentPiece {
    const { sequence, length, isSyncedBefore } = record;
    const payload = this.#block.subarray(at + RECORD_HEADER_BYTES, at + RECORD_HEADER_BYTES + length);
    const offset = this.#blockStart + at;
    const end = offset + RECORD_HEADER_BYTES + length;
    if (!isPayloadIntact(payload, record)) {
      const to = record.kind === FOOTER ? sequence : sequence + 1;
      return {
        kind: 'damage',
        offset,
        end,
        from: sequence,
        to,
        reason: 'the checksum of a payload is wrong',
      };
    }
    if (record.kind === FOOTER) {
      const footer = decodeFooter(payload);
      return { kind: 'footer', offset, end, sequence, footer, from: sequence, to: sequence };
    }
    return { kind: 'message', offset, end, sequence, isSyncedBefore, payload };
  }

  #pass(piece: SegmentPiece): void {
    this.#offset = piece.end;
    if (piece.kind === 'message') this.#sequence = piece.sequence + 1;
    else if (piece.kind !== 'footer') this.#sequence = piece.to ?? this.#sequence;
  }

  /** A record that is longer than a block, or damage. */
  async #difficult(end: number, endSequence: number | undefined): Promise<SegmentPiece> {
    const record = this.#recordAt(0, end);
    const found = record === undefined ? await this.#damage(end) : await this.#longRecord(record, end);
    const piece = endSequence === undefined ? found : withEnd(found, endSequence);
    this.#pass(piece);
    return piece;
  }

  async #longRecord(record: RecordHeader, end: number): Promise<SegmentPiece> {
    const length = RECORD_HEADER_BYTES + record.length;
    await this.#load(this.#offset, length);
    return this.#block.length < length
      ? this.#damageUntil(end, 'the file is shorter than it was')
      : this.#pieceOf(record, 0);
  }

  /** From here to the next record, or to the end. */
  async #damage(end: number): Promise<DamagePiece> {
    const [offset, from] = [this.#offset, this.#sequence];
    const found = await this.#findRecord(offset, end);
    if (found === undefined) return this.#damageUntil(end, NO_RECORD);
    return { kind: 'damage', offset, end: found.offset, from, to: found.sequence, reason: NO_RECORD };
  }

  #damageUntil(end: number, reason: string): DamagePiece {
    return { kind: 'damage', offset: this.#offset, end, from: this.#sequence, to: undefined, reason };
  }

  /** The first record at or after `start` that may follow what has been read. */
  async #findRecord(start: number, end: number): Promise<{ offset: number; sequence: number } | undefined> {
    for (let from = start; from + RECORD_HEADER_BYTES <= end; from += BLOCK_BYTES - RECORD_HEADER_BYTES) {
      await this.#load(from, Math.min(BLOCK_BYTES, end - from));
      const found = this.#findInBlock(end);
      if (found !== undefined) return found;
      if (this.#block.length < BLOCK_BYTES) break;
    }
    return undefined;
  }

  #findInBlock(end: number): { offset: number; sequence: number } | undefined {
    const block = this.#block;
    for (let at = block.indexOf(MARKER); at >= 0; at = block.indexOf(MARKER, at + 1)) {
      const record = decodeRecordHeader(block, at, this.#header.salt);
      const offset = this.#blockStart + at;
      if (record === undefined || record.sequence < this.#sequence) continue;
      if (offset + RECORD_HEADER_BYTES + record.length <= end) return { offset, sequence: record.sequence };
    }
    return undefined;
  }

  /** A long record gets memory for itself, which is not kept. */
  async #load(start: number, length: number): Promise<void> {
    const memory = length <= BLOCK_BYTES ? this.#memory : Buffer.allocUnsafeSlow(length);
    this.#block = NOTHING; // if the read fails, nothing is in the block
    const read = await this.#file.read(memory.subarray(0, length), start);
    this.#block = memory.subarray(0, read);
    this.#blockStart = start;
  }
}

function withEnd(piece: SegmentPiece, endSequence: number): SegmentPiece {
  const isOpen = piece.kind === 'damage' && piece.to === undefined;
  return isOpen ? { ...piece, to: Math.max(piece.from, endSequence) } : piece;
}

const EMPTY_BLOCK = { offset: 0, bytes: Buffer.alloc(0) };

/** What goes through the pieces of a segment. */
interface Pieces {
  readonly offset: number;
  readonly sequence: number;
  next(end: number, endSequence: number): Promise<SegmentPiece[]>;
}

/** One segment that is being read: its open file, and how far it was read. */
export class SegmentReader {
  readonly segment: Segment;
  readonly #file: File | undefined;
  readonly #scan: Pieces | undefined;

  private constructor(segment: Segment, file: File | undefined, scan: Pieces | undefined) {
    this.segment = segment;
    this.#file = file;
    this.#scan = scan;
  }

  /** @param start - where a record of it begins; by default the first one. */
  static async open(
    files: FileSystem,
    segment: Segment,
    start: { offset: number; sequence: number } = { offset: SEGMENT_HEADER_BYTES, sequence: segment.base },
  ): Promise<SegmentReader> {
    const { header } = segment;
    if (header === undefined) return new SegmentReader(segment, undefined, undefined); // nothing in it can be read
    const file = await files.open(segment.path, 'read');
    const bytes = { read: readerOf(segment, file) };
    return new SegmentReader(segment, file, new SegmentScan(bytes, header, start.offset, start.sequence));
  }

  /** One whose file is gone: what was there, and what whoever still has the file open writes to it, is damage. */
  static ofMissing(segment: Segment, { offset, sequence }: LogPosition): SegmentReader {
    return new SegmentReader(segment, undefined, new MissingPieces(offset, sequence));
  }

  /** Where the next message is, and the sequence that it is expected to have. */
  get position(): LogPosition {
    return { segment: this.segment.number, offset: this.offset, sequence: this.sequence };
  }

  /** Where the next message is. */
  get offset(): number {
    return this.#scan?.offset ?? this.segment.end;
  }

  /** The sequence that the next message is expected to have. */
  get sequence(): number {
    return this.#scan?.sequence ?? this.segment.next;
  }

  /** The next pieces; none at the end of what is readable. */
  async next(): Promise<SegmentPiece[]> {
    const { end, next } = this.segment;
    return (await this.#scan?.next(end, next)) ?? [];
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }
}

/** Reads from memory what was written last, else from the file. */
function readerOf(segment: Segment, file: File): File['read'] {
  return (buffer, position) => {
    const { offset, bytes } = segment.tail ?? EMPTY_BLOCK;
    const at = position - offset;
    const isInTail = at >= 0 && at + buffer.length <= bytes.length;
    return isInTail ? Promise.resolve(bytes.copy(buffer, 0, at)) : file.read(buffer, position);
  };
}

class MissingPieces implements Pieces {
  offset: number;
  sequence: number;

  constructor(offset: number, sequence: number) {
    this.offset = offset;
    this.sequence = sequence;
  }

  next(end: number, endSequence: number): Promise<DamagePiece[]> {
    const { offset, sequence: from } = this;
    if (offset >= end) return Promise.resolve([]);
    this.offset = end;
    this.sequence = endSequence;
    return Promise.resolve([
      { kind: 'damage', offset, end, from, to: endSequence, reason: 'the segment is gone' },
    ]);
  }
}
