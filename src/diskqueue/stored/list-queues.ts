import type { FileSystem } from '../../log/file-system.ts';
import { parseSegmentFileName } from '../../log/segment.ts';
import { CursorFile } from '../checked/cursor-file.ts';
import { StoredCheckedQueue } from '../checked/stored-checked-queue.ts';
import { filesOfQueues } from '../nsq/format.ts';
import { StoredNsqQueue } from '../nsq/stored-nsq-queue.ts';
import type { StoredQueue } from './stored-queue.ts';

const CURSOR = /^(.+)\.cursor$/s;

/** Returns the queues that have files in a folder, sorted by name. */
export async function listQueues(files: FileSystem, folder: string): Promise<StoredQueue[]> {
  const names = await files.list(folder);
  const checked = new Set(names.flatMap((file) => parseSegmentFileName(file)?.log ?? []));
  for (const name of names.flatMap((file) => CURSOR.exec(file)?.[1] ?? [])) {
    if (!checked.has(name) && (await mayBeCursor(files, folder, name))) checked.add(name);
  }
  const nsq = [...filesOfQueues(names)].filter(([, { data, hasMetadata }]) => data.length > 0 || hasMetadata);
  const queues = [
    ...[...checked].map((name) => new StoredCheckedQueue(files, folder, name)),
    ...nsq.map(([name]) => new StoredNsqQueue(files, folder, name)),
  ];
  return queues.sort((a, b) => compare(a.name, b.name) || compare(a.format, b.format));
}

/** Whether the file is the cursor of a queue without segments. Other programs may have files of that name. */
async function mayBeCursor(files: FileSystem, folder: string, name: string): Promise<boolean> {
  try {
    return (await new CursorFile(files, folder, name).load()).isThere;
  } catch {
    return true; // it cannot be read: reading this queue reports that, and the other queues can be read
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
