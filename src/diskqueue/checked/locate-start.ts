import type { FileSystem } from '../../log/file-system.ts';
import type { AckedRange } from '../ack-ranges.ts';
import type { LogPosition } from '../../log/segment.ts';
import { RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES } from '../../log/segment-format.ts';
import { SegmentReader, type DamagePiece, type SegmentPiece } from '../../log/segment-reader.ts';
import type { Segment } from '../../log/segment.ts';

/** Where reading begins. */
export interface LogStart {
  /** The first message that is not acknowledged, or one not long before it; undefined if there is none. */
  readonly position: LogPosition | undefined;
  /** Bytes of the messages from the first one that is not acknowledged to the end. */
  readonly bytes: number;
}

/** Finds the first message that is not acknowledged. Reads from the hint, or else the beginning of its segment. */
export async function locateStart(
  files: FileSystem,
  segments: readonly Segment[],
  prefix: number,
  hint: LogPosition | undefined,
): Promise<LogStart> {
  const at = segments.findIndex(({ next }) => next > prefix);
  const segment = segments[at];
  if (segment === undefined) return { position: undefined, bytes: 0 };
  const isUsable = hint !== undefined && (await isRight(files, segment, prefix, hint));
  const start = await scanTo(files, segment, prefix, isUsable ? hint : firstOf(segment));
  const later = segments.slice(at + 1).map((other) => payloadBytes(other, firstOf(other)));
  return { ...start, bytes: later.reduce((sum, bytes) => sum + bytes, start.bytes) };
}

/**
 * Finds out the bytes of acknowledged messages where nobody knows them: some of these are missing, perhaps. Reads two
 * segments at most for each such range, and nothing for the others.
 */
export async function measureUnknown(
  files: FileSystem,
  segments: readonly Segment[],
  ranges: readonly AckedRange[],
): Promise<void> {
  const cut = segments.filter(({ isCut }) => isCut === true);
  for (const range of ranges) {
    const isCut = cut.some(({ base, next }) => range.from < next && range.to > base);
    if (!isCut && !Number.isNaN(range.bytes)) continue;
    const from = await locateStart(files, segments, range.from, undefined);
    const to = await locateStart(files, segments, range.to, undefined);
    range.bytes = from.bytes - to.bytes;
  }
}

export function firstOf({ number, base }: Segment): LogPosition {
  return { segment: number, offset: SEGMENT_HEADER_BYTES, sequence: base };
}

/** A hint is believed if a message of that sequence is there, and not after the first one that is needed. */
async function isRight(
  files: FileSystem,
  segment: Segment,
  prefix: number,
  hint: LogPosition,
): Promise<boolean> {
  if (hint.segment !== segment.number || hint.sequence > prefix) return false;
  if (hint.offset < SEGMENT_HEADER_BYTES || hint.offset >= segment.end) return false;
  const reader = await SegmentReader.open(files, segment, hint);
  try {
    const [piece] = await reader.next();
    return piece?.kind === 'message';
  } finally {
    await reader.close();
  }
}

/** Goes piece by piece to the message. */
async function scanTo(
  files: FileSystem,
  segment: Segment,
  prefix: number,
  from: LogPosition,
): Promise<{ position: LogPosition; bytes: number }> {
  const reader = await SegmentReader.open(files, segment, from);
  try {
    let position = from;
    let passed = 0;
    for (let pieces = await reader.next(); pieces.length > 0; pieces = await reader.next()) {
      for (const piece of pieces) {
        if (sequenceAfter(piece, segment) > prefix) continue;
        passed += bytesOf(piece, segment);
        position = {
          segment: segment.number,
          offset: piece.end,
          sequence: sequenceAfter(piece, segment),
        };
      }
      if (reader.sequence > prefix) break;
    }
    return { position, bytes: payloadBytes(segment, from) - passed };
  } finally {
    await reader.close();
  }
}

/** Bytes of the messages from a place in a segment to its end, counted as if all of it were messages. */
export function payloadBytes({ header, end, next }: Segment, { offset, sequence }: LogPosition): number {
  return header === undefined ? 0 : end - offset - (next - sequence) * RECORD_HEADER_BYTES;
}

function sequenceAfter(piece: SegmentPiece, { next }: Segment): number {
  return piece.kind === 'message' ? piece.sequence + 1 : (piece.to ?? next);
}

function bytesOf(piece: SegmentPiece, segment: Segment): number {
  return piece.kind === 'message' ? piece.payload.length : damagedBytes(piece, segment);
}

/** What was counted as there instead: as if there were messages. */
export function damagedBytes(
  { offset, end, from, to }: Pick<DamagePiece, 'offset' | 'end' | 'from' | 'to'>,
  { next }: Pick<Segment, 'next'>,
): number {
  return end - offset - ((to ?? next) - from) * RECORD_HEADER_BYTES;
}
