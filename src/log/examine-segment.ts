import { type File, type FileSystem, withFile } from './file-system.ts';
import {
  encodeMessage,
  encodeSegmentHeader,
  FOOTER_BYTES,
  MESSAGE,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  type SegmentHeader,
  encodedFooter,
} from './segment-format.ts';
import { SegmentScan, type DamagePiece, type FooterPiece, type SegmentPiece } from './segment-reader.ts';
import type { Segment } from './segment.ts';

/** What is wrong between two records of a segment. */
export interface Stretch {
  readonly offset: number;
  readonly end: number;
  /** The messages that were there: `from` up to, and not including, `to`. */
  readonly from: number;
  readonly to: number;
  readonly reason: string;
  /** The record that was there, if only its header is damaged. */
  readonly rescued: Buffer | undefined;
}

/** What has to be done to a segment, for it to be as it should be. */
export interface SegmentState {
  readonly header: SegmentHeader;
  /** Where its records end, and the sequence after that of its last one. */
  readonly end: number;
  readonly next: number;
  readonly stretches: readonly Stretch[];
  /** Of the two copies of the header, how many are whole. */
  readonly wholeHeaders: number;
  /** Whether its footer, and nothing more, comes after its records. */
  readonly isSealed: boolean;
  readonly size: number;
}

/** Reads all of a segment. Changes nothing. @param successor - the one that says where it ends, if there is one. */
export async function examineSegment(
  files: FileSystem,
  segment: Segment,
  found: SegmentHeader,
  successor: Segment | undefined,
  onPieces: (pieces: readonly SegmentPiece[]) => void,
): Promise<SegmentState> {
  const size = await files.size(segment.path);
  const header = { ...found, number: segment.number };
  return withFile(files, segment.path, 'read', async (file) => {
    const wanted = Math.max(successor?.header?.previousEnd ?? segment.end, SEGMENT_HEADER_BYTES);
    const scan = new SegmentScan(file, header, SEGMENT_HEADER_BYTES, header.baseSequence);
    const stretches: Stretch[] = [];
    const readable = Math.min(wanted, size);
    for (let pieces = await scan.next(readable); pieces.length > 0; pieces = await scan.next(readable)) {
      onPieces(pieces);
      for (const piece of pieces) {
        if (piece.kind === 'damage') stretches.push(await stretchOf(file, piece, segment, header, wanted));
        else if (piece.kind === 'footer') stretches.push(strayFooter(piece));
      }
    }
    if (stretches.at(-1)?.end !== wanted) stretches.push(...missingEnd(scan, segment, wanted));
    joinSmall(stretches);
    const tail = successor === undefined ? await rescuedTail(file, scan, stretches, header, size) : undefined;
    const end = tail?.end ?? wanted;
    const next = Math.max(scan.sequence, stretches.at(-1)?.to ?? 0);
    const footer = encodedFooter(header, end, next);
    return {
      ...{ header, end, next, stretches, size },
      wholeHeaders: await wholeHeaders(file, header),
      isSealed: size === end + footer.length && (await holds(file, footer, end)),
    };
  });
}

async function stretchOf(
  file: File,
  piece: DamagePiece,
  segment: Segment,
  header: SegmentHeader,
  wanted: number,
): Promise<Stretch> {
  const { offset, from, reason } = piece;
  const end = piece.to === undefined ? wanted : piece.end;
  const to = piece.to ?? Math.max(segment.next, from);
  return { offset, end, from, to, reason, rescued: await rescueRecord(file, offset, end, from, to, header) };
}

/** Bytes before it are missing: it should be where the segment ends, and there another one will be. */
function strayFooter({ offset, end, sequence }: FooterPiece): Stretch {
  return { offset, end, from: sequence, to: sequence, reason: 'a footer before the end', rescued: undefined };
}

/** Nothing could stand in a stretch that is shorter than a record; with the one before it, it may be long enough. */
function joinSmall(stretches: Stretch[]): void {
  for (let i = stretches.length - 1; i > 0; i--) {
    const [before, stretch] = stretches.slice(i - 1, i + 1) as [Stretch, Stretch];
    const isSmall = [before, stretch].some(({ offset, end }) => end - offset < RECORD_HEADER_BYTES);
    if (!isSmall || before.end !== stretch.offset) continue;
    stretches.splice(i - 1, 2, { ...before, end: stretch.end, to: Math.max(before.to, stretch.to) });
  }
}

/** The file ends between two records. */
function missingEnd({ offset, sequence }: SegmentScan, { next }: Segment, wanted: number): Stretch[] {
  if (offset >= wanted) return [];
  const to = Math.max(next, sequence);
  return [
    { offset, end: wanted, from: sequence, to, reason: 'the segment ends too early', rescued: undefined },
  ];
}

/**
 * What is behind the last record of the last segment is torn, or damage of which nobody can tell what it was; unless it
 * is a message whose header alone is damaged, and a footer at most.
 */
async function rescuedTail(
  file: File,
  { offset: end, sequence }: SegmentScan,
  stretches: Stretch[],
  header: SegmentHeader,
  size: number,
): Promise<Stretch | undefined> {
  const last = stretches.at(-1);
  const unknown = last?.end === end && last.from === last.to ? last : undefined;
  const offset = unknown?.offset ?? end;
  const footer = encodedFooter(header, offset, sequence);
  for (const until of [size, size - FOOTER_BYTES]) {
    const rescued = await rescueRecord(file, offset, until, sequence, sequence + 1, header);
    if (rescued === undefined || (await isLikeFooter(file, rescued, footer, offset))) continue;
    if (unknown !== undefined) stretches.pop();
    const reason = 'no record begins here';
    const tail = { offset, end: until, from: sequence, to: sequence + 1, reason, rescued };
    stretches.push(tail);
    return tail;
  }
  return undefined;
}

/** A footer whose header is damaged must not become a message. */
async function isLikeFooter(file: File, rescued: Buffer, footer: Buffer, offset: number): Promise<boolean> {
  if (rescued.length !== footer.length) return false;
  const was = Buffer.alloc(RECORD_HEADER_BYTES);
  await file.read(was, offset);
  const hasItsPayload = rescued.subarray(RECORD_HEADER_BYTES).equals(footer.subarray(RECORD_HEADER_BYTES));
  return hasItsPayload || was[2] !== MESSAGE;
}

/** A checksum of which more bits are different is not that of a payload which is whole. */
const MOST_BITS = 2;

/**
 * A record whose header is damaged, if nothing else of it is. Its place, length and sequence are known from its
 * neighbours, so the checksum of its payload is enough. If that is what is damaged, the one of the header tells. But two
 * flips as far from the ends of what they are in cancel out in that one, so only a checksum that is nearly right is
 * believed to be damaged.
 */
async function rescueRecord(
  file: File,
  offset: number,
  end: number,
  from: number,
  to: number,
  { salt }: SegmentHeader,
): Promise<Buffer | undefined> {
  const length = end - offset;
  if (to !== from + 1 || length < RECORD_HEADER_BYTES) return undefined;
  const was = Buffer.allocUnsafeSlow(length);
  if ((await file.read(was, offset)) < length) return undefined;
  const payload = was.subarray(RECORD_HEADER_BYTES);
  const record = Buffer.allocUnsafeSlow(length);
  encodeMessage(record, 0, payload, from, salt, ((was[3] as number) & 1) === 1);
  if (record.readUInt32LE(16) === was.readUInt32LE(16)) return record;
  const isRestRight =
    record.subarray(0, 16).equals(was.subarray(0, 16)) && record.readUInt32LE(20) === was.readUInt32LE(20);
  const differentBits = bitsOf(record.readUInt32LE(16) ^ was.readUInt32LE(16));
  return isRestRight && differentBits <= MOST_BITS ? record : undefined;
}

function bitsOf(value: number): number {
  let bits = 0;
  for (let rest = value; rest !== 0; rest &= rest - 1) bits++;
  return bits;
}

async function wholeHeaders(file: File, header: SegmentHeader): Promise<number> {
  const copies = encodeSegmentHeader(header);
  const half = copies.length / 2;
  const first = await holds(file, copies.subarray(0, half), 0);
  const second = await holds(file, copies.subarray(half), half);
  return Number(first) + Number(second);
}

async function holds(file: File, expected: Buffer, position: number): Promise<boolean> {
  const bytes = Buffer.alloc(expected.length);
  return (await file.read(bytes, position)) === bytes.length && bytes.equals(expected);
}
