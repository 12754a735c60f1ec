import type { File } from '../file-system.ts';
import {
  decodeFooter,
  decodeRecordHeader,
  encodeFooter,
  FOOTER,
  FOOTER_BYTES,
  isPayloadIntact,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  type SegmentFooter,
  type SegmentHeader,
} from './segment-format.ts';

/** A footer that stands somewhere in a segment. */
export interface FoundFooter extends SegmentFooter {
  /** The one that the next message would have had. */
  readonly sequence: number;
}

/** @returns undefined if there is no whole footer at `offset`. Whether it is true is another question. */
export async function readFooter(
  file: File,
  { salt }: SegmentHeader,
  offset: number,
): Promise<FoundFooter | undefined> {
  const bytes = Buffer.alloc(FOOTER_BYTES);
  if (offset < SEGMENT_HEADER_BYTES || (await file.read(bytes, offset)) < FOOTER_BYTES) return undefined;
  const record = decodeRecordHeader(bytes, 0, salt);
  const payload = bytes.subarray(RECORD_HEADER_BYTES);
  if (record?.kind !== FOOTER || record.length !== payload.length) return undefined;
  return isPayloadIntact(payload, record)
    ? { sequence: record.sequence, ...decodeFooter(payload) }
    : undefined;
}

/** @param end - of the records; @param next - the sequence after that of the last one. */
export function encodedFooter({ baseSequence, salt }: SegmentHeader, end: number, next: number): Buffer {
  return encodeFooter(footerOf(baseSequence, end, next), next, salt);
}

/**
 * What the footer of a segment says that ends there. Where bytes are missing, there may be fewer of them than so many
 * messages would have needed: then it says 0.
 */
export function footerOf(base: number, end: number, next: number): SegmentFooter {
  const messages = next - base;
  return { messages, payloadBytes: Math.max(end - SEGMENT_HEADER_BYTES - messages * RECORD_HEADER_BYTES, 0) };
}
