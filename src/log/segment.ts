import { RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES, type SegmentHeader } from './segment-format.ts';

/** Sequence of the first record of a log. */
export const FIRST_SEQUENCE = 1;

/** One file of a log, as the log knows it. */
export interface Segment {
  readonly path: string;
  readonly number: number;
  /** Undefined if both copies of it are damaged: nothing in the file can be read then. */
  readonly header: SegmentHeader | undefined;
  /** Sequence of its first record. */
  readonly base: number;
  /** Where its readable records end, in bytes. A footer may follow, or bytes that were never promised. */
  end: number;
  /** The sequence after that of its last readable record. */
  next: number;
  /** Whether the file was removed by another program while the log is open. */
  isGone?: boolean;
  /** The last write, while it is still in memory: for a reader that keeps up. */
  tail?: { readonly offset: number; readonly bytes: Buffer } | undefined;
}

/** Where a record begins. */
export interface LogPosition {
  /** Number of the segment. */
  readonly segment: number;
  readonly offset: number;
  readonly sequence: number;
}

/** What an append has written. */
export interface AppendResult {
  /** Number of records. */
  readonly appended: number;
  /** Why the next record was not written. */
  readonly error?: unknown;
}

/** Damage that was found, and stepped over. */
export interface CorruptionEvent {
  /** Path of the file. */
  readonly file: string;
  /** Where in the file it begins, in bytes. */
  readonly offset: number;
  /** Number of bytes that were stepped over. */
  readonly bytes: number;
  /** The first message that is lost; undefined if none is, or if it is not known. */
  readonly firstSequence?: number;
  /** The last message that is lost; undefined if `firstSequence` is. */
  readonly lastSequence?: number;
  /** A text for people. */
  readonly reason: string;
}

/** With more digits a number would not be exact: such a file does not belong to a log. */
const NAME = /^(.+)\.(\d{10,15})\.segment$/s;

/** Names sort as their numbers do. */
export function segmentFileName(log: string, number: number): string {
  return `${log}.${String(number).padStart(10, '0')}.segment`;
}

/** @returns undefined if it is not the name of a segment. */
export function parseSegmentFileName(name: string): { log: string; number: number } | undefined {
  const match = NAME.exec(name);
  const [, log, digits] = match ?? [];
  return log === undefined || digits === undefined ? undefined : { log, number: Number(digits) };
}

/** Where the first record of a segment is. */
export function firstOf({ number, base }: Segment): LogPosition {
  return { segment: number, offset: SEGMENT_HEADER_BYTES, sequence: base };
}

/** Where the record after one of that length is, in the same segment. */
export function positionAfter({ segment, offset, sequence }: LogPosition, length: number): LogPosition {
  return { segment, offset: offset + RECORD_HEADER_BYTES + length, sequence: sequence + 1 };
}

/** Bytes of the payloads from a position of a segment to its end, as if there were no damage. */
export function payloadBytes(
  { header, end, next }: Segment,
  { offset, sequence }: { readonly offset: number; readonly sequence: number },
): number {
  return header === undefined ? 0 : end - offset - (next - sequence) * RECORD_HEADER_BYTES;
}
