import type { FileSystem } from '../file-system.ts';
import { unlinkIfThere } from './cursor-file.ts';
import type { RecoveredSegments } from './recover-segments.ts';
import type { Segment } from './segment.ts';
import { encodeFooter, RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES } from './segment-format.ts';

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
  if (isLastOpen && last?.header !== undefined) await seal(files, last, last.header.salt);
}

/** The messages are made durable first: a footer says that they are. */
async function seal(files: FileSystem, { path, base, end, next }: Segment, salt: number): Promise<void> {
  const messages = next - base;
  const payloadBytes = end - SEGMENT_HEADER_BYTES - messages * RECORD_HEADER_BYTES;
  const file = await files.open(path, 'write');
  try {
    await file.truncate(end);
    await file.sync();
    await file.write(encodeFooter({ messages, payloadBytes }, next, salt), end);
    await file.sync();
  } finally {
    await file.close();
  }
}
