import type { FileSystem } from '../file-system.ts';
import { withFile } from '../with-file.ts';
import { seedOfCrc32 } from './crc32.ts';
import type { SegmentFile } from './recover-segments.ts';
import {
  decodeRecordHeader,
  isPayloadIntact,
  LOST,
  MARKER,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  type RecordHeader,
  type SegmentHeader,
} from './segment-format.ts';
import type { Segment } from './segment.ts';

/*
 * A segment without its header cannot be read, because nobody knows its salt. But a checksum can be calculated
 * backwards: what looks like the header of a record says with which salt it would be one. Most records are whole, so
 * most bytes agree on the right salt; whatever else looks like a record, in a message that holds a segment say, does not.
 */

interface Candidate {
  readonly offset: number;
  readonly sequence: number;
  bytes: number;
}

/** Finds out from its records what the header of a segment was. Changes nothing. */
export async function rescueHeader(
  files: FileSystem,
  { path, number, size }: SegmentFile,
  previous: Segment | undefined,
): Promise<SegmentHeader | undefined> {
  const bytes = Buffer.allocUnsafeSlow(size);
  const filled = await withFile(files, path, 'read', (file) => file.read(bytes, 0));
  const best = mostBytes(candidatesIn(bytes.subarray(0, filled)));
  if (best === undefined) return undefined;
  const [salt, { offset, sequence }] = best;
  const follows = previous?.number === number - 1 ? previous : undefined;
  const isFirst = offset === SEGMENT_HEADER_BYTES || follows === undefined || follows.next > sequence;
  return {
    number,
    salt,
    baseSequence: isFirst ? sequence : follows.next,
    previousEnd: follows?.end ?? 0,
    isAlwaysDurable: previous?.header?.isAlwaysDurable ?? true,
    createdWallMs: previous?.header?.createdWallMs ?? 0,
  };
}

/** By their salt: the first record, and how many bytes its records take. */
function candidatesIn(bytes: Buffer): Map<number, Candidate> {
  const candidates = new Map<number, Candidate>();
  let at = bytes.indexOf(MARKER, SEGMENT_HEADER_BYTES);
  while (at >= 0 && at + RECORD_HEADER_BYTES <= bytes.length) {
    const salt = seedOfCrc32(bytes, at, at + 20, bytes.readUInt32LE(at + 20));
    const record = decodeRecordHeader(bytes, at, salt);
    const end = record === undefined ? undefined : endOfRecord(bytes, at, record);
    if (record !== undefined && end !== undefined) {
      const candidate = candidates.get(salt) ?? { offset: at, sequence: record.sequence, bytes: 0 };
      candidate.bytes += end - at;
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

function mostBytes(candidates: ReadonlyMap<number, Candidate>): [number, Candidate] | undefined {
  return [...candidates].sort(([, a], [, b]) => b.bytes - a.bytes)[0];
}
