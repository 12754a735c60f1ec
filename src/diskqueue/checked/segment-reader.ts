import type { File, FileSystem } from '../file-system.ts';
import type { Segment } from './segment.ts';
import { SEGMENT_HEADER_BYTES } from './segment-format.ts';
import { SegmentScan, type SegmentPiece } from './segment-scan.ts';

const NOTHING = { offset: 0, bytes: Buffer.alloc(0) };

/** One segment that is being read: its open file, and how far it was read. */
export class SegmentReader {
  readonly segment: Segment;
  readonly #file: File | undefined;
  readonly #scan: SegmentScan | undefined;

  private constructor(segment: Segment, file: File | undefined, scan: SegmentScan | undefined) {
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
