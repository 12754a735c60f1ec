import { withFile, type File, type FileSystem } from './file-system.ts';
import { readFooter, zerosAtEnd, type FoundFooter } from './find-end.ts';
import {
  decodeSegmentHeader,
  encodeFooter,
  FOOTER_BYTES,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  type LostPart,
  type SegmentHeader,
  type Segment,
} from './segment.ts';
import { SegmentScan, type DamagePiece, type OtherPiece, type SegmentPiece } from './segment-reader.ts';

/** One of the two copies of a header. A crash during the creation of a segment may leave one copy. */
type HeaderCopy = 'intact' | 'damaged' | 'missing';

/** A segment of which every byte was read: what is in it, and what is wrong with it. */
export interface ExaminedSegment {
  readonly segment: Segment;
  /** Size of the file, without zeros behind its records: they were there to be written over. */
  readonly size: number;
  readonly records: number;
  /** Records that an earlier repair has given up. */
  readonly lost: readonly OtherPiece[];
  /** Ascending. */
  readonly damages: readonly LostPart[];
  /** Where its records should end, and the sequence after that of the last one. */
  readonly end: number;
  readonly next: number;
  readonly headerCopies: readonly HeaderCopy[];
  /** Whether the right footer, and nothing else, is behind the records. */
  readonly isSealed: boolean;
  /** Whether a footer is where the records should end that does not agree with them. */
  readonly hasWrongFooter: boolean;
  /** Whether the file ends with a footer that is not where the records end. */
  readonly hasStrayFooter: boolean;
  /** Bytes behind the records and the footer. */
  readonly rest: number;
}

/**
 * Reads every byte of a segment. Changes nothing.
 *
 * @param successor - the segment with the next number, whose header holds the end of this one.
 * @param onPieces - called with what was read, block by block.
 */
export async function examineSegment(
  files: FileSystem,
  segment: Segment,
  successor: Segment | undefined,
  onPieces: (pieces: readonly SegmentPiece[]) => void,
): Promise<ExaminedSegment> {
  const fileSize = await files.size(segment.path);
  const { header } = segment;
  if (header === undefined) return unreadable(segment, fileSize);
  return withFile(files, segment.path, 'read', async (file) => {
    const end = Math.max(successor?.header?.previousEnd ?? segment.end, SEGMENT_HEADER_BYTES);
    const examination = new Examination(segment, header, file, end);
    await examination.read(Math.min(end, fileSize), onPieces);
    const { scan, records, lost, damages } = examination;
    const next = Math.max(scan.sequence, damages.at(-1)?.to ?? 0);
    const footer = await readFooter(file, header, end);
    const isExact = footer?.bytes.equals(encodeFooter(header, end, next)) === true;
    const wantedEnd = end + (footer === undefined ? 0 : FOOTER_BYTES);
    const isFooterLast = (await readFooter(file, header, fileSize - FOOTER_BYTES)) !== undefined;
    const size = isFooterLast ? fileSize : await zerosAtEnd(file, wantedEnd, fileSize);
    const rest = Math.max(size - wantedEnd, 0);
    const isEndKnown = footer !== undefined && rest <= FOOTER_BYTES;
    return {
      ...{ segment, size, records, lost, damages, end, next, rest },
      headerCopies: await headerCopies(file),
      isSealed: isExact && rest === 0,
      // Damage may hide that it is wrong.
      hasWrongFooter:
        footer !== undefined && !(canBeRight(footer, segment) && (isExact || damages.length > 0)),
      hasStrayFooter: !isEndKnown && isFooterLast,
    };
  });
}

function canBeRight({ sequence, records }: FoundFooter, { base, next }: Segment): boolean {
  return sequence === base + records && sequence <= next;
}

function unreadable(segment: Segment, size: number): ExaminedSegment {
  const { base: from, next: to } = segment;
  const reason = 'the header of the segment is damaged';
  return {
    ...{ segment, size, records: 0, lost: [], end: size, next: to, rest: 0 },
    damages: [{ offset: 0, end: size, from, to, reason }],
    headerCopies: ['damaged', 'damaged'],
    ...{ isSealed: false, hasWrongFooter: false, hasStrayFooter: false },
  };
}

class Examination {
  readonly scan: SegmentScan;
  records = 0;
  readonly lost: OtherPiece[] = [];
  readonly damages: LostPart[] = [];
  readonly #segment: Segment;
  readonly #end: number;

  /** @param end - where the records should end. */
  constructor(segment: Segment, header: SegmentHeader, file: File, end: number) {
    this.#segment = segment;
    this.#end = end;
    this.scan = new SegmentScan(file, header, SEGMENT_HEADER_BYTES, header.baseSequence);
  }

  /** @param readable - where the file ends, or its records should. */
  async read(readable: number, onPieces: (pieces: readonly SegmentPiece[]) => void): Promise<void> {
    const { scan, damages } = this;
    for (let pieces = await scan.next(readable); pieces.length > 0; pieces = await scan.next(readable)) {
      for (const piece of pieces) {
        if (piece.kind === 'record') this.records++;
        else if (piece.kind === 'damage') damages.push(this.#damageOf(piece));
        else if (piece.kind === 'lost') this.lost.push(piece);
        else damages.push(footerBeforeEnd(piece));
      }
      onPieces(pieces);
    }
    if (damages.at(-1)?.end !== this.#end && scan.offset < this.#end) damages.push(this.#missingEnd());
    joinSmall(damages);
  }

  #damageOf(piece: DamagePiece): LostPart {
    const { offset, from, reason } = piece;
    const end = piece.to === undefined ? this.#end : piece.end;
    return { offset, end, from, to: piece.to ?? Math.max(this.#segment.next, from), reason };
  }

  /** The file ends between two records. */
  #missingEnd(): LostPart {
    const { offset, sequence: from } = this.scan;
    const to = Math.max(this.#segment.next, from);
    const reason = 'the segment ends too early';
    return { offset, end: this.#end, from, to, reason };
  }
}

/** Bytes before it are missing: it should be where the segment ends. */
function footerBeforeEnd({ offset, end, from, to }: OtherPiece): LostPart {
  return { offset, end, from, to, reason: 'a footer before the end' };
}

/** Joins damage that is too short for a record to its neighbour: together they may be long enough. */
function joinSmall(damages: LostPart[]): void {
  for (let i = damages.length - 1; i > 0; i--) {
    const [before, damage] = damages.slice(i - 1, i + 1) as [LostPart, LostPart];
    const isSmall = [before, damage].some(({ offset, end }) => end - offset < RECORD_HEADER_BYTES);
    if (!isSmall || before.end !== damage.offset) continue;
    damages.splice(i - 1, 2, { ...before, end: damage.end, to: Math.max(before.to, damage.to) });
  }
}

async function headerCopies(file: File): Promise<HeaderCopy[]> {
  const copies: HeaderCopy[] = [];
  for (const offset of [0, SEGMENT_HEADER_BYTES / 2]) {
    const copy = Buffer.alloc(SEGMENT_HEADER_BYTES / 2);
    await file.read(copy, offset);
    const isEmpty = copy.every((byte) => byte === 0);
    copies.push(decodeSegmentHeader(copy) !== undefined ? 'intact' : isEmpty ? 'missing' : 'damaged');
  }
  return copies;
}
