import { EmbeddedBroker } from 'escapement/tasks';
import { checkBroker, ManualClock } from 'escapement/testing';
import { expect, test } from 'vitest';
import { INTERNALS } from '../../../../src/tasks/broker/embedded/embedded-broker.ts';
import { expectCode, LONG_MS, newTask, QUEUE, take } from '../../../conformance/broker/support.ts';
import { RecordingFileSystem } from '../../../diskqueue/recording-file-system.ts';
import { SmallDisk } from '../../../diskqueue/small-disk.ts';
import { folderOfTest } from '../../../folder.ts';
import { openForTest } from './open-folder.ts';

test('tasks of twenty thousand keys that are held back start about as fast as those of one key', async () => {
  const cpuMs = [];
  for (const keyOf of [String, () => 'a']) {
    const broker = await EmbeddedBroker.open({ clock: new ManualClock() });
    await broker.enqueueMany(Array.from({ length: 20_000 }, (_, n) => newTask({ key: keyOf(n) })));
    await broker.setLimits(QUEUE, { concurrency: 1, perKey: { rate: { tasks: 1_000, perMs: 1 } } });
    const { user } = process.cpuUsage();
    for (let n = 0; n < 500; n++) await broker.complete(await take(broker));
    cpuMs.push((process.cpuUsage().user - user) / 1_000);
  }
  // If each looked at every key, it would be hundreds of times as long.
  expect(cpuMs[0]).toBeLessThan(20 * (cpuMs[1] ?? NaN) + 100);
});

test('a reopened broker keeps limits and the tokens that were taken, but not those from before the limits were removed', async () => {
  const limits = { rate: { tasks: 2, perMs: LONG_MS }, perKey: { rate: { tasks: 1, perMs: LONG_MS } } };
  const [dataPath, clock] = [folderOfTest(), new ManualClock()];
  let broker = await openForTest(dataPath, { clock });
  await broker.setLimits(QUEUE, limits);
  for (const key of ['a', 'a', 'b', 'b', 'c']) await broker.enqueue(newTask({ key }));
  await broker.complete(await take(broker));
  await broker.close();
  broker = await openForTest(dataPath, { clock });
  expect(await broker.limits(QUEUE)).toMatchObject(limits);
  expect(await broker.keys(QUEUE, { page: 1, size: 1 })).toMatchObject([{ key: 'a', heldBy: 'rate' }]);
  expect(await broker.dequeue(QUEUE, 10, LONG_MS)).toMatchObject([{ message: { key: 'b' } }]);
  await broker.setLimits(QUEUE, undefined);
  await broker.setLimits(QUEUE, limits);
  await broker.close();
  broker = await openForTest(dataPath, { clock });
  expect(await broker.dequeue(QUEUE, 10, LONG_MS)).toHaveLength(2);
});

test('pausing and resuming a queue with a thousand keys writes less than a kilobyte, and gives no key a token', async () => {
  const [dataPath, clock] = [folderOfTest(), new ManualClock()];
  let broker = await openForTest(dataPath, { clock });
  await broker.setLimits(QUEUE, { perKey: { rate: { tasks: 1, perMs: LONG_MS } } });
  await broker.enqueueMany(Array.from({ length: 2_000 }, (_, n) => newTask({ key: `key ${n % 1_000}` })));
  expect(await broker.dequeue(QUEUE, 2_000, LONG_MS)).toHaveLength(1_000);
  await broker.flush();
  const { journal } = broker[INTERNALS]();
  const bytesBefore = journal?.logBytes ?? NaN;
  await broker.pause(QUEUE);
  await broker.resume(QUEUE);
  expect(journal?.logBytes).toBeLessThan(bytesBefore + 1_000);
  await broker.close();
  broker = await openForTest(dataPath, { clock });
  expect(await broker.dequeue(QUEUE, 2_000, LONG_MS)).toHaveLength(0);
});

test('a disk that is full costs no run its place, and frees none', async () => {
  const disk = new SmallDisk(new RecordingFileSystem(), 1e9);
  const clock = new ManualClock();
  const broker = await openForTest(folderOfTest(), { clock }, disk);
  await broker.setLimits(QUEUE, { concurrency: 2, perKey: { concurrency: 1 } });
  for (const key of ['a', 'a', 'b', 'b', 'c']) await broker.enqueue(newTask({ key }));
  const [a, b] = await broker.dequeue(QUEUE, 10, LONG_MS);
  if (a === undefined || b === undefined) throw new Error('two keys have a place');
  disk.capacity = 0;
  const large = newTask({ payload: new Uint8Array(9_000) });
  await expectCode('ERR_BROKER_UNAVAILABLE', broker.enqueue(large));
  await expectCode('ERR_BROKER_UNAVAILABLE', broker.complete(a));
  disk.capacity = 1e9;
  await clock.advanceAsync(1_000);
  checkBroker(broker);
  expect(await broker.dequeue(QUEUE, 10, LONG_MS)).toEqual([]);
  await broker.complete(a);
  await broker.complete(b);
  const leased = await broker.dequeue(QUEUE, 10, LONG_MS);
  expect(leased.map(({ message }) => message.key)).toEqual(['c', 'a']);
});
