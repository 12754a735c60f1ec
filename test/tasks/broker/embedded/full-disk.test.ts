import { setImmediate as nextTurn } from 'node:timers/promises';
import { EmbeddedBroker } from 'escapement/tasks';
import { checkBroker, checkBrokerLog, ManualClock } from 'escapement/testing';
import { beforeEach, expect, test } from 'vitest';
import type { FileSystem } from '../../../../src/log/file-system.ts';
import { INTERNALS } from '../../../../src/tasks/broker/embedded/embedded-broker.ts';
import { LONG_MS, newTask, QUEUE, take } from '../../../conformance/broker/support.ts';
import { RecordingFileSystem } from '../../../diskqueue/recording-file-system.ts';
import { SmallDisk } from '../../../diskqueue/small-disk.ts';
import { folderOfTest } from '../../../folder.ts';
import { codeOf } from '../../support/bench.ts';
import { openForTest } from './open-folder.ts';

/* What goes on in a broker while its disk is full, and when it has read its log again because there was room. */

/** For the lock; the files are in memory. */
let dataPath: string;
let clock: ManualClock;

beforeEach(() => {
  dataPath = folderOfTest();
  clock = new ManualClock({ nowMs: 5_000, wallMs: 1_795_262_400_000 });
});

function open(files: FileSystem): Promise<EmbeddedBroker> {
  return openForTest(dataPath, { clock, durability: 'os', maxBytesPerFile: 67_108_864 }, files);
}

/** Needs room that there is not: changes are refused from now on. */
async function fill(broker: EmbeddedBroker): Promise<void> {
  const large = newTask({ payload: new Uint8Array(10_000) });
  await expect(broker.enqueue(large)).rejects.toMatchObject({ code: 'ERR_BROKER_UNAVAILABLE' });
}

/** Until the log was read again. Its earlier files are closed in turns of their own, as a read leaves one open. */
async function giveSpace(disk: SmallDisk, broker: EmbeddedBroker): Promise<void> {
  disk.capacity = 1e9;
  clock.advance(1_000);
  const { journal } = broker[INTERNALS]();
  while (journal?.isAvailable === false) {
    await broker.task('other', 'large');
    clock.advance(1);
  }
}

// The log is read again before the removal, which waits for nothing else, has come to its end.
test.each<[string, number, (broker: EmbeddedBroker) => Promise<unknown>]>([
  ['a deletion', 20_000, (broker) => broker.change('many', { state: 'pending' }, 'delete')],
  ['the removal of a queue', 50_000, (broker) => broker.removeQueue('many', { force: true })],
])('%s rejects, and the folder has what the memory has', async (_, count, change) => {
  const disk = new SmallDisk(new RecordingFileSystem(), 1e9);
  let broker = await open(disk);
  await broker.enqueue(newTask());
  await broker.enqueueMany(Array.from({ length: count }, () => newTask({ queue: 'many' })));
  disk.capacity = 0;
  const filling = fill(broker); // is in the record with which the change begins
  const changed = codeOf(change(broker));
  await filling;
  disk.capacity = 1e9;
  clock.advance(1_000);
  expect(await changed).toBe('ERR_BROKER_UNAVAILABLE');
  await clock.advanceAsync(2_000);
  await broker.enqueue(newTask());
  checkBroker(broker);
  await checkBrokerLog(broker);
  const { counts } = await broker.queueStats('many');
  await broker.close();
  broker = await open(disk);
  expect((await broker.queueStats('many')).counts).toEqual(counts);
  expect(counts.pending).toBe(count);
});

test('the removal of a queue that was written resolves although the disk is full, or the broker is closed, before its tasks are removed', async () => {
  for (const interrupt of [fill, (broker: EmbeddedBroker) => broker.close()]) {
    const disk = new SmallDisk(new RecordingFileSystem(), 1e9);
    let broker = await open(disk);
    await broker.enqueueMany(Array.from({ length: 20_000 }, () => newTask({ queue: 'many' })));
    const removed = broker.removeQueue('many', { force: true });
    await broker.flush();
    disk.capacity = 0;
    await interrupt(broker);
    await expect(removed).resolves.toBeUndefined();
    await broker.close();
    expect(clock.pendingWakeups).toBe(0);
    disk.capacity = 1e9;
    broker = await open(disk);
    expect(await broker.queues()).toEqual([]);
    await broker.close();
  }
});

test('a task that expires while the log is read again is counted out of its live bytes', async () => {
  const disk = new SmallDisk(new RecordingFileSystem(), 1e9);
  const broker = await open(disk);
  await broker.enqueue(newTask({ id: 'large', queue: 'other', payload: new Uint8Array(2_000) }));
  await broker.enqueue(newTask({ retentionMs: 500 }));
  await broker.complete(await take(broker));
  disk.capacity = 0;
  await fill(broker);
  await giveSpace(disk, broker);
  await broker.enqueue(newTask({ processAtMs: clock.wallNow() + LONG_MS }));
  checkBroker(broker);
});

test('what a clock changes while the log is read again is as lost as the refused changes that it follows', async () => {
  const disk = new SmallDisk(new RecordingFileSystem(), 1e9);
  let broker = await open(disk);
  await broker.enqueue(newTask({ id: 'large', queue: 'other', payload: new Uint8Array(2_000) }));
  for (let ms = 1_000; ms < 1_020; ms++) await broker.enqueue(newTask({ retentionMs: ms }));
  const running = await broker.dequeue(QUEUE, 20, LONG_MS);
  disk.capacity = 0;
  const filling = fill(broker); // is in the record with which the completions begin
  const completed = await Promise.allSettled(running.map((task) => broker.complete(task)));
  expect(completed.map(({ status }) => status)).toEqual(running.map(() => 'rejected'));
  await filling;
  await giveSpace(disk, broker);
  await broker.enqueue(newTask({ queue: 'other' }));
  checkBroker(broker);
  await checkBrokerLog(broker);
  await broker.close();
  broker = await open(disk);
  expect((await broker.queueStats(QUEUE)).counts.pending).toBe(20);
});

test('files of which nothing is needed any more are removed although the disk is full', async () => {
  const disk = new SmallDisk(new RecordingFileSystem(), 1e9);
  const broker = await openForTest(dataPath, { clock, durability: 'os', maxBytesPerFile: 4_096 }, disk);
  await broker.enqueue(newTask({ id: 'large', queue: 'other', payload: new Uint8Array(2_000) }));
  for (let nth = 0; nth < 60; nth++)
    await broker.enqueue(newTask({ queue: 'many', payload: new Uint8Array(3_000) }));
  await broker.removeQueue('many', { force: true });
  const countFiles = async (): Promise<number> => (await disk.list(dataPath)).length;
  while ((await countFiles()) > 55) await nextTurn();
  disk.capacity = 0;
  await fill(broker);
  expect(await countFiles()).toBeGreaterThan(10);
  while ((await countFiles()) > 10) await nextTurn();
  await giveSpace(disk, broker);
});
