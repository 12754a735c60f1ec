import type { File, FileSystem } from './file-system.ts';
import { renameIfThere } from './missing-files.ts';
import { makeFile, withFile } from './with-file.ts';

/** Bytes copied at once. */
const BLOCK_BYTES = 1024 * 1024;

/** Copies bytes from the beginning of a file up to `end`, or its end, to the same places of another one. */
export async function copyBytes(from: File, to: File, end: number): Promise<void> {
  const block = Buffer.allocUnsafeSlow(Math.min(BLOCK_BYTES, Math.max(end, 1)));
  for (let at = 0; at < end;) {
    const filled = await from.read(block.subarray(0, Math.min(block.length, end - at)), at);
    if (filled === 0) break;
    await to.write(block.subarray(0, filled), at);
    at += filled;
  }
}

/** Keeps a file as it is under another name: when it resolves, the copy is on the disk as a whole. */
export async function keepCopy(files: FileSystem, folder: string, path: string, as: string): Promise<void> {
  const temporary = `${as}.new`;
  const size = await files.size(path);
  await withFile(files, path, 'read', (from) =>
    makeFile(files, temporary, (to) => copyBytes(from, to, size)),
  );
  await files.rename(temporary, as);
  await files.syncFolder(folder);
}

/** Gives a file the name that damaged ones are kept under. */
export async function setAside(files: FileSystem, folder: string, path: string): Promise<void> {
  const taken = new Set((await files.list(folder)).map((name) => `${folder}/${name}`));
  await renameIfThere(files, path, freeName(path, taken));
}

/** A name that no file has: `path.damaged`, or with a number behind it. */
export function freeName(path: string, taken: ReadonlySet<string>): string {
  const nameOf = (i: number): string => `${path}.damaged${i === 1 ? '' : `.${i}`}`;
  let i = 1;
  while (taken.has(nameOf(i))) i++;
  return nameOf(i);
}
