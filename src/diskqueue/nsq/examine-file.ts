import type { FileSystem } from '../../log/file-system.ts';
import type { CorruptionEvent } from '../message-log.ts';
import { RECORD_HEADER_BYTES } from './record.ts';
import { walkRecords, type Walk } from './record-walk.ts';

/*
 * What one data file holds, found out when the queue is opened.
 *
 *      0        from              known              size
 *      ├─ consumed ─┼── promised ────┼── beyond ───────┤
 *
 * Up to `known` the metadata says that there are records, and that they are on the disk: what cannot be read there is
 * damage. Beyond, there is what was written since, as far as it got: its last record may be torn, or be zeros, because
 * the file had grown when the power failed and the bytes had not come yet. Nobody was told that it is safe.
 *
 * Zeros are four bytes each of an empty message, if one wants. At the end of what is beyond they are taken for torn. For
 * that not to lose an empty message, the log saves the metadata behind one (see appender.ts).
 */

export interface FoundFile {
  /** Where the last record ends that can be read. */
  readonly end: number;
  readonly records: number;
  /** Of their messages. */
  readonly bytes: number;
  /** Whether what is behind `end` must be cut off. */
  readonly isTorn: boolean;
  /** Whether there is more than the metadata knows of. */
  readonly isLonger: boolean;
  /** Whether there is less. */
  readonly isShorter: boolean;
  /** Whether there is something in it that is no record. */
  readonly isDamaged: boolean;
  readonly damage: CorruptionEvent | undefined;
}

export interface Expectation {
  /** Where the first record is that is not consumed. */
  readonly from: number;
  /** Up to where the metadata knows it; undefined if that is its end, whatever that is. */
  readonly known: number | undefined;
  /** The longest record that anybody could have been writing. */
  readonly longestRecord: number;
}

/** Reads the heads of the records. Changes nothing. */
export async function examineFile(
  files: FileSystem,
  path: string,
  expected: Expectation,
): Promise<FoundFile> {
  const file = await files.open(path, 'read');
  try {
    const size = await files.size(path);
    const known = expected.known ?? size;
    const from = Math.min(expected.from, size);
    const promised = await walkRecords(file, from, Math.min(known, size));
    const isShorter = size < Math.max(known, expected.from);
    if (promised.end < Math.min(known, size)) return damaged(path, promised, size, isShorter);
    if (isShorter) return shortened(path, promised, Math.max(known, expected.from), expected.from);
    const beyond = await walkRecords(file, Math.max(known, from), size);
    return await withTail(path, promised, beyond, size, expected.longestRecord, () =>
      isZeros(file, beyond.lastEmptyFrom, size),
    );
  } finally {
    await file.close();
  }
}

function damaged(path: string, { end, records, bytes }: Walk, size: number, isShorter: boolean): FoundFile {
  const damage = { file: path, offset: end, bytes: size - end, reason: 'no record begins here' };
  const flags = { isTorn: false, isLonger: false, isShorter, isDamaged: true };
  return { end, records, bytes, ...flags, damage };
}

/** What was consumed is no loss. */
function shortened(path: string, { end, records, bytes }: Walk, known: number, from: number): FoundFile {
  const isLoss = known > from;
  const damage = { file: path, offset: end, bytes: known - end, reason: 'the file is shorter than it was' };
  const flags = { isTorn: false, isLonger: false, isShorter: true, isDamaged: false };
  return { end, records, bytes, ...flags, damage: isLoss ? damage : undefined };
}

async function withTail(
  path: string,
  promised: Walk,
  beyond: Walk,
  size: number,
  longestRecord: number,
  isZerosFromLastEmpty: () => Promise<boolean>,
): Promise<FoundFile> {
  const records = promised.records + beyond.records;
  const bytes = promised.bytes + beyond.bytes;
  const isLonger = size > promised.end;
  const whole = { end: beyond.end, records, bytes, isTorn: false, isLonger, isShorter: false };
  if (size - beyond.lastEmptyFrom > 0 && (await isZerosFromLastEmpty())) {
    const found = { ...whole, end: beyond.lastEmptyFrom, records: records - beyond.lastEmpty };
    return { ...found, isTorn: true, isDamaged: false, damage: undefined };
  }
  if (beyond.end === size) return { ...whole, isDamaged: false, damage: undefined };
  if (canBeTorn(beyond, longestRecord))
    return { ...whole, isTorn: true, isDamaged: false, damage: undefined };
  return { ...damaged(path, beyond, size, false), ...whole, isDamaged: true };
}

/** A length that no record has was not being written. */
function canBeTorn({ nextLength }: Walk, longestRecord: number): boolean {
  if (nextLength === undefined) return true;
  return nextLength >= 0 && nextLength + RECORD_HEADER_BYTES <= longestRecord;
}

/** Bytes looked at in one go. */
const BLOCK_BYTES = 64 * 1024;

async function isZeros(
  file: { read(buffer: Buffer, position: number): Promise<number> },
  from: number,
  to: number,
): Promise<boolean> {
  const block = Buffer.allocUnsafeSlow(Math.min(BLOCK_BYTES, to - from));
  for (let at = from; at < to; at += block.length) {
    const filled = await file.read(block.subarray(0, Math.min(block.length, to - at)), at);
    if (block.subarray(0, filled).some((byte) => byte !== 0)) return false;
  }
  return true;
}
