import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import type { DiskQueue } from '../../../src/diskqueue/disk-queue.ts';
import { folderOfFile } from '../../folder.ts';
import { FaultyFileSystem } from '../faulty-file-system.ts';
import { allRemains, nothingRemains, RecordingFileSystem, type Disk } from '../recording-file-system.ts';
import { DiskWorld, put, receive, TEN } from './disk-world.ts';
import { NAME, openQueue, receiveAll } from './open-queue.ts';

/*
 * What go-diskqueue loses or doubles, one by one, and that the default format does not.
 * A process that is killed leaves everything that the host was given; a power cut leaves what was synced.
 */

/** Where what is left is looked at while the queue is open. */
const elsewhere = folderOfFile();

let world: DiskWorld;
beforeEach(() => {
  world = new DiskWorld();
});

/** What is there, in order, as its depth says; all of it is acknowledged. */
async function take(queue: DiskQueue): Promise<string[]> {
  expect(queue.depth).toBe((await receive(queue, 'nack')).length);
  const messages = await receive(queue, 'ack');
  expect(queue.depth).toBe(0);
  return messages;
}

async function takeFrom(disk: Disk): Promise<string[]> {
  const moved = [...disk].map(([path, bytes]) => [path.replace(world.folder, elsewhere), bytes] as const);
  const files = new RecordingFileSystem(new Map(moved));
  const queue = await openQueue(files, elsewhere, {}, (event) => world.events.push(event));
  const messages = await take(queue);
  await queue.close();
  return messages;
}

function pathOf(disk: Disk, ending: string): string {
  return [...disk.keys()].filter((path) => path.endsWith(ending)).at(-1) as string;
}

function names(disk: Disk): string[] {
  return [...disk.keys()].map((path) => path.slice(world.folder.length + 1)).sort();
}

test('a crash before the next sync brings no message back that empty has dropped, and loses none of the later ones', async () => {
  const queue = await world.open(undefined, { durability: 'os', maxBytesPerFile: 300 });
  await put(queue, ...TEN);
  await queue.empty();
  const emptied = world.afterPowerCut();
  await put(queue, 'new');
  const killed = new RecordingFileSystem(world.afterKill());
  await queue.close();
  expect(await takeFrom(emptied)).toEqual([]);
  const next = await world.open(killed, { durability: 'os', maxBytesPerFile: 300 });
  await put(next, 'newer');
  expect(await take(next)).toEqual(['new', 'newer']);
});

test('acknowledgements that were written, and not yet synced, survive a kill', async () => {
  const queue = await world.open();
  await put(queue, ...TEN);
  for (const delivery of (await receiveAll(queue)).slice(0, 7)) delivery.ack();
  await put(queue, 'later');
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve)); // they are with the host
  const killed = world.afterKill();
  await queue.close();
  expect(await takeFrom(killed)).toEqual([...TEN.slice(7), 'later']);
});

/** Ten messages, as a process leaves them that is killed. */
async function killed(): Promise<Disk> {
  const queue = await world.open();
  await put(queue, ...TEN);
  const disk = world.afterKill();
  await queue.close();
  return disk;
}

async function withBytes(ending: string, change: (bytes: Buffer) => Buffer): Promise<Disk> {
  const disk = await killed();
  const path = pathOf(disk, ending);
  return disk.set(path, change(Buffer.from(disk.get(path) as Buffer)));
}

test('a torn last record costs that message alone, and no file is set aside', async () => {
  const disk = await withBytes('.segment', (bytes) => bytes.subarray(0, bytes.lastIndexOf('9')));
  expect(await takeFrom(disk)).toEqual(TEN.slice(0, 9));
  expect(world.events).toEqual([]);
  expect(names(disk)).toEqual([`${NAME}.0000000001.segment`, `${NAME}.cursor`]);
});

/** Five of ten are acknowledged. */
async function withCursor(change: (bytes: Buffer) => Buffer): Promise<Disk> {
  const queue = await world.open();
  await put(queue, ...TEN);
  for (const delivery of (await receiveAll(queue)).slice(0, 5)) delivery.ack();
  await queue.close();
  const { disk } = world.files;
  const path = pathOf(disk, '.cursor');
  return disk.set(path, change(disk.get(path) as Buffer));
}

test('a cursor of garbage loses no message, and new messages come behind the old ones', async () => {
  const disk = await withCursor(({ length }) => Buffer.alloc(length, 'garbage'));
  expect(await takeFrom(disk)).toEqual(TEN);
  const queue = await world.open(new RecordingFileSystem(disk));
  await put(queue, 'new');
  expect(await take(queue)).toEqual([...TEN, 'new']);
  await queue.close();
  expect(world.events).toEqual([]);
});

test('a cursor that is ahead of the log hides no new message', async () => {
  const ahead = await withCursor((bytes) => bytes);
  const queue = await world.open();
  await take(queue);
  await queue.close();
  const { disk } = world.files;
  for (const path of ahead.keys()) if (!path.endsWith('.cursor')) disk.delete(path);
  const gone = new RecordingFileSystem(disk);
  const next = await world.open(gone);
  expect(next.depth).toBe(0);
  await put(next, 'new');
  expect(await take(next)).toEqual(['new']);
  await next.close();
  expect(gone.log.length).toBeLessThan(40);
  expect(world.events).toEqual([]);
});

test('a full disk does not keep a queue from being opened and read after a crash', async () => {
  const first = await world.open(undefined, { maxBytesPerFile: 256 });
  await put(first, ...TEN);
  const killed = new RecordingFileSystem(world.afterKill());
  await first.close();
  const queue = await world.open(
    new FaultyFileSystem(killed, { call: 'write', nth: 0, code: 'ENOSPC', isLasting: true }),
  );
  expect(await receive(queue, 'nack')).toEqual(TEN);
});

// A header of 128 bytes, a footer of 40, and four messages of 9 with 24 each: exactly, and a byte more or less.
test.each([128 + 40 + 4 * 33, 128 + 40 + 4 * 33 + 1, 128 + 40 + 4 * 33 - 1, 256])(
  'a consumer that keeps up while files of %d bytes begin and end misses no message, and leaves few files',
  async (maxBytesPerFile) => {
    const queue = await world.open(undefined, { maxBytesPerFile });
    for (let i = 0; i < 60; i++) {
      const message = `message ${i % 10}`;
      await put(queue, message);
      if (i % 3 === 0) expect(Buffer.from((await queue.peek()) as Uint8Array).toString()).toBe(message);
      expect(await take(queue)).toEqual([message]);
      expect(names(world.files.disk).length).toBeLessThanOrEqual(4);
    }
    await queue.close();
    expect(world.events).toEqual([]);
    expect(names(world.files.disk).filter((name) => name.endsWith('.damaged'))).toEqual([]);
  },
);

/** Opens a queue in which every message is received. @returns the bytes and the depth that it had when it was opened. */
async function sizeOn(disk: Disk): Promise<{ bytes: number; depth: number }> {
  const queue = await openQueue(new RecordingFileSystem(disk), world.folder, {});
  const { bytes, depth } = queue;
  const lengths = (await receiveAll(queue)).map(({ data }) => data.length);
  expect({ bytes, depth }).toEqual({ bytes: lengths.reduce((a, b) => a + b, 0), depth: lengths.length });
  await queue.close();
  return { bytes, depth };
}

test('the bytes of a queue are right after a power cut that has spared acknowledgements, and not their messages', async () => {
  const first = await world.open(undefined, { durability: 'os' });
  for (const length of [3, 5]) await first.put(Buffer.alloc(length));
  await first.flush();
  for (const length of [9, 17]) await first.put(Buffer.alloc(length));
  const before = world.files.log.length;
  const [, second, , fourth] = await receiveAll(first);
  second?.ack();
  fourth?.ack();
  const isWritten = (): boolean => world.files.log.slice(before).some(({ kind }) => kind === 'write');
  while (!isWritten()) await nextTurn();
  const spared = [...world.files.disk].filter(([path]) => path.endsWith('.cursor'));
  const disk = new Map([...world.afterPowerCut(), ...spared]);
  await first.close();
  expect(await sizeOn(disk)).toEqual({ bytes: 3, depth: 1 });
  const files = new RecordingFileSystem(disk);
  const queue = await world.open(files, { durability: 'os' });
  for (const length of [33, 65]) await queue.put(Buffer.alloc(length));
  (await receiveAll(queue))[1]?.ack();
  await queue.close();
  expect(await sizeOn(files.disk)).toEqual({ bytes: 3 + 65, depth: 2 });
  for (let point = 0; point <= files.log.length; point++) {
    for (const remains of [nothingRemains, allRemains]) await sizeOn(files.afterPowerCut(point, remains));
  }
});
