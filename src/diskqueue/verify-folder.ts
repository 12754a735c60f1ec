import { verifyQueue, type QueueReport } from './checked/verify-queue.ts';
import { parseSegmentFileName } from './checked/segment.ts';
import type { FileSystem } from './file-system.ts';

const CURSOR = '.cursor';

/** Verifies every queue in a folder, by name. Nobody may have them open. */
export async function verifyFolder(files: FileSystem, folder: string): Promise<QueueReport[]> {
  const names = new Set<string>();
  for (const file of await files.list(folder)) {
    const name = file.endsWith(CURSOR) ? file.slice(0, -CURSOR.length) : parseSegmentFileName(file)?.queue;
    if (name !== undefined) names.add(name);
  }
  const reports: QueueReport[] = [];
  for (const name of [...names].sort()) reports.push(await verifyQueue(files, folder, name));
  return reports;
}
