import { withFile, type File, type FileSystem } from './file-system.ts';
import { readFooter, zerosAtEnd, type FoundFooter } from './find-end.ts';
import {
  decodeSegmentHeader,
  encodeFooter,
  encodeRecord,
  FOOTER_BYTES,
  MARKER,
  readUInt64,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  type LostPart,
  type SegmentHeader,
  type Segment,
} from './segment.ts';
import { SegmentScan, type DamagePiece, type OtherPiece, type SegmentPiece } from './segment-reader.ts';

/** A damaged part of a segment. */
export interface Damage extends LostPart {
  /** The record that was there, if only its header is damaged: a repair writes it again. */
  readonly rescued: Buffer | undefined;
}

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
  readonly damages: readonly Damage[];
  /**
   * A record behind the last one of the log whose header alone is damaged. A crash may have left it, so opening the log drops
   * it; a repair keeps it.
   */
  readonly tail: Damage | undefined;
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
 * @param type - the type of its records.
 * @param onPieces - called with what was read, block by block.
 */
export async function examineSegment(
  files: FileSystem,
  segment: Segment,
  successor: Segment | undefined,
  type: number,
  onPieces: (pieces: readonly SegmentPiece[]) => void,
): Promise<ExaminedSegment> {
  const fileSize = await files.size(segment.path);
  const { header } = segment;
  if (header === undefined) return unreadable(segment, fileSize);
  return withFile(files, segment.path, 'read', async (file) => {
    const end = Math.max(successor?.header?.previousEnd ?? segment.end, SEGMENT_HEADER_BYTES);
    const examination = new Examination(segment, header, file, end, type);
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
      tail: successor === undefined ? await examination.tail(size) : undefined,
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
    ...{ segment, size, records: 0, lost: [], tail: undefined, end: size, next: to, rest: 0 },
    damages: [{ offset: 0, end: size, from, to, reason, rescued: undefined }],
    headerCopies: ['damaged', 'damaged'],
    ...{ isSealed: false, hasWrongFooter: false, hasStrayFooter: false },
  };
}

class Examination {
  readonly scan: SegmentScan;
  records = 0;
  readonly lost: OtherPiece[] = [];
  readonly damages: Damage[] = [];
  readonly #segment: Segment;
  readonly #header: SegmentHeader;
  readonly #file: File;
  readonly #end: number;
  readonly #type: number;

  /** @param end - where the records should end. */
  constructor(segment: Segment, header: SegmentHeader, file: File, end: number, type: number) {
    this.#segment = segment;
    this.#header = header;
    this.#file = file;
    this.#end = end;
    this.#type = type;
    this.scan = new SegmentScan(file, header, SEGMENT_HEADER_BYTES, header.baseSequence);
  }

  /** @param readable - where the file ends, or its records should. */
  async read(readable: number, onPieces: (pieces: readonly SegmentPiece[]) => void): Promise<void> {
    const { scan, damages } = this;
    for (let pieces = await scan.next(readable); pieces.length > 0; pieces = await scan.next(readable)) {
      for (const piece of pieces) {
        if (piece.kind === 'record') this.records++;
        else if (piece.kind === 'damage') damages.push(await this.#damageOf(piece));
        else if (piece.kind === 'lost') this.lost.push(piece);
        else damages.push(footerBeforeEnd(piece));
      }
      onPieces(pieces);
    }
    if (damages.at(-1)?.end !== this.#end && scan.offset < this.#end) damages.push(this.#missingEnd());
    joinSmall(damages);
  }

  /** @param size - of the file, without zeros at its end: if the record ends with zeros, its header has its length. */
  async tail(size: number): Promise<Damage | undefined> {
    const { offset: end, sequence: from } = this.scan;
    const last = this.damages.at(-1);
    const offset = last?.end === end && last.from === last.to ? last.offset : end;
    const footer = encodeFooter(this.#header, offset, from);
    const header = Buffer.alloc(RECORD_HEADER_BYTES);
    await this.#file.read(header, offset);
    const hasSequence = readUInt64(header, 8) === from;
    const isRecord = hasSequence || header.subarray(0, MARKER.length).equals(MARKER);
    const ends = [size, size - FOOTER_BYTES];
    if (isRecord) ends.push(offset + RECORD_HEADER_BYTES + header.readUInt32LE(4));
    for (const until of ends) {
      // The checksum of no bytes is zero, as zeros that were there to be written over are: a torn header must not become a record.
      if (!hasSequence && until === offset + RECORD_HEADER_BYTES) continue;
      const to = from + 1;
      const rescued = await this.#rescue(offset, until, from, to);
      if (rescued === undefined || (await isLikeFooter(this.#file, rescued, footer, offset, this.#type)))
        continue;
      return { offset, end: until, from, to, reason: 'no record begins here', rescued };
    }
    return undefined;
  }

  async #damageOf(piece: DamagePiece): Promise<Damage> {
    const { offset, from, reason } = piece;
    const end = piece.to === undefined ? this.#end : piece.end;
    const to = piece.to ?? Math.max(this.#segment.next, from);
    return { offset, end, from, to, reason, rescued: await this.#rescue(offset, end, from, to) };
  }

  /** The file ends between two records. */
  #missingEnd(): Damage {
    const { offset, sequence: from } = this.scan;
    const to = Math.max(this.#segment.next, from);
    const reason = 'the segment ends too early';
    return { offset, end: this.#end, from, to, reason, rescued: undefined };
  }

  /**
   * Returns the record at a damaged place if only its header is damaged. Its length and its sequence are known from its
   * neighbours, so the checksum of its payload is enough. If that is what is damaged, the checksum of the header proves
   * the rest. But two flips at the same distance from the ends of what a CRC covers cancel out, so a checksum is taken for
   * damaged only if it is nearly right.
   */
  async #rescue(offset: number, end: number, from: number, to: number): Promise<Buffer | undefined> {
    const length = end - offset;
    if (to !== from + 1 || length < RECORD_HEADER_BYTES) return undefined;
    const was = Buffer.allocUnsafeSlow(length);
    if ((await this.#file.read(was, offset)) < length) return undefined;
    const payload = was.subarray(RECORD_HEADER_BYTES);
    const record = Buffer.allocUnsafeSlow(length);
    encodeRecord(record, 0, this.#type, payload, from, this.#header.salt, ((was[3] as number) & 1) === 1);
    if (record.readUInt32LE(16) === was.readUInt32LE(16)) return record;
    const isRestRight =
      record.subarray(0, 16).equals(was.subarray(0, 16)) && record.readUInt32LE(20) === was.readUInt32LE(20);
    return isRestRight && bitsOf(record.readUInt32LE(16) ^ was.readUInt32LE(16)) <= MOST_BITS
      ? record
      : undefined;
  }
}

/** If more bits than these are different, a checksum is not that of an intact payload. */
const MOST_BITS = 2;

function bitsOf(value: number): number {
  let bits = 0;
  for (let rest = value; rest !== 0; rest &= rest - 1) bits++;
  return bits;
}

/** Bytes before it are missing: it should be where the segment ends. */
function footerBeforeEnd({ offset, end, from, to }: OtherPiece): Damage {
  return { offset, end, from, to, reason: 'a footer before the end', rescued: undefined };
}

/** Joins damage that is too short for a record to its neighbour: together they may be long enough. */
function joinSmall(damages: Damage[]): void {
  for (let i = damages.length - 1; i > 0; i--) {
    const [before, damage] = damages.slice(i - 1, i + 1) as [Damage, Damage];
    const isSmall = [before, damage].some(({ offset, end }) => end - offset < RECORD_HEADER_BYTES);
    if (!isSmall || before.end !== damage.offset) continue;
    damages.splice(i - 1, 2, { ...before, end: damage.end, to: Math.max(before.to, damage.to) });
  }
}

/** A footer whose header is damaged must not become a record. */
async function isLikeFooter(
  file: File,
  rescued: Buffer,
  footer: Buffer,
  offset: number,
  type: number,
): Promise<boolean> {
  if (rescued.length !== footer.length) return false;
  const was = Buffer.alloc(RECORD_HEADER_BYTES);
  await file.read(was, offset);
  const hasItsPayload = rescued.subarray(RECORD_HEADER_BYTES).equals(footer.subarray(RECORD_HEADER_BYTES));
  return hasItsPayload || was[2] !== type;
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
