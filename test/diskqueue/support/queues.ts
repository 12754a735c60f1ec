import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  DiskQueue,
  type BackendQueue,
  type CorruptionEvent,
  type Delivery,
  type DiskQueueOptions,
} from 'escapement/diskqueue';
import { ManualClock } from 'escapement';
import { onTestFinished, test as base } from 'vitest';
import { FILE_SYSTEM } from '../../../src/log/file-system.ts';
import type { FileSystem } from '../../../src/log/file-system.ts';
import { folderOfTest } from '../../folder.ts';
import { RecordingFiles } from './recording-files.ts';

/** The formats that the suites run for. */
export const FORMATS = ['checked', 'nsq'] as const satisfies readonly NonNullable<
  DiskQueueOptions['format']
>[];
export type Format = (typeof FORMATS)[number];

/** What the files of messages are called, and those of acknowledgements. */
export const DATA = { checked: '.segment', nsq: '.diskqueue.0' };
export const ACKS = { checked: '.cursor', nsq: '.diskqueue.meta' };

export interface TestOptions extends Partial<Omit<DiskQueueOptions, 'onCorruption'>> {
  readonly files?: FileSystem;
  /** Undefined for what is the default outside of tests. */
  readonly onCorruption?: DiskQueueOptions['onCorruption'] | undefined;
}

/** Files in memory where the host has them: what a sync is worth is not for these tests, and they do thousands. */
const SHARED_MEMORY = '/dev/shm';
const PARENT = existsSync(SHARED_MEMORY) ? SHARED_MEMORY : tmpdir();

/** Does something in a folder that is removed then. */
export async function inFolder(action: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(PARENT, 'escapement-diskqueue-'));
  try {
    await action(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A folder for one test. */
export function temporaryFolder(): string {
  return folderOfTest(PARENT);
}

/** A test with a folder of its own. */
export const test = base.extend('dataPath', () => temporaryFolder());

/** Opens a queue, which is closed when the test is over. Damage is an error: no suite here makes any. */
export async function openQueue({ files, ...options }: TestOptions = {}): Promise<DiskQueue> {
  const opened: object = {
    name: 'spool',
    dataPath: options.dataPath ?? temporaryFolder(),
    onCorruption: refuseDamage,
    ...options,
    ...(files === undefined ? {} : { [FILE_SYSTEM]: files }),
  };
  const queue = await DiskQueue.open(opened as DiskQueueOptions);
  const { name, dataPath, format } = opened as DiskQueueOptions;
  places.set(queue, { name, dataPath, ...(format && { format }) });
  onTestFinished(() => queue.close().catch(() => undefined));
  return queue;
}

/** Where the files of open queues are. */
const places = new WeakMap<DiskQueue, TestOptions>();

/** Closes a queue, and opens another one on its files. */
export async function reopened(queue: DiskQueue, options: TestOptions = {}): Promise<DiskQueue> {
  await queue.close();
  return openQueue({ ...places.get(queue), ...options });
}

/** Opens a queue whose calls of the file system are recorded. */
export async function openRecorded(
  options: TestOptions = {},
): Promise<{ files: RecordingFiles; clock: ManualClock; queue: DiskQueue }> {
  const [files, clock] = [new RecordingFiles(), new ManualClock()];
  return { files, clock, queue: await openQueue({ files, clock, ...options }) };
}

function refuseDamage({ reason, file }: CorruptionEvent): void {
  throw new Error(`damage in ${file}: ${reason}`);
}

export function bytes(text: string): Buffer {
  return Buffer.from(text);
}

export function text({ data }: { data: Uint8Array }): string {
  return Buffer.from(data).toString();
}

/** A text of 60 bytes for each letter: five of them are too much for a file of 256 bytes, in any format. */
export function longTexts(letters: string): string[] {
  return Array.from(letters, (letter) => letter.padEnd(60, '.'));
}

/** Puts texts, all at once, and waits for them. */
export async function putAll(queue: BackendQueue, texts: Iterable<string>): Promise<void> {
  await Promise.all(Array.from(texts, (message) => queue.put(bytes(message))));
}

export async function receiveMany(queue: BackendQueue, count: number): Promise<Delivery[]> {
  const deliveries: Delivery[] = [];
  for (let i = 0; i < count; i++) deliveries.push(await queue.receive());
  return deliveries;
}

/** Receives and acknowledges all messages that are not in flight, in order. */
export async function drain(queue: BackendQueue, count = queue.depth): Promise<string[]> {
  const deliveries = await receiveMany(queue, count);
  for (const delivery of deliveries) delivery.ack();
  return deliveries.map(text);
}

/** Enough turns for what is under way in memory and in the file system, which is slow on a busy machine. */
export async function settled(): Promise<void> {
  for (let turn = 0, quiet = 0; quiet < 20 && turn < 10_000; turn++) {
    await nextTurn();
    const isBusy = process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'));
    quiet = isBusy ? 0 : quiet + 1;
  }
}

/** Whether a promise is pending after some turns. */
export async function isPending(promise: Promise<unknown>): Promise<boolean> {
  let isDone = false;
  const done = (): void => {
    isDone = true;
  };
  promise.then(done, done);
  await settled();
  return !isDone;
}

/** What a promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('expected it to reject');
}
