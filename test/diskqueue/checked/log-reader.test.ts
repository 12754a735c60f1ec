import { beforeEach, expect, test } from 'vitest';
import type { DiskQueue } from '../../../src/diskqueue/disk-queue.ts';
import { DiskWorld } from '../crash/disk-world.ts';
import { receiveAll } from '../crash/open-queue.ts';
import { RecordingFileSystem } from '../recording-file-system.ts';

let world: DiskWorld;
beforeEach(() => {
  world = new DiskWorld({ maxBytesPerFile: 256 });
});

/** Two messages fit into a file. */
function messageOf(id: number): Buffer {
  return Buffer.from(String(id).padStart(20, '0'));
}

async function putAll(queue: DiskQueue, count: number, from = 1): Promise<void> {
  for (let id = from; id < from + count; id++) await queue.put(messageOf(id));
}

function idOf({ data }: { data: Uint8Array }): number {
  return Number(Buffer.from(data).toString());
}

/** What is there; all of it is acknowledged, and nothing is left. */
async function takeAll(queue: DiskQueue): Promise<number[]> {
  const deliveries = await receiveAll(queue);
  expect([queue.depth, queue.bytes]).toEqual([deliveries.length, deliveries.length * 20]);
  for (const delivery of deliveries) delivery.ack();
  expect([queue.depth, queue.bytes]).toEqual([0, 0]);
  return deliveries.map(idOf);
}

test('a segment that another program removes while the queue is open costs its messages alone, and is reported once', async () => {
  const queue = await world.open();
  await putAll(queue, 8);
  expect(idOf(await queue.receive())).toBe(1);
  await world.files.unlink(world.pathOf(2));
  expect(await receiveAll(queue).then((rest) => rest.map(idOf))).toEqual([2, 5, 6, 7, 8]);
  const lost = { file: world.pathOf(2), firstSequence: 3, lastSequence: 4 };
  expect(world.events).toMatchObject([{ ...lost, reason: 'the segment was removed' }]);
  expect([queue.depth, queue.bytes]).toEqual([6, 120]);
  await queue.close();
  const again = await world.open();
  expect(await takeAll(again)).toEqual([1, 2, 5, 6, 7, 8]);
  expect(world.events).toHaveLength(1);
});

test('a segment that another program removes while the queue is open frees the capacity of its messages, except for those that were acknowledged before', async () => {
  const first = await world.open();
  await putAll(first, 6);
  for (const delivery of (await receiveAll(first)).filter((each) => [1, 4].includes(idOf(each)))) {
    delivery.ack();
  }
  await first.close();
  const queue = await world.open(undefined, { maxBytesTotal: 100 });
  expect([queue.depth, queue.bytes]).toEqual([4, 80]);
  await world.files.unlink(world.pathOf(1));
  await world.files.unlink(world.pathOf(2));
  await putAll(queue, 1, 7);
  expect(idOf(await queue.receive())).toBe(5);
  expect([queue.depth, queue.bytes]).toEqual([3, 60]);
  await putAll(queue, 2, 8);
  await expect(queue.put(messageOf(10))).rejects.toMatchObject({ code: 'ERR_QUEUE_FULL' });
  expect(world.events.map(({ firstSequence, lastSequence }) => [firstSequence, lastSequence])).toEqual([
    [2, 2],
    [3, 4],
  ]);
});

test('a segment that another program removes while the queue is open does not get messages that are put after its removal was noticed, if it was being written', async () => {
  const queue = await world.open(undefined, { maxBytesPerFile: 100_000 });
  await putAll(queue, 2);
  await world.files.unlink(world.pathOf(1));
  await putAll(queue, 1, 3);
  expect(await queue.peek()).toBeUndefined();
  expect([queue.depth, queue.bytes]).toEqual([0, 0]);
  await putAll(queue, 2, 4);
  expect(await receiveAll(queue).then((rest) => rest.map(idOf))).toEqual([4, 5]);
  await queue.close();
  const again = await world.open();
  expect(await takeAll(again)).toEqual([4, 5]);
  expect(world.events).toHaveLength(1);
});

test('segments of which every message is acknowledged are removed by a flush without being read, also those behind a message that was held', async () => {
  const first = await world.open();
  await putAll(first, 401);
  for (const delivery of await receiveAll(first)) if (idOf(delivery) !== 1) delivery.ack();
  await putAll(first, 3, 402);
  await first.close();
  expect(world.segments().length).toBeGreaterThan(200);
  const queue = await world.open();
  const held = await queue.receive();
  expect(idOf(held)).toBe(1);
  const { bytesRead } = world.files;
  held.ack();
  await queue.flush();
  expect(world.segments()).toEqual([world.pathOf(201), world.pathOf(202)]);
  expect([queue.depth, queue.bytes]).toEqual([3, 60]);
  expect(await receiveAll(queue).then((rest) => rest.map(idOf))).toEqual([402, 403, 404]);
  expect(world.files.bytesRead - bytesRead).toBeLessThan(2_000);
  expect(world.events).toEqual([]);
});

test('segments of which every message is acknowledged are removed by a flush when all of the queue is acknowledged, and later messages are delivered', async () => {
  const first = await world.open();
  await putAll(first, 5);
  await first.close();
  const queue = await world.open();
  for (const delivery of await receiveAll(queue)) delivery.ack();
  await queue.flush();
  expect(world.segments()).toEqual([]);
  await putAll(queue, 3, 6);
  expect(await takeAll(queue)).toEqual([6, 7, 8]);
});

test('segments of which every message is acknowledged are removed without the messages that were delivered and come back', async () => {
  const queue = await world.open();
  await putAll(queue, 6);
  const deliveries = await receiveAll(queue);
  for (const delivery of deliveries.slice(0, 4)) delivery.ack();
  await queue.flush();
  expect(world.segments()).toEqual([world.pathOf(3)]);
  deliveries[5]?.nack();
  deliveries[4]?.nack();
  expect(await takeAll(queue)).toEqual([5, 6]);
});

test('a footer before which bytes are missing is not delivered, and not counted once it was read', async () => {
  const first = await world.open();
  await putAll(first, 6);
  await first.close();
  const disk = world.files.disk;
  const bytes = disk.get(world.pathOf(2)) as Buffer;
  disk.set(world.pathOf(2), Buffer.concat([bytes.subarray(0, 128), bytes.subarray(128 + 44)])); // without its first message
  world.files = new RecordingFileSystem(disk);
  const queue = await world.open();
  expect(await takeAll(queue)).toEqual([1, 2, 4, 5, 6]);
  expect(world.events).toHaveLength(1);
});
