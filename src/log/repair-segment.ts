import {
  copyBytes,
  keepCopy,
  makeFile,
  unlinkIfThere,
  withFile,
  type File,
  type FileSystem,
} from './file-system.ts';
import {
  encodeFooter,
  encodeLost,
  encodeSegmentHeader,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  type LostPart,
  type SegmentHeader,
  parseSegmentFileName,
} from './segment.ts';

const REWRITTEN = '.rewritten';
const UNFINISHED = /(?:\.rewritten|\.damaged(?:\.\d+)?\.new)$/;
const DAMAGED = /\.damaged(?:\.\d+)?$/;

/** Zeros written at once, in bytes. */
const BLOCK_BYTES = 1024 * 1024;
/** Maximum length of a record, in bytes. */
const LONGEST_RECORD = 2 ** 31;

/** What a segment is to be. */
export interface RepairedSegment {
  readonly header: SegmentHeader;
  /** Where its records end, and the sequence after that of the last one. */
  readonly end: number;
  readonly next: number;
  readonly damages: readonly LostPart[];
}

/**
 * Replaces a damaged segment by one in which every intact record keeps its position, and records of lost records stand
 * where nothing else is. So every position in the segment stays right, as in the next segment and the cursor.
 *
 * @param keptAs - where a copy of the damaged segment is made before it is replaced.
 */
export async function rewriteSegment(
  files: FileSystem,
  folder: string,
  path: string,
  keptAs: string,
  { header, end, next, damages }: RepairedSegment,
): Promise<void> {
  const rewritten = path + REWRITTEN;
  await unlinkIfThere(files, rewritten);
  await withFile(files, path, 'read', (from) =>
    makeFile(files, rewritten, async (to) => {
      await copyBytes(from, to, end);
      await to.truncate(end); // it may have been shorter
      await to.write(encodeSegmentHeader(header), 0);
      for (const damage of damages) await replaceDamage(to, damage, header.salt);
      await to.write(encodeFooter(header, end, next), end);
      await keepCopy(files, folder, path, keptAs); // last: if the disk has no space, neither is left
    }),
  );
  await files.rename(rewritten, path);
  await files.syncFolder(folder);
}

/**
 * Truncates what is behind the records, and seals the segment. A footer is written after its records are durable.
 *
 * @param repaired - a damage in it is behind all records of the file.
 */
export async function sealSegment(
  files: FileSystem,
  path: string,
  { header, end, next, damages }: RepairedSegment,
): Promise<void> {
  await withFile(files, path, 'write', async (file) => {
    await file.truncate(damages[0]?.offset ?? end);
    await file.sync();
    for (const damage of damages) await replaceDamage(file, damage, header.salt);
    await file.write(encodeFooter(header, end, next), end);
    await file.sync();
  });
}

/** Writes both copies of a header, of which one is damaged. */
export async function mendHeader(files: FileSystem, path: string, header: SegmentHeader): Promise<void> {
  await withFile(files, path, 'write', async (file) => {
    await file.write(encodeSegmentHeader(header), 0);
    await file.sync();
  });
}

/** Whether a record of lost records fits in place of the damage: a repair does not make segments longer. */
export function canReplace({ offset, end }: LostPart): boolean {
  return offset >= SEGMENT_HEADER_BYTES && end - offset >= RECORD_HEADER_BYTES;
}

/** A file that an interrupted repair has left unfinished, or one that is kept as it was; undefined if it is neither. */
export function leftFileOf(log: string, file: string): 'unfinished' | 'set aside' | undefined {
  const isOf = (suffix: RegExp): boolean =>
    suffix.test(file) && parseSegmentFileName(file.replace(suffix, ''))?.log === log;
  if (isOf(UNFINISHED)) return 'unfinished';
  return isOf(DAMAGED) ? 'set aside' : undefined;
}

async function replaceDamage(file: File, { offset, end, from, to }: LostPart, salt: number): Promise<void> {
  await writeZeros(file, offset, end);
  let records = to - from;
  let sequence = from;
  for (let at = offset; at < end;) {
    const length = end - at <= LONGEST_RECORD ? end - at : LONGEST_RECORD - RECORD_HEADER_BYTES;
    await file.write(encodeLost(length, records, sequence, salt), at);
    at += length;
    sequence += records;
    records = 0;
  }
}

async function writeZeros(file: File, from: number, to: number): Promise<void> {
  const zeros = Buffer.alloc(Math.min(BLOCK_BYTES, to - from));
  for (let at = from; at < to; at += zeros.length) {
    await file.write(zeros.subarray(0, Math.min(zeros.length, to - at)), at);
  }
}
