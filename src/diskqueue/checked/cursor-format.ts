import {
  FIRST_SEQUENCE,
  type LogPosition,
  type LostPart,
  type Segment,
  readUInt64,
  segmentFileName,
  shortCrc32,
  writeUInt64,
} from '../../log/segment.ts';
import { AckRanges, UNKNOWN_BYTES, type AckedRange } from '../ack-ranges.ts';
import { hasZeroSectorIn } from '../../log/find-end.ts';

/*
 * The bytes of the cursor: which messages are acknowledged, and where the log ends.
 *
 *      0       magic 8 · zero 56
 *      64      slot A ┐  The prefix, overwritten in turns: one of them is intact on the disk, whatever happens to the
 *      4096    slot B ┘  other. They are in different blocks.
 *      8192    ranges, one record after the other
 *      65536   a new file ends here: all bytes up to its end are written when it is made
 *
 *      range   CRC of the rest 4 · zero 4 · from 8 · to 8 · bytes 8 · zero 32
 *      slot    CRC of the rest 4 · flags 4 · zero 8 · to 8 · segment 8 · offset 8 · sequence 8 · last segment 8 · end 8
 *
 * WHY so. A full disk has space again when segments are deleted, and a segment is deleted when the prefix behind it is on
 * the disk. So the prefix must be writable when nothing else is: overwriting bytes of a file needs no space on file systems
 * that write in place. Records are aligned, so that no sector of a disk holds a part of one.
 *
 * Every record stays true, because an acknowledged message stays acknowledged: the content of the file is the union of its
 * records, in any order. A damaged record is skipped. A range that the prefix has reached is overwritten by the next one,
 * so the file grows only while more ranges are beyond the prefix than fit in it, and is rewritten when it has grown enough.
 *
 * Version 1 had records of 48 bytes from offset 8 on, which were never overwritten. It is read, and rewritten.
 */

const MAGIC_1 = Buffer.from([0x89, 0x45, 0x53, 0x43, 0x43, 0x0d, 0x0a, 0x1a]);
export const RECORD_BYTES = 64;
const RECORD_BYTES_1 = 48;
/** The magic, and zeros. */
const HEAD = Buffer.alloc(RECORD_BYTES);
HEAD.set([0x89, 0x45, 0x53, 0x43, 0x44, 0x0d, 0x0a, 0x1a]);
export const SLOTS = [64, 4096] as const;
/** Offset of the first range. */
export const RANGES = 8192;
/** Space for 896 ranges, in bytes. */
export const RESERVE = 64 * 1024 - RANGES;
/** Flag of a slot: nothing was added to the last segment later. */
const ENDED = 1;
/** Where the log ends, according to the cursor: so that the removal of a segment by another program is noticed. */
export interface LogEnd {
  /** Number of the last segment; 0 if there was none. */
  readonly segment: number;
  /** Whether `next` is where that segment ends for good. */
  readonly isEnded: boolean;
  /** All messages before this one were on the disk. */
  readonly next: number;
}

/** Content of a slot. */
export interface CursorPrefix {
  /** The first message that is not acknowledged. */
  readonly prefix: number;
  /** Position of a message that is not after that one, and not far from it. */
  readonly hint: LogPosition | undefined;
  readonly end: LogEnd;
}

/** Content of a cursor. */
export interface CursorState {
  readonly acks: AckRanges;
  readonly hint: LogPosition | undefined;
  readonly end: LogEnd;
  /** Whether there was a cursor. */
  readonly isThere: boolean;
  /** Parts that are not records: a crash may leave one at the end. */
  readonly damages: readonly CursorDamage[];
}

interface CursorDamage {
  readonly offset: number;
  readonly bytes: number;
  /** Whether an unfinished write may have left it: it ends early, or has a sector of zeros. */
  readonly isTorn: boolean;
}

const NO_END: LogEnd = { segment: 0, isEnded: false, next: 0 };

/** Combines two ends that are both true. */
export function laterEnd(a: LogEnd, b: LogEnd): LogEnd {
  const segment = Math.max(a.segment, b.segment);
  const isEnded = [a, b].some((end) => end.isEnded && end.segment === segment);
  return { segment, isEnded, next: Math.max(a.next, b.next) };
}

/**
 * Returns which messages the cursor lists and the end of the log lacks: those `from` up to `to`; none, if the last segment was
 * removed and its messages are not known.
 */
export function missingAtEnd(
  { folder, name }: { readonly folder: string; readonly name: string },
  segments: readonly Segment[],
  end: LogEnd,
  acks: AckRanges,
): (LostPart & { readonly path: string }) | undefined {
  const last = segments.at(-1);
  const from = Math.max(last?.next ?? 0, acks.prefix);
  const isThere = last !== undefined && last.number >= end.segment;
  const reason = isThere ? 'messages at the end of the segment are missing' : 'the segment is missing';
  const offset = isThere ? last.end : 0;
  const isKnown = end.next > from && acks.nextAfter(from) < end.next;
  if (!isKnown && (isThere || end.isEnded || end.segment === 0)) return undefined;
  const path = `${folder}/${segmentFileName(name, end.segment)}`;
  return { path, offset, end: offset, from, to: isKnown ? end.next : from, reason };
}

/** Whether there is a cursor without damage: then no acknowledgement is missing in it. */
export function isWhole({ isThere, damages }: CursorState): boolean {
  return isThere && damages.length === 0;
}

/** Sequence of the first message that is needed; undefined if the cursor is missing or damaged. */
export function firstExpected(cursor: CursorState): number | undefined {
  return isWhole(cursor) ? cursor.acks.prefix : undefined;
}

/** Encodes a whole file, in which all unused space repeats the prefix. */
export function encodeCursor(ranges: readonly AckedRange[], prefix: CursorPrefix): Buffer {
  const record = Buffer.alloc(RECORD_BYTES);
  encodePrefix(record, 0, prefix);
  const bytes = Buffer.alloc(RANGES + RECORD_BYTES * ranges.length + RESERVE, record);
  HEAD.copy(bytes);
  ranges.forEach((range, i) => {
    encodeRange(bytes, RANGES + i * RECORD_BYTES, range);
  });
  return bytes;
}

export function encodeRange(record: Buffer, at: number, { from, to, bytes }: AckedRange): void {
  record.fill(0, at, at + RECORD_BYTES);
  writeUInt64(record, from, at + 8);
  writeUInt64(record, to, at + 16);
  if (bytes >= 0) writeUInt64(record, bytes, at + 24);
  else record.fill(0xff, at + 24, at + 32);
  encodeCrc(record, at);
}

export function encodePrefix(record: Buffer, at: number, { prefix, hint, end }: CursorPrefix): void {
  record.writeUInt32LE(end.isEnded ? ENDED : 0, at + 4);
  writeUInt64(record, prefix, at + 16);
  writeUInt64(record, hint?.segment ?? 0, at + 24);
  writeUInt64(record, hint?.offset ?? 0, at + 32);
  writeUInt64(record, hint?.sequence ?? 0, at + 40);
  writeUInt64(record, end.segment, at + 48);
  writeUInt64(record, end.next, at + 56);
  encodeCrc(record, at);
}

function encodeCrc(record: Buffer, at: number): void {
  record.writeUInt32LE(shortCrc32(record, at + 4, at + RECORD_BYTES, 0), at);
}

interface DecodedCursor {
  readonly state: CursorState;
  /** The intact ones. */
  readonly slots: readonly CursorPrefix[];
  /** Offset behind the last range that is not covered by the slots. */
  readonly liveEnd: number;
}

export function decodeCursor(bytes: Buffer): DecodedCursor {
  const isOld = MAGIC_1.equals(bytes.subarray(0, MAGIC_1.length));
  const step = isOld ? RECORD_BYTES_1 : RECORD_BYTES;
  const damages: CursorDamage[] = [];
  if (bytes.length > 0 && !isOld && !HEAD.equals(bytes.subarray(0, HEAD.length))) {
    damages.push({ offset: 0, bytes: Math.min(bytes.length, HEAD.length), isTorn: false });
  }
  const acks = new AckRanges(FIRST_SEQUENCE);
  const slots: CursorPrefix[] = [];
  let latest: CursorPrefix = { prefix: 0, hint: undefined, end: NO_END };
  let isThere = false;
  let liveEnd = RANGES;
  for (let at = isOld ? MAGIC_1.length : step; at < bytes.length; at += step) {
    const record = bytes.subarray(at, at + step);
    if (!isWholeRecord(record, step)) {
      const isTorn = record.length < step || hasZeroSectorIn(record, at);
      damages.push({ offset: at, bytes: record.length, isTorn });
      continue;
    }
    isThere = true;
    const from = readUInt64(record, 8);
    const to = readUInt64(record, 16);
    acks.add(from, to, from === 0 ? 0 : decodeBytes(record));
    if (from > 0 && to > latest.prefix) liveEnd = at + step;
    if (from > 0) continue;
    const prefix = decodePrefix(record);
    if (!isOld && (at === SLOTS[0] || at === SLOTS[1])) slots.push(prefix);
    const end = laterEnd(latest.end, prefix.end);
    latest = prefix.prefix >= latest.prefix ? { ...prefix, end } : { ...latest, end };
  }
  return { state: { acks, hint: latest.hint, end: latest.end, isThere, damages }, slots, liveEnd };
}

function isWholeRecord(record: Buffer, length: number): boolean {
  return record.length === length && record.readUInt32LE(0) === shortCrc32(record, 4, length, 0);
}

function decodeBytes(record: Buffer): number {
  const bytes = readUInt64(record, 24);
  return bytes <= Number.MAX_SAFE_INTEGER ? bytes : UNKNOWN_BYTES;
}

function decodePrefix(record: Buffer): CursorPrefix {
  return { prefix: readUInt64(record, 16), hint: decodeHint(record), end: decodeEnd(record) };
}

function decodeHint(record: Buffer): LogPosition | undefined {
  const sequence = readUInt64(record, 40);
  if (sequence === 0) return undefined;
  return { segment: readUInt64(record, 24), offset: readUInt64(record, 32), sequence };
}

function decodeEnd(record: Buffer): LogEnd {
  if (record.length < RECORD_BYTES) return NO_END;
  const isEnded = (record.readUInt32LE(4) & ENDED) !== 0;
  return { segment: readUInt64(record, 48), isEnded, next: readUInt64(record, 56) };
}

/** Whether a slot was written after another one: its values only increase. */
export function isLater(a: CursorPrefix | undefined, b: CursorPrefix | undefined): boolean {
  if (a === undefined || b === undefined) return false;
  const isEnded = Number(a.end.isEnded) - Number(b.end.isEnded);
  const order = [a.prefix - b.prefix, a.end.segment - b.end.segment, isEnded, a.end.next - b.end.next];
  return (order.find((difference) => difference !== 0) ?? 0) > 0;
}
