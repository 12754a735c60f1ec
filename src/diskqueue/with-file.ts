import type { File, FileSystem } from './file-system.ts';

/** Opens a file, and closes it whatever happens. */
export async function withFile<R>(
  files: FileSystem,
  path: string,
  mode: 'read' | 'write',
  action: (file: File) => Promise<R>,
): Promise<R> {
  const file = await files.open(path, mode);
  try {
    return await action(file);
  } finally {
    await file.close();
  }
}

/** Makes a file, durably with what the action writes. Closes it whatever happens. */
export async function makeFile(
  files: FileSystem,
  path: string,
  action: (file: File) => Promise<void>,
): Promise<void> {
  const file = await files.create(path);
  try {
    await action(file);
    await file.sync();
  } finally {
    await file.close();
  }
}
