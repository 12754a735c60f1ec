import { openUnlessRemoved, type File, type FileSystem } from './file-system.ts';
import {
  decodeRecordHeader,
  FOOTER,
  isPayloadIntact,
  LOST,
  MARKER,
  RECORD_HEADER_BYTES,
  type DamagedPart,
  type RecordHeader,
  type SegmentHeader,
  firstOf,
  type LogPosition,
  type Segment,
} from './segment.ts';

/** What begins at one offset of a segment. */
export type SegmentPiece = RecordPiece | DamagePiece | OtherPiece;

export interface RecordPiece {
  readonly kind: 'record';
  readonly offset: number;
  /** Where the next piece begins. */
  readonly end: number;
  readonly sequence: number;
  readonly isSyncedBefore: boolean;
  /** A view of the memory of the scan, which the next block overwrites. */
  readonly payload: Buffer;
}

/** Bytes that are not a record, or a record with a damaged payload. */
export interface DamagePiece extends DamagedPart {
  readonly kind: 'damage';
  readonly from: number;
  /** Undefined if it is not known. */
  readonly to: number | undefined;
}

/** A footer, in which no records are, or records that a repair has given up: `from` up to, and not including, `to`. */
export interface OtherPiece {
  readonly kind: 'footer' | 'lost';
  readonly offset: number;
  readonly end: number;
  readonly from: number;
  readonly to: number;
}

const NO_RECORD = 'no record begins here';

/** Bytes read at once. */
const BLOCK_BYTES = 128 * 1024;
/** The same after a record that was longer. A record that is even longer gets memory of its own. */
const LARGE_BLOCK_BYTES = 1024 * 1024;

/**
 * Goes through the records of one segment, block by block, and skips damage up to the next record.
 *
 * Each piece begins after the previous one, so it ends. It never reads past `end`, so a segment can be read while it is
 * written.
 */
export class SegmentScan {
  readonly #file: Pick<File, 'read'>;
  readonly #header: SegmentHeader;
  #offset: number;
  #sequence: number;
  #memory: Buffer = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  /** The last block that was read, and its offset in the file. */
  #block: Buffer = Buffer.alloc(0);
  #blockStart = 0;

  /** @param offset - where a record begins; @param sequence - the expected sequence of that record. */
  constructor(file: Pick<File, 'read'>, header: SegmentHeader, offset: number, sequence: number) {
    this.#file = file;
    this.#header = header;
    this.#offset = offset;
    this.#sequence = sequence;
  }

  get offset(): number {
    return this.#offset;
  }

  get sequence(): number {
    return this.#sequence;
  }

  /**
   * Returns the next pieces before `end`: as many as one block of the file holds, and none at the end.
   *
   * @param endSequence - sequence of a record at `end`, if it is known: damage up to there has cost the ones before it.
   * @throws the error of the file system; the call can be repeated then.
   */
  async next(end: number, endSequence?: number): Promise<SegmentPiece[]> {
    if (this.#offset >= end) return [];
    await this.#load(this.#offset, Math.min(this.#memory.length, end - this.#offset));
    const pieces: SegmentPiece[] = [];
    for (let piece = this.#parse(end); piece !== undefined; piece = this.#parse(end)) {
      pieces.push(piece);
      this.#pass(piece);
    }
    return pieces.length > 0 ? pieces : [await this.#difficult(end, endSequence)];
  }

  /** The piece at the offset, if all of the record is in the block. */
  #parse(end: number): SegmentPiece | undefined {
    const at = this.#offset - this.#blockStart;
    const record = this.#recordAt(at, end);
    if (record === undefined) return undefined;
    const payloadEnd = at + RECORD_HEADER_BYTES + record.length;
    if (record.type === LOST) return this.#lostPieceOf(record);
    return payloadEnd > this.#block.length ? undefined : this.#pieceOf(record, at);
  }

  /** The header of the record at an offset of the block, if it may be the next one. */
  #recordAt(at: number, end: number): RecordHeader | undefined {
    const record = decodeRecordHeader(this.#block, at, this.#header.salt);
    if (record?.sequence !== this.#sequence) return undefined;
    const recordEnd = this.#blockStart + at + RECORD_HEADER_BYTES + record.length;
    return recordEnd > end ? undefined : record;
  }

  /** Its payload holds nothing, and need not be in the block. */
  #lostPieceOf({ sequence, length, payloadCrc: records }: RecordHeader): OtherPiece {
    const offset = this.#offset;
    const end = offset + RECORD_HEADER_BYTES + length;
    return { kind: 'lost', offset, end, from: sequence, to: sequence + records };
  }

  #pieceOf(record: RecordHeader, at: number): SegmentPiece {
    const { type, sequence, length, isSyncedBefore } = record;
    const payload = this.#block.subarray(at + RECORD_HEADER_BYTES, at + RECORD_HEADER_BYTES + length);
    const offset = this.#blockStart + at;
    const end = offset + RECORD_HEADER_BYTES + length;
    const to = type === FOOTER ? sequence : sequence + 1;
    if (!isPayloadIntact(payload, record)) {
      const reason = 'the checksum of a payload is wrong';
      return { kind: 'damage', offset, end, from: sequence, to, reason };
    }
    if (type === FOOTER) return { kind: 'footer', offset, end, from: sequence, to };
    return { kind: 'record', offset, end, sequence, isSyncedBefore, payload };
  }

  #pass(piece: SegmentPiece): void {
    this.#offset = piece.end;
    if (piece.kind === 'record') this.#sequence = piece.sequence + 1;
    else this.#sequence = piece.to ?? this.#sequence;
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

  /** Damage from here to the next record, or to the end. */
  async #damage(end: number): Promise<DamagePiece> {
    const [offset, from] = [this.#offset, this.#sequence];
    const found = await this.#findRecord(offset, end);
    if (found === undefined) return this.#damageUntil(end, NO_RECORD);
    return { kind: 'damage', offset, end: found.offset, from, to: found.sequence, reason: NO_RECORD };
  }

  #damageUntil(end: number, reason: string): DamagePiece {
    return { kind: 'damage', offset: this.#offset, end, from: this.#sequence, to: undefined, reason };
  }

  /** The first record at or after `start` that may follow the records before it. */
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

  async #load(start: number, length: number): Promise<void> {
    const memory = this.#memoryFor(length);
    const read = await this.#file.read(memory.subarray(0, length), start);
    this.#block = memory.subarray(0, read);
    this.#blockStart = start;
  }

  #memoryFor(length: number): Buffer {
    if (length > LARGE_BLOCK_BYTES) return Buffer.allocUnsafeSlow(length); // which is not kept
    if (length > this.#memory.length) this.#memory = Buffer.allocUnsafeSlow(LARGE_BLOCK_BYTES);
    return this.#memory;
  }
}

function withEnd(piece: SegmentPiece, endSequence: number): SegmentPiece {
  const isOpen = piece.kind === 'damage' && piece.to === undefined;
  return isOpen ? { ...piece, to: Math.max(piece.from, endSequence) } : piece;
}

/** One segment that is being read: its open file, and how far it was read. */
export class SegmentReader {
  readonly segment: Segment;
  readonly #file: File | undefined;
  readonly #scan: SegmentScan | undefined;
  /** How far it was read, if nothing in it can be read. */
  #skipped: { readonly offset: number; readonly sequence: number };

  private constructor(segment: Segment, start: LogPosition, file?: File) {
    const { header, end, next } = segment;
    this.segment = segment;
    this.#file = file;
    this.#skipped = header === undefined ? { offset: end, sequence: next } : start;
    if (header === undefined || file === undefined) return;
    this.#scan = new SegmentScan(new TailFile(segment, file), header, start.offset, start.sequence);
  }

  /**
   * Opens a segment. If another program has removed the file, all of it is damage, also what is written to it later.
   *
   * @param start - position of a record of it; by default, of the first one.
   */
  static async open(
    files: FileSystem,
    segment: Segment,
    start: LogPosition = firstOf(segment),
  ): Promise<SegmentReader> {
    if (segment.header === undefined) return new SegmentReader(segment, start);
    const file = await openUnlessRemoved(files, segment.path);
    if (file === undefined) segment.isRemoved = true;
    return new SegmentReader(segment, start, file);
  }

  /** Position of the next record, with its expected sequence. */
  get position(): LogPosition {
    const { offset, sequence } = this.#scan ?? this.#skipped;
    return { segment: this.segment.number, offset, sequence };
  }

  /** Returns the next pieces; none at the end of what is readable. */
  async next(): Promise<SegmentPiece[]> {
    const { end, next } = this.segment;
    if (this.#scan !== undefined) return this.#scan.next(end, next);
    const { offset, sequence: from } = this.#skipped;
    if (offset >= end) return [];
    this.#skipped = { offset: end, sequence: next };
    return [{ kind: 'damage', offset, end, from, to: next, reason: 'the segment was removed' }];
  }

  /** After the last piece of a segment that will not grow: the records that are missing before its end, if any are. */
  missingAtEnd(): DamagePiece | undefined {
    const { end, next: to } = this.segment;
    const { offset, sequence: from } = this.position;
    if (from >= to) return undefined;
    return { kind: 'damage', offset, end, from, to, reason: 'the segment ends too early' };
  }

  async close(): Promise<void> {
    await this.#file?.close();
  }

  /** Yields the next pieces up to the end of what is readable, and closes the file: also if the loop ends early. */
  async *[Symbol.asyncIterator](): AsyncGenerator<SegmentPiece[], void, undefined> {
    try {
      for (let pieces = await this.next(); pieces.length > 0; pieces = await this.next()) yield pieces;
    } finally {
      await this.close();
    }
  }
}

/** Reads the last write from memory, and everything else from the file. */
export class TailFile {
  readonly #segment: Segment;
  readonly #file: File;

  constructor(segment: Segment, file: File) {
    this.#segment = segment;
    this.#file = file;
  }

  read(buffer: Buffer, position: number): Promise<number> {
    const { tail } = this.#segment;
    const at = tail === undefined ? -1 : position - tail.offset;
    if (tail === undefined || at < 0 || at + buffer.length > tail.bytes.length) {
      return this.#file.read(buffer, position);
    }
    return Promise.resolve(tail.bytes.copy(buffer, 0, at));
  }
}
