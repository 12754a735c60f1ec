import { stat } from 'node:fs/promises';
import { sep } from 'node:path';
import { hostFileSystem } from '../../diskqueue/file-system.ts';
import { listQueues } from '../../diskqueue/stored/list-queues.ts';
import type { StoredQueue } from '../../diskqueue/stored/stored-queue.ts';
import { CommandError } from '../command-error.ts';
import { printable } from '../terminal/text.ts';

/** A folder, and the queues in it. */
export interface QueuesOfFolder {
  readonly folder: string;
  readonly queues: readonly StoredQueue[];
}

/** Not those that are the root, of a drive too. Elsewhere than on Windows a backslash is a letter. */
const TRAILING_SEPARATORS = sep === '/' ? /(?<=.)\/+$/ : /(?<=[^:])[/\\]+$/;

/** @throws CommandError - it is no folder. */
export async function queuesIn(dir: string): Promise<QueuesOfFolder> {
  const folder = dir.replace(TRAILING_SEPARATORS, '');
  await requireFolder(folder);
  return { folder, queues: await listQueues(hostFileSystem, folder) };
}

/** The queues of that name; all of them without one. @throws CommandError - there is none. */
export async function someQueuesIn(dir: string, name: string | undefined): Promise<QueuesOfFolder> {
  const { folder, queues } = await queuesIn(dir);
  if (queues.length === 0) throw new CommandError(`${folder}: there are no queues in this folder`);
  if (name === undefined) return { folder, queues };
  const named = queues.filter((queue) => queue.name === name);
  if (named.length === 0) {
    const there = [...new Set(queues.map((queue) => printable(queue.name)))].join(', ');
    throw new CommandError(`${folder}: there is no queue '${name}' in this folder; there is: ${there}`);
  }
  return { folder, queues: named };
}

async function requireFolder(folder: string): Promise<void> {
  try {
    if ((await stat(folder)).isDirectory()) return;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new CommandError(`${folder}: no such folder`);
    if (code !== 'ENOTDIR') throw error;
  }
  throw new CommandError(`${folder}: not a folder`);
}
