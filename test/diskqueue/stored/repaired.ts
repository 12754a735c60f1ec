import { expect } from 'vitest';
import { CheckedLog } from '../../../src/diskqueue/checked/checked-log.ts';
import { StoredCheckedQueue } from '../../../src/diskqueue/checked/stored-checked-queue.ts';
import type { FileSystem } from '../../../src/log/file-system.ts';
import type { CorruptionEvent } from '../../../src/diskqueue/message-log.ts';
import type { LostMessages, RepairPlan, StoredQueue } from '../../../src/diskqueue/stored/stored-queue.ts';
import { readAll, texts } from '../nsq/queue-folder.ts';
import { MemoryDisk } from './memory-disk.ts';

export const FOLDER = 'folder';
export const NAME = 'q';

/** A queue of some segments on a disk in memory. */
export async function queueOf(
  messages: readonly string[],
  { acked = 0, isClosed = true }: { acked?: number; isClosed?: boolean } = {},
): Promise<MemoryDisk> {
  const disk = new MemoryDisk();
  const log = await openLog(disk, () => undefined);
  for (const message of messages) {
    await log.append([Buffer.from(message)]);
    await log.sync();
  }
  const read = [];
  while (read.length < acked) read.push(...(await log.read()));
  for (const message of read.slice(0, acked)) log.acknowledge(message);
  await log.saveAcks(true);
  if (isClosed) await log.close();
  return disk;
}

/** Opens the queue on any disk. */
export function openLog(
  files: FileSystem,
  onCorruption: (event: CorruptionEvent) => void,
): Promise<CheckedLog> {
  const options = { files, folder: FOLDER, name: NAME, maxBytesPerFile: 512, isAlwaysDurable: true };
  return CheckedLog.open({ ...options, wallNow: () => 0, onCorruption });
}

export function storedOn(disk: MemoryDisk): StoredCheckedQueue {
  return new StoredCheckedQueue(disk, FOLDER, NAME);
}

export function planFor(disk: MemoryDisk): Promise<RepairPlan> {
  return storedOn(disk).planRepair(() => undefined);
}

export async function repair(
  disk: MemoryDisk,
  stored: StoredQueue = storedOn(disk),
): Promise<readonly LostMessages[]> {
  const { steps, lost } = await stored.planRepair(() => undefined);
  for (const step of steps) await step.run();
  return lost;
}

/** What a queue would hand out; it knows how much that is, and finds nothing to complain about. */
export async function handedOut(disk: MemoryDisk): Promise<string[]> {
  const log = await openLog(new MemoryDisk(disk.contents), (event) => {
    throw new Error(`damage: ${JSON.stringify(event)}`);
  });
  const { bytes } = log;
  const messages = texts(await readAll(log));
  expect(log.depth).toBe(messages.length);
  expect(log.bytes).toBe(messages.reduce((sum, message) => sum + Buffer.byteLength(message), 0));
  expect(bytes).toBeGreaterThanOrEqual(log.bytes); // where nobody knew yet that something is lost
  return messages;
}

/** Everything is in order: for `verify`, for a second repair, for the queue itself. */
export async function expectInOrder(disk: MemoryDisk, stored: StoredQueue = storedOn(disk)): Promise<void> {
  const { problems } = await stored.verify(() => undefined);
  expect(problems).toEqual([]);
  const { steps } = await stored.planRepair(() => undefined);
  expect(steps.map(({ action, file }) => [action, file])).toEqual([]);
}

export function pathsOf(disk: MemoryDisk, suffix: string): string[] {
  return [...disk.contents.keys()].filter((path) => path.endsWith(suffix)).sort();
}

export function bytesOf(disk: MemoryDisk, path: string): Buffer {
  return disk.contents.get(path) as Buffer;
}
