import type { FileSystem } from './file-system.ts';

/** What is to go may be gone already. */
export async function unlinkIfThere(files: FileSystem, path: string): Promise<void> {
  try {
    await files.unlink(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

export async function renameIfThere(files: FileSystem, from: string, to: string): Promise<void> {
  try {
    await files.rename(from, to);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/** Whether an error says that there is no such file. */
export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}
