import { beforeEach, expect, test } from 'vitest';
import { examineQueue, reportOf } from '../../../src/diskqueue/checked/examine-queue.ts';
import type { DiskQueue } from '../../../src/diskqueue/disk-queue.ts';
import type { CorruptionEvent } from '../../../src/diskqueue/message-log.ts';
import { folderOfFile } from '../../folder.ts';
import { NAME, openQueue, receiveAll, type Setup } from '../crash/open-queue.ts';
import { Random } from '../random.ts';
import {
  allRemains,
  nothingRemains,
  RecordingFileSystem,
  someRemains,
  type Disk,
} from '../recording-file-system.ts';

const folder = folderOfFile();

let files: RecordingFileSystem;
let events: CorruptionEvent[];
beforeEach(() => {
  files = new RecordingFileSystem();
  events = [];
});

/** Two messages in each segment. */
const SETUP: Setup = { maxBytesPerFile: 256 };
const TEN = Array.from({ length: 10 }, (_, i) => `message ${i}`);
const TWO_OF = [0, 2, 4, 6, 8].map((i) => TEN.slice(i, i + 2));

function open(on = files): Promise<DiskQueue> {
  return openQueue(on, folder, SETUP, (event) => events.push(event));
}

async function put(queue: DiskQueue, ...messages: string[]): Promise<void> {
  for (const message of messages) await queue.put(Buffer.from(message));
}

async function receive(queue: DiskQueue, settle: 'ack' | 'nack'): Promise<string[]> {
  const deliveries = await receiveAll(queue);
  for (const delivery of deliveries) delivery[settle]();
  return deliveries.map(({ data }) => Buffer.from(data).toString());
}

async function takeFrom(disk: Disk): Promise<string[]> {
  const queue = await open(new RecordingFileSystem(disk));
  const messages = await receive(queue, 'ack');
  await queue.close();
  return messages;
}

function afterKill(): Disk {
  return files.afterPowerCut(files.log.length, allRemains);
}

async function disks(messages: readonly string[]): Promise<Record<'closed' | 'flushed' | 'killed', Disk>> {
  const queue = await open();
  await put(queue, ...messages);
  const killed = afterKill();
  await queue.flush();
  const flushed = afterKill();
  await queue.close();
  return { closed: files.disk, flushed, killed };
}

function segmentsOf(disk: Disk): string[] {
  return [...disk.keys()].filter((path) => path.endsWith('.segment')).sort();
}

/** Opens a queue without that segment, twice. */
async function checkWithout(disk: Disk, path: string, left: readonly string[]): Promise<void> {
  disk.delete(path);
  const removed = new RecordingFileSystem(disk);
  const { problems } = reportOf(await examineQueue(removed, folder, NAME));
  events = [];
  const queue = await open(removed);
  expect(await receive(queue, 'nack')).toEqual(left);
  expect(events).toEqual(problems);
  await put(queue, 'new');
  await queue.close();
  const again = await open(removed);
  expect(await receive(again, 'ack')).toEqual([...left, 'new']);
  await again.close();
  expect(events, 'it is told of once').toHaveLength(1);
}

test.each(['closed', 'flushed'] as const)(
  'a removed segment of a queue that was %s is reported with its messages',
  async (state) => {
    const disk = (await disks(TEN))[state];
    for (const [i, path] of segmentsOf(disk).entries()) {
      await checkWithout(new Map(disk), path, TWO_OF.filter((_, j) => j !== i).flat());
      expect(events).toMatchObject([{ firstSequence: 2 * i + 1, lastSequence: 2 * i + 2 }]);
    }
  },
);

test('a removed segment of a queue that was killed is reported, the last one without its messages', async () => {
  const disk = (await disks(TEN)).killed;
  const paths = segmentsOf(disk);
  for (const [i, path] of paths.entries()) {
    await checkWithout(new Map(disk), path, TWO_OF.filter((_, j) => j !== i).flat());
    if (i < paths.length - 1) expect(events).toMatchObject([{ firstSequence: 2 * i + 1 }]);
    else expect(events).toEqual([{ file: path, offset: 0, bytes: 0, reason: 'the segment is missing' }]);
  }
});

test('a removed segment is reported when it was the only one', async () => {
  for (const [state, disk] of Object.entries(await disks(['a', 'b']))) {
    await checkWithout(disk, segmentsOf(disk)[0] ?? '', []);
    expect(events[0]?.lastSequence).toBe(state === 'killed' ? undefined : 2);
  }
});

test('a removed segment is not reported when all of its messages were acknowledged', async () => {
  const queue = await open();
  await put(queue, ...TEN);
  await receive(queue, 'ack');
  await put(queue, 'a');
  await receive(queue, 'ack');
  await queue.close();
  const { disk } = files;
  for (const path of segmentsOf(disk)) disk.delete(path);
  expect(await takeFrom(disk)).toEqual([]);
  expect(events).toEqual([]);
});

test('a removed segment is not confused with a segment that the queue itself has deleted, whenever the power fails', async () => {
  const queue = await open();
  await put(queue, ...TEN);
  const begun = files.log.length;
  await receive(queue, 'ack');
  await queue.flush();
  await queue.empty();
  await put(queue, 'more');
  await receive(queue, 'ack');
  await queue.close();
  const random = new Random(2);
  for (let point = begun; point <= files.log.length; point++) {
    for (const remains of [nothingRemains, allRemains, someRemains(random)]) {
      await takeFrom(files.afterPowerCut(point, remains));
      expect(events, `at ${point}`).toEqual([]);
    }
  }
});
