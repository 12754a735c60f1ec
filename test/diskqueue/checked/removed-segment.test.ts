import { beforeEach, expect, test } from 'vitest';
import { examineQueue, reportOf } from '../../../src/diskqueue/checked/examine-queue.ts';
import { DiskWorld, put, receive, TEN } from '../crash/disk-world.ts';
import { NAME, type Setup } from '../crash/open-queue.ts';
import { Random } from '../random.ts';
import {
  allRemains,
  nothingRemains,
  RecordingFileSystem,
  someRemains,
  type Disk,
} from '../recording-file-system.ts';

/** Two messages in each segment. */
const SETUP: Setup = { maxBytesPerFile: 256 };
const TWO_OF = [0, 2, 4, 6, 8].map((i) => TEN.slice(i, i + 2));

let world: DiskWorld;
beforeEach(() => {
  world = new DiskWorld(SETUP);
});

async function takeFrom(disk: Disk): Promise<string[]> {
  const queue = await world.open(new RecordingFileSystem(disk));
  const messages = await receive(queue, 'ack');
  await queue.close();
  return messages;
}

async function disks(messages: readonly string[]): Promise<Record<'closed' | 'flushed' | 'killed', Disk>> {
  const queue = await world.open();
  await put(queue, ...messages);
  const killed = world.afterKill();
  await queue.flush();
  const flushed = world.afterKill();
  await queue.close();
  return { closed: world.files.disk, flushed, killed };
}

/** Opens a queue without that segment, twice. */
async function checkWithout(disk: Disk, path: string, left: readonly string[]): Promise<void> {
  disk.delete(path);
  const removed = new RecordingFileSystem(disk);
  const { problems } = reportOf(await examineQueue(removed, world.folder, NAME));
  world.events = [];
  const queue = await world.open(removed);
  expect(await receive(queue, 'nack')).toEqual(left);
  expect(world.events).toEqual(problems);
  await put(queue, 'new');
  await queue.close();
  const again = await world.open(removed);
  expect(await receive(again, 'ack')).toEqual([...left, 'new']);
  await again.close();
  expect(world.events, 'it is told of once').toHaveLength(1);
}

test.each(['closed', 'flushed'] as const)(
  'a removed segment of a queue that was %s is reported with its messages',
  async (state) => {
    const disk = (await disks(TEN))[state];
    for (const [i, path] of world.segments(disk).entries()) {
      await checkWithout(new Map(disk), path, TWO_OF.filter((_, j) => j !== i).flat());
      expect(world.events).toMatchObject([{ firstSequence: 2 * i + 1, lastSequence: 2 * i + 2 }]);
    }
  },
);

test('a removed segment of a queue that was killed is reported, the last one without its messages', async () => {
  const disk = (await disks(TEN)).killed;
  const paths = world.segments(disk);
  for (const [i, path] of paths.entries()) {
    await checkWithout(new Map(disk), path, TWO_OF.filter((_, j) => j !== i).flat());
    const missing = { file: path, offset: 0, bytes: 0, reason: 'the segment is missing' };
    if (i < paths.length - 1) expect(world.events).toMatchObject([{ firstSequence: 2 * i + 1 }]);
    else expect(world.events).toEqual([missing]);
  }
});

test('a removed segment is reported when it was the only one', async () => {
  for (const [state, disk] of Object.entries(await disks(['a', 'b']))) {
    await checkWithout(disk, world.segments(disk)[0] ?? '', []);
    expect(world.events[0]?.lastSequence).toBe(state === 'killed' ? undefined : 2);
  }
});

test('a removed segment is not reported when all of its messages were acknowledged', async () => {
  const queue = await world.open();
  await put(queue, ...TEN);
  await receive(queue, 'ack');
  await put(queue, 'a');
  await receive(queue, 'ack');
  await queue.close();
  const { disk } = world.files;
  for (const path of world.segments(disk)) disk.delete(path);
  expect(await takeFrom(disk)).toEqual([]);
  expect(world.events).toEqual([]);
});

test('a removed segment is not confused with a segment that the queue itself has deleted, whenever the power fails', async () => {
  const queue = await world.open();
  await put(queue, ...TEN);
  const begun = world.files.log.length;
  await receive(queue, 'ack');
  await queue.flush();
  await queue.empty();
  await put(queue, 'more');
  await receive(queue, 'ack');
  await queue.close();
  const random = new Random(2);
  for (let point = begun; point <= world.files.log.length; point++) {
    for (const remains of [nothingRemains, allRemains, someRemains(random)]) {
      await takeFrom(world.files.afterPowerCut(point, remains));
      expect(world.events, `at ${point}`).toEqual([]);
    }
  }
});
