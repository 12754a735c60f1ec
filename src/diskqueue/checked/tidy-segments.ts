import type { FileSystem } from '../file-system.ts';
import { unlinkIfThere } from './cursor-file.ts';
import type { RecoveredSegments } from './recover-segments.ts';
import { withFile } from '../with-file.ts';
import {
  encodeFooter,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  type SegmentHeader,
} from './segment-format.ts';

/**
 * Puts in order what a crash has left: removes files that were being made, cuts off a torn end, and seals the last
 * segment, so that it need not be read again. What is damaged stays as it is.
 */
export async function tidySegments(
  files: FileSystem,
  folder: string,
  { segments, isLastOpen, unborn }: RecoveredSegments,
): Promise<void> {
  for (const path of unborn) await unlinkIfThere(files, path);
  if (unborn.length > 0) await files.syncFolder(folder);
  const last = segments.at(-1);
  if (isLastOpen && last?.header !== undefined)
    await seal(files, last.path, last.header, last.end, last.next);
}

/** Cuts off what is behind the records. The messages are made durable first: a footer says that they are. */
export async function seal(
  files: FileSystem,
  path: string,
  header: SegmentHeader,
  end: number,
  next: number,
): Promise<void> {
  await withFile(files, path, 'write', async (file) => {
    await file.truncate(end);
    await file.sync();
    await file.write(encodedFooter(header, end, next), end);
    await file.sync();
  });
}

/** @param end - of the records; @param next - the sequence after that of the last one. */
export function encodedFooter({ baseSequence, salt }: SegmentHeader, end: number, next: number): Buffer {
  const messages = next - baseSequence;
  const payloadBytes = end - SEGMENT_HEADER_BYTES - messages * RECORD_HEADER_BYTES;
  return encodeFooter({ messages, payloadBytes }, next, salt);
}
