import type { SegmentState, Stretch } from './examine-segment.ts';
import {
  copyBytes,
  keepCopy,
  type File,
  type FileSystem,
  makeFile,
  withFile,
  unlinkIfThere,
} from './file-system.ts';
import {
  encodeLost,
  encodeSegmentHeader,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  encodedFooter,
} from './segment-format.ts';

/** Of a segment that is being rewritten. */
const REWRITTEN = '.rewritten';

/** Zeros written at once, in bytes. */
const BLOCK_BYTES = 1024 * 1024;
/** More than this does not fit in one record, in bytes. */
const LONGEST_RECORD = 2 ** 31;

/**
 * Writes a damaged segment anew: what is whole stays where it was, and records of lost messages stand where nothing is.
 * Everything that names a place in the segment, as the next one and the cursor do, stays right.
 *
 * The segment is replaced when the new one is on the disk, and a copy of the old one is.
 */
export async function rewriteSegment(
  files: FileSystem,
  folder: string,
  path: string,
  keptAs: string,
  state: SegmentState,
): Promise<void> {
  const { header, end, next, stretches } = state;
  const rewritten = path + REWRITTEN;
  await unlinkIfThere(files, rewritten);
  await keepCopy(files, folder, path, keptAs);
  await withFile(files, path, 'read', (from) =>
    makeFile(files, rewritten, async (to) => {
      await copyBytes(from, to, end);
      await to.truncate(end); // it may have been shorter
      await to.write(encodeSegmentHeader(header), 0);
      for (const stretch of stretches) await writeStretch(to, stretch, header.salt);
      await to.write(encodedFooter(header, end, next), end);
    }),
  );
  await files.rename(rewritten, path);
  await files.syncFolder(folder);
}

/** Cuts off what is behind the records, and ends it. The messages are made durable first: a footer says that they are. */
export async function sealSegment(
  files: FileSystem,
  path: string,
  { header, end, next }: SegmentState,
): Promise<void> {
  await withFile(files, path, 'write', async (file) => {
    await file.truncate(end);
    await file.sync();
    await file.write(encodedFooter(header, end, next), end);
    await file.sync();
  });
}

/** Both copies of the header, of which one is damaged. */
export async function mendHeader(files: FileSystem, path: string, { header }: SegmentState): Promise<void> {
  await withFile(files, path, 'write', async (file) => {
    await file.write(encodeSegmentHeader(header), 0);
    await file.sync();
  });
}

async function writeStretch(file: File, stretch: Stretch, salt: number): Promise<void> {
  const { offset, end, from, to, rescued } = stretch;
  if (rescued !== undefined) {
    await file.write(rescued, offset);
    return;
  }
  await writeZeros(file, offset, end);
  let messages = to - from;
  let sequence = from;
  for (let at = offset; at < end;) {
    const length = end - at <= LONGEST_RECORD ? end - at : LONGEST_RECORD - RECORD_HEADER_BYTES;
    await file.write(encodeLost(length, messages, sequence, salt), at);
    at += length;
    sequence += messages;
    messages = 0;
  }
}

async function writeZeros(file: File, from: number, to: number): Promise<void> {
  const zeros = Buffer.alloc(Math.min(BLOCK_BYTES, Math.max(to - from, 0)));
  for (let at = from; at < to; at += zeros.length) {
    await file.write(zeros.subarray(0, Math.min(zeros.length, to - at)), at);
  }
}

/** The smallest stretch that a record of lost messages fits in; segments do not get longer by a repair. */
export function fits({ offset, end, rescued }: Stretch): boolean {
  return rescued !== undefined || (offset >= SEGMENT_HEADER_BYTES && end - offset >= RECORD_HEADER_BYTES);
}
