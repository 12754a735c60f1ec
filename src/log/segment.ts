import { SEGMENT_HEADER_BYTES, type SegmentHeader } from './segment-format.ts';

/** What the log knows of one of its files. */
export interface Segment {
  readonly path: string;
  readonly number: number;
  /** Undefined if both copies of it are damaged: nothing in the file can be read then. */
  readonly header: SegmentHeader | undefined;
  /** The sequence of its first message. */
  readonly base: number;
  /** Where its readable records end, in bytes. A footer may follow, or what was never promised. */
  end: number;
  /** The sequence after that of its last readable message. */
  next: number;
  /** The file is shorter than the next segment says: messages are missing, and nobody knows yet how many. */
  readonly isCut?: boolean;
  /** Somebody has removed the file while the queue is open. */
  isGone?: boolean;
  /** Damage that was found, by offset: what was found when the queue was opened is not reported again when it is read. */
  readonly knownDamage: Set<number>;
  /** What was written last, while it is still in memory: for a reader that keeps up. */
  tail?: { readonly offset: number; readonly bytes: Buffer } | undefined;
}

/** A file of a queue whose records have not been read yet. */
export interface SegmentFile {
  readonly path: string;
  readonly number: number;
  readonly size: number;
  readonly header: SegmentHeader | undefined;
  /** The content of a valid footer: where the records end, in bytes, and the sequence after that of the last one. */
  readonly sealed: { readonly end: number; readonly next: number } | undefined;
}

/** With more digits a number would not be exact, nor the next one another: such a file is not ours. */
const NAME = /^(.+)\.(\d{10,15})\.segment$/s;

/** Names sort as their numbers do. */
export function segmentFileName(queue: string, number: number): string {
  return `${queue}.${String(number).padStart(10, '0')}.segment`;
}

/** @returns undefined if it is not the name of a segment. */
export function parseSegmentFileName(name: string): { queue: string; number: number } | undefined {
  const match = NAME.exec(name);
  const [, queue, digits] = match ?? [];
  return queue === undefined || digits === undefined ? undefined : { queue, number: Number(digits) };
}

/** A segment that was just made: nothing in it is readable. */
export function emptySegment(path: string, header: SegmentHeader): Segment {
  return {
    path,
    number: header.number,
    header,
    base: header.baseSequence,
    end: SEGMENT_HEADER_BYTES,
    next: header.baseSequence,
    knownDamage: new Set(),
  };
}

/** Sequence of the first record of a log. */
export const FIRST_SEQUENCE = 1;

/** Where a record begins. */
export interface LogPosition {
  /** Number of the segment. */
  readonly segment: number;
  readonly offset: number;
  readonly sequence: number;
}

export interface AppendResult {
  readonly appended: number;
  readonly error?: unknown;
}

/** Damage that was found, and stepped over. */
export interface CorruptionEvent {
  /** Path of the file. */
  readonly file: string;
  /** Where in the file it begins, in bytes. */
  readonly offset: number;
  /** How much of the file was stepped over. */
  readonly bytes: number;
  /** The first message that is lost; undefined if none is, or nobody can tell. */
  readonly firstSequence?: number;
  /** The last one, and undefined with the first. */
  readonly lastSequence?: number;
  /** For people. */
  readonly reason: string;
}
