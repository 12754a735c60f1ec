import type { FileSystem } from '../file-system.ts';
import { withFile } from '../with-file.ts';
import { seedOfCrc32 } from './crc32.ts';
import type { SegmentFile } from './recover-segments.ts';
import {
  decodeFooter,
  decodeRecordHeader,
  FOOTER_BYTES,
  isPayloadIntact,
  LOST,
  MARKER,
  MESSAGE,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  type RecordHeader,
  type SegmentHeader,
} from './segment-format.ts';
import type { Segment } from './segment.ts';

/*
 * A segment without its header cannot be read, because nobody knows its salt. But a checksum can be calculated
 * backwards: what looks like the header of a record says with which salt it would be one. Most records are whole, so
 * most of them agree on the right salt; what is damaged each has a salt of its own, and messages are not looked into.
 */

interface Candidate {
  /** Where its first record is, and the sequence of that. */
  readonly offset: number;
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
): Promise<SegmentHeader | undefined> {
  const bytes = Buffer.allocUnsafeSlow(size);
  const filled = await withFile(files, path, 'read', (file) => file.read(bytes, 0));
  const best = mostMessages(candidatesIn(bytes.subarray(0, filled)));
  if (best === undefined) return undefined;
  const [salt, candidate] = best;
  const follows = previous?.number === number - 1 ? previous : undefined;
  return {
    number,
    salt,
    baseSequence: baseOf(candidate, follows),
    previousEnd: follows?.end ?? 0,
    isAlwaysDurable: previous?.header?.isAlwaysDurable ?? true,
    createdWallMs: previous?.header?.createdWallMs ?? 0,
  };
}

/** If its first record is damaged, and its footer too, the segment before may know; or there was at least one message. */
function baseOf({ offset, sequence, base }: Candidate, previous: Segment | undefined): number {
  if (base !== undefined && base <= sequence) return base;
  if (offset === SEGMENT_HEADER_BYTES) return sequence;
  return previous !== undefined && previous.next < sequence ? previous.next : Math.max(sequence - 1, 1);
}

/** By their salt. */
function candidatesIn(bytes: Buffer): Map<number, Candidate> {
  const candidates = new Map<number, Candidate>();
  let at = bytes.indexOf(MARKER, SEGMENT_HEADER_BYTES);
  while (at >= 0 && at + RECORD_HEADER_BYTES <= bytes.length) {
    const salt = seedOfCrc32(bytes, at, at + 20, bytes.readUInt32LE(at + 20));
    const record = decodeRecordHeader(bytes, at, salt);
    const end = record === undefined ? undefined : endOfRecord(bytes, at, record);
    if (record !== undefined && end !== undefined) {
      const { sequence } = record;
      const candidate = candidates.get(salt) ?? { offset: at, sequence, base: undefined, messages: 0 };
      if (record.kind === MESSAGE) candidate.messages++;
      else if (end - at === FOOTER_BYTES) {
        candidate.base = sequence - decodeFooter(bytes.subarray(at + RECORD_HEADER_BYTES, end)).messages;
      }
      candidates.set(salt, candidate);
    }
    at = bytes.indexOf(MARKER, end ?? at + 1);
  }
  return candidates;
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
