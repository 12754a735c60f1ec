import {
  DATA,
  encodeFooter,
  encodeRecord,
  encodeSegmentHeader,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  type SegmentHeader,
} from '../../src/log/segment.ts';

/** Sequence of the first record of a segment that a test makes. */
export const BASE = 100;

export const HEADER: SegmentHeader = {
  ...{ number: 1, salt: 12_345, baseSequence: BASE, previousEnd: 0, isAlwaysDurable: true, createdWallMs: 0 },
};

export interface Segment {
  /** Header and records. */
  readonly bytes: Buffer;
  readonly footer: Buffer;
  readonly payloads: readonly Buffer[];
  /** Offset of each record, and of the footer behind them. */
  readonly offsets: readonly number[];
}

/** Encodes a segment. @param synced - number of records that were synced before the others were written. */
export function segmentOf(payloads: readonly Buffer[], synced = -1): Segment {
  const offsets = [SEGMENT_HEADER_BYTES];
  for (const { length } of payloads) offsets.push((offsets.at(-1) as number) + RECORD_HEADER_BYTES + length);
  const bytes = Buffer.alloc(offsets.at(-1) as number);
  encodeSegmentHeader(HEADER).copy(bytes);
  for (const [i, payload] of payloads.entries())
    encodeRecord(bytes, offsets[i] as number, DATA, payload, BASE + i, HEADER.salt, i <= synced);
  const footer = encodeFooter(HEADER, bytes.length, BASE + payloads.length);
  return { bytes, footer, payloads, offsets };
}
