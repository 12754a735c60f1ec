import type { FileSystem } from '../../log/file-system.ts';
import { parseSegmentFileName } from '../../log/segment.ts';
import { CursorFile } from '../checked/cursor-file.ts';
import { StoredCheckedQueue } from '../checked/stored-checked-queue.ts';
import { StoredNsqQueue } from '../nsq/stored-nsq-queue.ts';
import type { StoredQueue } from './stored-queue.ts';

const CURSOR = /^(.+)\.cursor$/s;
const NSQ_FILE = /^(.+)\.diskqueue\.(?:\d{6,15}|meta)\.dat$/s;

/** Returns the queues that have files in a folder, sorted by name. */
export async function listQueues(files: FileSystem, folder: string): Promise<StoredQueue[]> {
  const checked = new Set<string>();
  const nsq = new Set<string>();
  const maybe = new Set<string>();
  for (const file of await files.list(folder)) {
    add(checked, parseSegmentFileName(file)?.log);
    add(nsq, NSQ_FILE.exec(file)?.[1]);
    add(maybe, CURSOR.exec(file)?.[1]);
  }
  for (const name of maybe) {
    if (await mayBeCursor(files, folder, name)) checked.add(name);
  }
  const queues = [
    ...[...checked].map((name) => new StoredCheckedQueue(files, folder, name)),
    ...[...nsq].map((name) => new StoredNsqQueue(files, folder, name)),
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

function add(names: Set<string>, name: string | undefined): void {
  if (name !== undefined) names.add(name);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
