import type { File, FileSystem } from '../file-system.ts';
import type { Segment } from './segment.ts';
import { SEGMENT_HEADER_BYTES } from './segment-format.ts';
import type { LogPosition } from './cursor-format.ts';
import { SegmentScan, type DamagePiece, type SegmentPiece } from './segment-scan.ts';

const NOTHING = { offset: 0, bytes: Buffer.alloc(0) };

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
    const { offset, bytes } = segment.tail ?? NOTHING;
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
