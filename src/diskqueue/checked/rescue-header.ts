import { type FileSystem, withFile } from '../../log/file-system.ts';
import type { SequenceRange } from '../ack-ranges.ts';
import { seedOfCrc32 } from '../../log/crc32.ts';
import type { SegmentFile, Segment } from '../../log/segment.ts';
import {
  decodeFooter,
  decodeRecordHeader,
  decodeSegmentHeader,
  FOOTER_BYTES,
  isPayloadIntact,
  LOST,
  MARKER,
  MESSAGE,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  type RecordHeader,
  type SegmentHeader,
} from '../../log/segment-format.ts';

/*
 * A segment without its header cannot be read, because nobody knows its salt. There are two copies of it, which are
 * hardly damaged in the same places. Where nothing of them is left, a checksum can be calculated backwards: what looks
 * like the header of a record says with which salt it would be one. Most records are whole, so most of them agree on the
 * right salt; what is damaged each has a salt of its own, and messages are not looked into.
 */

interface Candidate {
  /** The sequence of its first record. */
  readonly sequence: number;
  /** The sequence of the first message of the segment, from its footer. */
  base: number | undefined;
  /** How many records have that salt. */
  messages: number;
}

/** Finds out from its records what the header of a segment was. Changes nothing. */
export async function rescueHeader(
  files: FileSystem,
  { path, number, size }: SegmentFile,
  previous: Segment | undefined,
  next: SegmentFile | undefined,
): Promise<SegmentHeader | undefined> {
  const bytes = Buffer.allocUnsafeSlow(size);
  await withFile(files, path, 'read', (file) => file.read(bytes.fill(0), 0));
  const combined = combineCopies(bytes.subarray(0, SEGMENT_HEADER_BYTES));
  const between = { from: previous?.next ?? 0, to: next?.header?.baseSequence ?? Infinity };
  const isInPlace = combined?.number === number && combined.baseSequence >= between.from;
  if (isInPlace && combined.baseSequence <= between.to) return combined;
  const best = mostMessages(candidatesIn(bytes, between));
  if (best === undefined) return undefined;
  const [salt, candidate] = best;
  const follows = previous?.number === number - 1 ? previous : undefined;
  return {
    number,
    salt,
    // Its first record may be damaged, and its header not.
    baseSequence:
      decodeRecordHeader(bytes, SEGMENT_HEADER_BYTES, salt)?.sequence ?? baseOf(candidate, follows),
    previousEnd: follows?.end ?? 0,
    isAlwaysDurable: previous?.header?.isAlwaysDurable ?? true,
    createdWallMs: previous?.header?.createdWallMs ?? 0,
  };
}

/** Of the bytes in which the copies differ, either may be right. This many are tried in every combination. */
const MOST_DIFFERENCES = 14;

/** A header out of two copies that are damaged in different places. */
function combineCopies(copies: Buffer): SegmentHeader | undefined {
  const half = copies.length / 2;
  const header = Buffer.from(copies.subarray(0, half));
  const places = [...header.keys()].filter((at) => header[at] !== copies[half + at]);
  if (places.length > MOST_DIFFERENCES) return undefined;
  for (let choice = 0; choice < 2 ** places.length; choice++) {
    places.forEach((at, i) => {
      header[at] = copies[choice & (1 << i) ? half + at : at] as number;
    });
    const found = decodeSegmentHeader(header);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** If its first record is damaged, and its footer too, the segment before may know; or there was at least one message. */
function baseOf({ sequence, base }: Candidate, previous: Segment | undefined): number {
  if (base !== undefined && base <= sequence) return base;
  return previous !== undefined && previous.next < sequence ? previous.next : Math.max(sequence - 1, 1);
}

/** By their salt. Records of messages that are others than those between the neighbours are of a misplaced file. */
function candidatesIn(bytes: Buffer, between: SequenceRange): Map<number, Candidate> {
  const candidates = new Map<number, Candidate>();
  let at = bytes.indexOf(MARKER, SEGMENT_HEADER_BYTES);
  while (at >= 0 && at + RECORD_HEADER_BYTES <= bytes.length) {
    const salt = seedOfCrc32(bytes, at, at + 20, bytes.readUInt32LE(at + 20));
    const record = decodeRecordHeader(bytes, at, salt);
    const end = record === undefined ? undefined : endOfRecord(bytes, at, record);
    if (record !== undefined && end !== undefined) {
      const { sequence } = record;
      const isMessage = record.kind === MESSAGE;
      const base = isMessage || end - at !== FOOTER_BYTES ? undefined : baseIn(bytes, at, sequence);
      const after = isMessage ? sequence + 1 : sequence;
      if ((base ?? sequence) >= between.from && after <= between.to) {
        const candidate = candidates.get(salt) ?? { sequence, base: undefined, messages: 0 };
        if (isMessage) candidate.messages++;
        candidate.base = base ?? candidate.base;
        candidates.set(salt, candidate);
      }
    }
    at = bytes.indexOf(MARKER, end ?? at + 1);
  }
  return candidates;
}

/** The sequence of the first message of the segment, as a footer says it. */
function baseIn(bytes: Buffer, footer: number, sequence: number): number {
  const payload = bytes.subarray(footer + RECORD_HEADER_BYTES, footer + FOOTER_BYTES);
  return sequence - decodeFooter(payload).messages;
}

/** Undefined if it is no record. */
function endOfRecord(bytes: Buffer, at: number, record: RecordHeader): number | undefined {
  const payload = at + RECORD_HEADER_BYTES;
  const end = payload + record.length;
  if (record.kind === LOST) return undefined; // there is nothing in it that could be checked
  if (end > bytes.length || !Number.isSafeInteger(record.sequence)) return undefined;
  return isPayloadIntact(bytes.subarray(payload, end), record) ? end : undefined;
}

function mostMessages(candidates: ReadonlyMap<number, Candidate>): [number, Candidate] | undefined {
  return [...candidates].sort(([, a], [, b]) => b.messages - a.messages)[0];
}
