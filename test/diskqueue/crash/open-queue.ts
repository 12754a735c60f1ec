import { DiskQueue } from '../../../src/diskqueue/disk-queue.ts';
import type { Delivery } from '../../../src/diskqueue/backend-queue.ts';
import type { DiskQueueOptions } from '../../../src/diskqueue/disk-queue-options.ts';
import { listQueues } from '../../../src/diskqueue/stored/list-queues.ts';
import { FILE_SYSTEM, type FileSystem } from '../../../src/log/file-system.ts';
import type { CorruptionEvent } from '../../../src/diskqueue/message-log.ts';

export type Setup = Omit<DiskQueueOptions, 'name' | 'dataPath' | 'onCorruption'>;

export const NAME = 'spool';

/** A queue on another file system; `folder` has to exist on the host's, for the lock. */
export function openQueue(
  files: FileSystem,
  folder: string,
  setup: Setup,
  onCorruption: (event: CorruptionEvent) => void = unexpected,
): Promise<DiskQueue> {
  const options = { name: NAME, dataPath: folder, ...setup, onCorruption, [FILE_SYSTEM]: files };
  return DiskQueue.open(options);
}

function unexpected(event: CorruptionEvent): void {
  throw new Error(`unexpected: ${JSON.stringify(event)}`);
}

/** Receives what is there, and settles none of it. */
export async function receiveAll(queue: DiskQueue): Promise<Delivery[]> {
  const deliveries: Delivery[] = [];
  while ((await queue.peek()) !== undefined) deliveries.push(await queue.receive());
  return deliveries;
}

/** Reads every byte of the files. @returns the problems. */
export async function problemsOf(files: FileSystem, folder: string): Promise<unknown[]> {
  const reports = (await listQueues(files, folder)).map((queue) => queue.verify(() => undefined));
  return (await Promise.all(reports)).flatMap(({ problems }) => problems);
}

/** Runs a check whose error names the case. */
export async function inCase<R>(name: string, check: () => Promise<R>): Promise<R> {
  try {
    return await check();
  } catch (error) {
    throw new Error(`${name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}
