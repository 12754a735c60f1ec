import { OverflowQueue, type DiskQueue } from 'escapement/diskqueue';
import { beforeEach, describe, expect, test } from 'vitest';
import { folderOfTest } from '../folder.ts';
import { openQueue, receiveAll, NAME, type Setup } from './crash/open-queue.ts';
import { Random } from './random.ts';
import { FIRST_SEED, runs } from '../runs.ts';
import { allRemains, nothingRemains, RecordingFileSystem, someRemains } from './recording-file-system.ts';
import { SmallDisk } from './small-disk.ts';
import { FORMATS, settled } from './support/queues.ts';

/** Room for the cursor, and for some files of messages. In bytes. */
const CAPACITY = 256 * 1024;
const MESSAGE_BYTES = 500;

let folder: string;
let recorded: RecordingFileSystem;
let disk: SmallDisk;
beforeEach(() => {
  folder = folderOfTest();
  recorded = new RecordingFileSystem();
  disk = new SmallDisk(recorded, CAPACITY);
});

function message(id: number): Buffer {
  return Buffer.alloc(MESSAGE_BYTES, `${String(id).padStart(6, '0')} `);
}

function idOf({ data }: { data: Uint8Array }): number {
  return Number(Buffer.from(data.subarray(0, 6)).toString());
}

/** Puts until the disk is full, and stays so. @returns the ids of what is in the queue. */
async function fill(queue: DiskQueue, first = 0): Promise<number[]> {
  const ids: number[] = [];
  for (let id = first, refused = 0; refused < 5; id++) {
    await queue.put(message(id)).then(
      () => ids.push(id),
      (error: unknown) => {
        expect(error).toMatchObject({ code: 'ERR_QUEUE_IO', cause: { code: 'ENOSPC' } });
        refused++;
      },
    );
  }
  return ids;
}

/** What a reopened queue hands out, without any report of damage. */
async function reopened(files: RecordingFileSystem, setup: Setup): Promise<number[]> {
  const queue = await openQueue(files, folder, setup);
  const { depth } = queue;
  const ids = (await receiveAll(queue)).map(idOf);
  expect(ids).toHaveLength(depth);
  await queue.close();
  return ids;
}

function names(): string[] {
  return [...recorded.disk.keys()].map((path) => path.slice(folder.length + 1));
}

const CASES = FORMATS.flatMap((format) =>
  (['always', 'os'] as const).flatMap((durability) =>
    [20_000, 10_000_000].map((maxBytesPerFile): [string, Setup] => [
      `${format}, ${durability}, files of at most ${maxBytesPerFile} bytes`,
      { format, durability, maxBytesPerFile },
    ]),
  ),
);

describe.each(CASES)('a full disk: %s', (_, setup) => {
  test('acknowledging everything frees a full disk: puts work again, and no message is delivered again', async () => {
    const queue = await openQueue(disk, folder, setup);
    const ids = await fill(queue);
    expect(ids.length).toBeGreaterThan(100);
    const deliveries = await receiveAll(queue);
    expect(deliveries.map(idOf)).toEqual(ids);
    for (const delivery of deliveries) delivery.ack();
    await queue.flush();
    expect(disk.usedBytes).toBeLessThan(CAPACITY / 2);
    const more = await fill(queue, 10_000);
    expect(more.length).toBeGreaterThan(100);
    await queue.close();
    expect(await reopened(recorded, setup)).toEqual(more);
  });

  test('acknowledging everything before the rejected put frees a full disk, too', async () => {
    const queue = await openQueue(disk, folder, setup);
    const ids = await fill(queue);
    const free = disk.capacity;
    disk.capacity = Infinity;
    await queue.put(message(9_999));
    for (const delivery of await receiveAll(queue)) delivery.ack();
    await queue.flush();
    disk.capacity = free;
    disk.fill();
    // In a file that is not full, there may be room for a message: but not for as many as were there.
    for (let id = 10_000; id < 10_000 + ids.length; id++) {
      await queue.put(message(id)).catch(() => undefined);
      for (const delivery of await receiveAll(queue)) delivery.ack();
    }
    await queue.put(message(20_000));
    await queue.close();
    expect(await reopened(recorded, setup)).toEqual([20_000]);
  });

  test('acknowledgements in order free the files that they cover, and the other messages stay', async () => {
    const queue = await openQueue(disk, folder, setup);
    const ids = await fill(queue);
    const deliveries = await receiveAll(queue);
    const half = ids.length >> 1;
    const before = disk.usedBytes;
    for (const delivery of deliveries.slice(0, half)) {
      delivery.ack();
      await settled();
    }
    await queue.flush();
    const hasManyFiles = (setup.maxBytesPerFile ?? 0) < CAPACITY;
    if (hasManyFiles) expect(disk.usedBytes).toBeLessThan(0.7 * before);
    const more = await fill(queue, 10_000);
    if (hasManyFiles) expect(more.length).toBeGreaterThan(0.3 * half);
    await queue.close();
    expect(await reopened(recorded, setup)).toEqual([...ids.slice(half), ...more]);
  });

  test('empty works on a full disk', async () => {
    const queue = await openQueue(disk, folder, setup);
    await fill(queue);
    await queue.empty();
    expect(disk.usedBytes).toBeLessThan(CAPACITY / 2);
    const more = await fill(queue, 10_000);
    expect(more.length).toBeGreaterThan(100);
    await queue.close();
    expect(await reopened(recorded, setup)).toEqual(more);
  });

  test('close and reopen work on a full disk, and acknowledging frees it then', async () => {
    const first = await openQueue(disk, folder, setup);
    const ids = await fill(first);
    disk.fill();
    await first.close();
    const queue = await openQueue(disk, folder, setup);
    expect(queue.depth).toBe(ids.length);
    for (const delivery of await receiveAll(queue)) delivery.ack();
    await queue.flush();
    const more = await fill(queue, 10_000);
    expect(more.length).toBeGreaterThan(100);
    await queue.close();
    expect(await reopened(recorded, setup)).toEqual(more);
  });

  test('no unneeded file is left on a full disk', async () => {
    const queue = await openQueue(disk, folder, setup);
    await fill(queue);
    expect(names().filter((name) => /\.(new|tmp|damaged|bad)$/.test(name))).toEqual([]);
    for (const name of names()) expect(recorded.disk.get(`${folder}/${name}`)?.length).toBeGreaterThan(0);
    await queue.close();
  });

  test('a crash at any time loses no message, and delivers again only messages whose acknowledgement was not flushed', async () => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + runs(2); seed++) {
      const random = new Random(seed);
      recorded = new RecordingFileSystem();
      disk = new SmallDisk(recorded, CAPACITY);
      const queue = await openQueue(disk, folder, setup);
      const ids = await fill(queue);
      await queue.flush();
      const deliveries = await receiveAll(queue);
      const flushed: { at: number; acked: number }[] = [{ at: recorded.log.length, acked: 0 }];
      for (let acked = 0; acked < deliveries.length;) {
        const next = Math.min(deliveries.length, acked + 40);
        for (const delivery of deliveries.slice(acked, next)) delivery.ack();
        acked = next;
        await queue.flush();
        flushed.push({ at: recorded.log.length, acked });
      }
      const [begun, end] = [flushed[0]?.at ?? 0, recorded.log.length];
      await queue.close();
      for (let i = 0; i < 12; i++) {
        const point = begun + random.below(end - begun + 1);
        const remains = random.pick([nothingRemains, allRemains, someRemains(random)]);
        const left = await reopened(new RecordingFileSystem(recorded.afterPowerCut(point, remains)), setup);
        const sure = flushed.filter(({ at }) => at <= point).at(-1)?.acked ?? 0;
        const begunToSave = flushed.find(({ at }) => at > point)?.acked ?? deliveries.length;
        expect(left, `seed ${seed} at ${point}`).toEqual(ids.slice(ids.length - left.length));
        expect(left.length, `seed ${seed} at ${point}`).toBeLessThanOrEqual(ids.length - sure);
        expect(left.length, `seed ${seed} at ${point}`).toBeGreaterThanOrEqual(ids.length - begunToSave);
      }
    }
  });
});

const setup: Setup = { maxBytesPerFile: 100_000 };
/** More than the cursor has room for. */
const COUNT = 3_000;

async function filled(): Promise<{ queue: DiskQueue; deliveries: Awaited<ReturnType<typeof receiveAll>> }> {
  disk.capacity = Infinity;
  const queue = await openQueue(disk, folder, setup);
  await Promise.all(Array.from({ length: COUNT }, (_, id) => queue.put(message(id))));
  const deliveries = await receiveAll(queue);
  disk.fill();
  return { queue, deliveries };
}

const even = (_: unknown, i: number): boolean => i % 2 === 0;
const odd = (_: unknown, i: number): boolean => i % 2 === 1;

test('acknowledgements out of order are written as far as the full disk has space', async () => {
  const { queue, deliveries } = await filled();
  const acked = deliveries.slice(0, 1_000).filter(odd);
  for (const delivery of acked) delivery.ack();
  await queue.flush();
  await queue.close();
  const left = await reopened(recorded, setup);
  expect(left).toHaveLength(COUNT - acked.length);
  expect(left.slice(0, 500)).toEqual(Array.from({ length: 500 }, (_, i) => 2 * i));
});

test('acknowledgements out of order stay in memory, and flush rejects, until the disk has space', async () => {
  const { queue, deliveries } = await filled();
  for (const delivery of deliveries.filter(odd)) delivery.ack();
  await expect(queue.flush()).rejects.toMatchObject({ code: 'ERR_QUEUE_IO', cause: { code: 'ENOSPC' } });
  await expect(queue.flush()).rejects.toMatchObject({ code: 'ERR_QUEUE_IO' });
  const killed = new RecordingFileSystem(recorded.afterPowerCut(recorded.log.length, allRemains));
  disk.capacity += 400_000;
  await queue.flush();
  await queue.close();
  expect(await reopened(recorded, setup)).toEqual(Array.from({ length: COUNT }, (_, i) => i).filter(even));
  expect((await reopened(killed, setup)).length).toBeLessThan(COUNT - 800); // those that fit were written
});

test('acknowledgements out of order are written when those before them free the disk', async () => {
  const { queue, deliveries } = await filled();
  for (const delivery of deliveries.filter(odd)) delivery.ack();
  await expect(queue.flush()).rejects.toMatchObject({ code: 'ERR_QUEUE_IO' });
  for (const delivery of deliveries.slice(0, 1_000).filter(even)) delivery.ack();
  await queue.flush(); // segments have gone
  await queue.put(message(9_999));
  await queue.close();
  const left = Array.from({ length: COUNT }, (_, i) => i).filter((i) => i >= 1_000 && i % 2 === 0);
  expect(await reopened(recorded, setup)).toEqual([...left, 9_999]);
});

test('a cursor of version 1 is replaced as soon as the disk has space', async () => {
  const setup: Setup = { maxBytesPerFile: 20_000 };
  const queue = await openQueue(disk, folder, setup);
  const ids = await fill(queue);
  await queue.close();
  // As an older version leaves it that has acknowledged nothing.
  await disk.unlink(`${folder}/${NAME}.cursor`);
  const cursor = await disk.create(`${folder}/${NAME}.cursor`);
  await cursor.write(Buffer.from('89455343430d0a1a', 'hex'), 0);
  await cursor.close();
  disk.fill();
  const again = await openQueue(disk, folder, setup);
  const deliveries = await receiveAll(again);
  expect(deliveries.map(idOf)).toEqual(ids);
  for (const delivery of deliveries) delivery.ack();
  await expect(again.flush()).rejects.toMatchObject({ code: 'ERR_QUEUE_IO', cause: { code: 'ENOSPC' } });
  disk.capacity += 100_000;
  await again.flush();
  await again.close();
  expect(await reopened(recorded, setup)).toEqual([]);
});

test.each(FORMATS)(
  '%s: an overflow queue in front of a full disk queue works again as well',
  async (format) => {
    const setup: Setup = { format, maxBytesPerFile: 20_000 };
    const queue = new OverflowQueue({ memorySize: 2, backend: await openQueue(disk, folder, setup) });
    let id = 0;
    let refusal: unknown;
    while (refusal === undefined) {
      await queue.put(message(id++)).catch((error: unknown) => {
        refusal = error;
      });
    }
    expect(refusal).toMatchObject({ code: 'ERR_QUEUE_IO' });
    for (let i = 0; i < id - 1; i++) {
      const delivery = await queue.receive();
      expect(idOf(delivery)).toBe(i);
      delivery.ack();
    }
    await settled();
    await queue.put(message(id)); // memory has room
    await queue.close();
    expect(await reopened(recorded, setup)).toEqual([id]);
  },
);
