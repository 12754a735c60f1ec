import type { Dirent } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** What a file holds; undefined if there is no file of that name. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isMissing(error) || codeOf(error) === 'EISDIR') return undefined;
    throw error;
  }
}

/** What is in a directory; undefined if there is no directory of that name. */
export async function listIfThere(path: string): Promise<Dirent[] | undefined> {
  try {
    return await readdir(path, { withFileTypes: true });
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Nobody ever sees half of it. */
export async function writeWhole(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`;
  await mkdir(dirname(path), { recursive: true });
  try {
    await writeFile(temporary, text);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Removes the directories from `directory` up to `root` that are empty. */
export async function removeEmpty(directory: string, root: string): Promise<void> {
  try {
    for (let at = directory; at !== root; at = dirname(at)) await rmdir(at);
  } catch {
    // It is not empty, and so is nothing above it.
  }
}

/** Whether there is no such thing, or its parent is a file. */
export function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(codeOf(error));
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? '';
}
