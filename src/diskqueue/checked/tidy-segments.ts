import type { File, FileSystem } from '../file-system.ts';
import { setAside } from '../copy-file.ts';
import { unlinkIfThere } from '../missing-files.ts';
import { withFile } from '../with-file.ts';
import type { RecoveredSegments } from './recover-segments.ts';
import { encodedFooter } from './segment-footer.ts';
import type { Segment } from './segment.ts';

/**
 * Puts in order what a crash has left: removes files that were being made, and sets those aside that are in a place of
 * others; brings to the disk what was only with the host, cuts off what was not finished, and seals the last segment, so that it need not be read again. Where there is
 * damage, all stays as it is.
 */
export async function tidySegments(
  files: FileSystem,
  folder: string,
  { segments, damages, isLastSealed, unborn, misplaced }: RecoveredSegments,
): Promise<void> {
  for (const path of unborn) await unlinkIfThere(files, path);
  for (const { path } of misplaced) await setAside(files, folder, path);
  if (unborn.length + misplaced.length > 0) await files.syncFolder(folder);
  const last = segments.at(-1);
  if (last?.header === undefined || isLastSealed) return;
  const isWhole = damages.every(({ segment }) => segment !== last);
  await withFile(files, last.path, 'write', async (file) => {
    if (isWhole) await file.truncate(last.end);
    await file.sync();
    if (isWhole) await seal(file, last);
  });
}

/** Where there is no room for a footer, it is done without. */
async function seal(file: File, { header, end, next }: Segment): Promise<void> {
  if (header === undefined) return;
  try {
    await file.write(encodedFooter(header, end, next), end);
    await file.sync();
  } catch {
    await file.truncate(end).catch(() => undefined);
  }
}
