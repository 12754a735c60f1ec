import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { ifThere } from '../log/file-system.ts';
import { CommandError } from './command-error.ts';

/** Returns what is at a path; undefined if there is nothing. */
export function statIfThere(path: string): Promise<Stats | undefined> {
  return ifThere(stat(path), undefined);
}

/** @throws CommandError - there is no folder at the path. */
export async function requireFolder(path: string): Promise<void> {
  try {
    const found = await statIfThere(path);
    if (found === undefined) throw new CommandError(`${path}: no such folder`);
    if (found.isDirectory()) return;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOTDIR') throw error; // else a part of the path is a file
  }
  throw new CommandError(`${path}: not a folder`);
}
