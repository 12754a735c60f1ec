import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  EmbeddedBroker,
  type CorruptionEvent,
  type EmbeddedBrokerOptions,
  type LeasedTask,
  type NewTask,
} from 'escapement/tasks';
import { describe, expect, test, vi } from 'vitest';
import type { FileSystem } from '../../../../src/log/file-system.ts';
import { INTERNALS } from '../../../../src/tasks/broker/embedded/embedded-broker.ts';
import { Kind } from '../../../../src/tasks/broker/embedded/journal-format.ts';
import type { Journal } from '../../../../src/tasks/broker/embedded/journal.ts';
import { LONG_MS, newTask, QUEUE, take } from '../../../conformance/broker/support.ts';
import { FaultyFileSystem } from '../../../diskqueue/faulty-file-system.ts';
import { RecordingFileSystem, type Disk } from '../../../diskqueue/recording-file-system.ts';
import { folderOfFile } from '../../../folder.ts';
import { RecordingMetrics } from '../../../metrics/recording-metrics.ts';
import { openForTest } from './open-folder.ts';

/** For the lock; the files are in memory. */
const folder = folderOfFile();

const open = (files: FileSystem, options: EmbeddedBrokerOptions = {}): Promise<EmbeddedBroker> =>
  openForTest(folder, options, files);

test('tasks that stay are not written again and again, however many files they fill', async () => {
  const disk = new RecordingFileSystem();
  const broker = await open(disk, { durability: 'os' });
  for (let at = 0; at < 300; at++) await broker.enqueue(newTask({ payload: new Uint8Array(1_000) }));
  const written = disk.log.reduce((sum, done) => sum + (done.kind === 'write' ? done.bytes.length : 0), 0);
  expect((await disk.list(folder)).length).toBeGreaterThan(80);
  expect(written).toBeLessThan(400_000);
});

test.each([
  ['tasks of which a file has room for one', 10_000, 600, 4_810, 0],
  ['events of a schedule that are larger than a file', 4_096, 10, 100, 200],
])('a log of %s is not written again and again', async (_, maxBytesPerFile, tasks, payloadBytes, events) => {
  const files = new FaultyFileSystem(new RecordingFileSystem());
  const broker = await open(files, { maxBytesPerFile, durability: 'os' });
  for (let nth = 0; nth < events; nth++)
    await broker.recordEnqueueEvent('entry', { atMs: 1_000 + nth, taskId: `task ${nth}` });
  const ofOne = Array.from({ length: tasks }, () => newTask({ payload: new Uint8Array(payloadBytes) }));
  for (const task of ofOne) await broker.enqueue(task);
  await drained(broker);
  files.calls.clear();
  for (let nth = 0; nth < 20; nth++) await broker.enqueue(newTask({ payload: new Uint8Array(payloadBytes) }));
  await drained(broker);
  expect(files.calls.get('write')).toBeLessThan(200);
});

test('a log with many queues in small files is not written again and again', async () => {
  const files = new FaultyFileSystem(new RecordingFileSystem());
  const broker = await open(files, { durability: 'os' });
  for (let nth = 0; nth < 300; nth++) await broker.enqueue(newTask({ queue: `queue ${nth}` }));
  await churn(broker, 40);
  await drained(broker);
  files.calls.clear();
  await drained(broker);
  expect(files.calls.get('write') ?? 0, 'it has no end').toBe(0);
  // For ten files of tasks, the records of all queues, which fill ten files, are written once or twice.
  await churn(broker, 20);
  await drained(broker);
  expect(files.calls.get('create')).toBeLessThan(40);
});

/** Enqueues and completes tasks. */
async function churn(broker: EmbeddedBroker, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    await broker.enqueueMany(Array.from({ length: 5 }, () => newTask({ payload: new Uint8Array(200) })));
    for (const task of await broker.dequeue(QUEUE, 5, LONG_MS)) await broker.complete(task);
  }
}

/** Lets each of so many keys take the only token of its bucket for an hour. */
async function takeTokens(broker: EmbeddedBroker, queue: string, keys: number): Promise<void> {
  await broker.setLimits(queue, { perKey: { rate: { tasks: 1, perMs: LONG_MS } } });
  for (const round of ['first', 'second']) {
    const nth = (_: unknown, n: number): NewTask => newTask({ id: `${round} ${n}`, queue, key: `${n}` });
    await broker.enqueueMany(Array.from({ length: keys }, nth));
  }
  const taken = await broker.dequeue(queue, 2 * keys, LONG_MS);
  expect(taken).toHaveLength(keys);
  await Promise.all(taken.map((task) => broker.complete(task)));
}

test('a process that is killed while compaction writes buckets again keeps all of them', async () => {
  const disk = new RecordingFileSystem();
  const broker = await open(disk);
  await takeTokens(broker, 'limited', 400);
  const images: Disk[] = [];
  const isDone = churn(broker, 30).then(() => true);
  do images.push(disk.disk);
  while (!(await Promise.race([isDone, nextTurn(false)])));
  await broker.close();
  expect(new Set(images.map((image) => [...image.keys()].join())).size).toBeGreaterThan(10);
  for (const image of images.filter((_, nth) => nth % Math.ceil(images.length / 60) === 0)) {
    const reopened = await open(new RecordingFileSystem(image));
    expect((await reopened.queueStats('limited')).held.rate).toBe(400);
    await reopened.close();
  }
});

test.each<[string, (broker: EmbeddedBroker) => Promise<unknown>]>([
  ['is removed', (broker) => broker.removeQueue('limited', { force: true })],
  ['loses its limits', (broker) => broker.setLimits('limited', undefined)],
])('a queue that %s while compaction writes its buckets again has none afterwards', async (_, change) => {
  const broker = await open(new RecordingFileSystem());
  await takeTokens(broker, 'limited', 2_500);
  const journal = broker[INTERNALS]().journal as Journal;
  const write = journal.write.bind(journal);
  let changed: Promise<unknown> | undefined;
  let writtenAfterwards = 0;
  vi.spyOn(journal, 'write').mockImplementation((kind, ...values) => {
    if (kind === Kind.bucket && changed === undefined)
      void nextTurn().then(() => (changed ??= change(broker)));
    else if (kind === Kind.bucket) writtenAfterwards++;
    return write(kind, ...(values as never));
  });
  while (changed === undefined) await churn(broker, 1);
  await changed;
  expect(writtenAfterwards).toBe(0);
});

/** The compaction goes on by itself, and must come to an end. */
async function drained(broker: EmbeddedBroker): Promise<void> {
  for (let turn = 0; turn < 100; turn++) await broker.flush();
}

test('a payload that was replaced stays so, if the file of both has other tasks between them', async () => {
  const broker = await open(new RecordingFileSystem(), { maxBytesPerFile: 1_048_576, durability: 'os' });
  const [before, after] = [new Uint8Array(2_000).fill(1), new Uint8Array(2_000).fill(2)];
  const others = Array.from({ length: 250 }, () => newTask({ queue: 'q', payload: new Uint8Array(1_000) }));
  await broker.enqueue(newTask({ id: 'a', payload: before, processAtMs: Date.now() + LONG_MS }));
  await broker.enqueueMany(others);
  await broker.updatePayload(QUEUE, 'a', after);
  await broker.removeQueue('q', { force: true });
  for (let round = 0; round < 20; round++) {
    await broker.enqueueMany(others);
    await broker.removeQueue('q', { force: true });
    for (let turn = 0; turn < 20; turn++)
      await broker.recordEnqueueEvent('entry', { atMs: 1_000, taskId: 'a' });
    expect((await broker.task(QUEUE, 'a')).message.payload, `after ${round}`).toEqual(after);
  }
});

/** A disk that calls back before a file is removed. */
class WatchedDisk extends RecordingFileSystem {
  onUnlink = (): void => undefined;

  override unlink(path: string): Promise<void> {
    this.onUnlink();
    return super.unlink(path);
  }
}

test.each(['always', 'os'] as const)(
  'payloads that are read while a file is removed are found where they were written again (%s)',
  async (durability) => {
    const damages: CorruptionEvent[] = [];
    const disk = new WatchedDisk();
    const broker = await open(disk, { durability, onCorruption: (event) => damages.push(event) });
    const payload = new Uint8Array(2_000).fill(7);
    for (let nth = 0; nth < 4; nth++) await broker.enqueue(newTask({ queue: 'kept', payload }));
    const leases: Promise<readonly LeasedTask[]>[] = [];
    disk.onUnlink = () => leases.push(broker.dequeue('kept', 1, LONG_MS));
    for (let nth = 0; nth < 20; nth++) {
      await broker.enqueue(newTask({ payload: new Uint8Array(1_500) }));
      await broker.complete(await take(broker));
      for (const [task] of await Promise.all(leases.splice(0))) {
        if (task === undefined) continue;
        expect(task.message.payload).toEqual(payload);
        await broker.release(task);
      }
    }
    expect(damages).toEqual([]);
    expect((await broker.queueStats('kept')).counts).toMatchObject({ pending: 4, archived: 0 });
  },
);

describe('operations wait for a small step of the compaction, and the others need no operation', () => {
  const count = 1_000;
  const large = (nth: number): NewTask => {
    const queue = nth % 10 === 0 ? 'kept' : 'removed';
    return newTask({ id: `${nth}`, queue, payload: new Uint8Array(20_000) });
  };
  const maxBytesPerFile = 4_194_304;
  async function opened(disk: FileSystem, metrics: RecordingMetrics): Promise<EmbeddedBroker> {
    const broker = await open(disk, { maxBytesPerFile, durability: 'os', metrics });
    for (let nth = 0; nth < count; nth++) await broker.enqueue(large(nth));
    return broker;
  }
  function isSmall(metrics: RecordingMetrics): boolean {
    const read = (name: string): number => metrics.readers.get(`escapement_broker_${name}`)?.() ?? 0;
    return read('log_bytes') <= 3 * read('live_bytes') + 2 * maxBytesPerFile;
  }

  test('operations wait for a small step of the compaction when tasks are removed one by one', async () => {
    const [disk, metrics] = [new RecordingFileSystem(), new RecordingMetrics()];
    const broker = await opened(disk, metrics);
    let most = 0;
    for (let nth = 0; nth < count; nth++) {
      const id = (nth * 377) % count; // in no order
      if (id % 10 === 0) continue;
      const before = disk.bytesRead;
      await broker.change('removed', { id: `${id}` }, 'delete');
      most = Math.max(most, disk.bytesRead - before);
      expect(isSmall(metrics), `after ${nth}`).toBe(true);
    }
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThan(1_048_576);
  });

  test('operations wait for a small step of the compaction when a queue is removed', async () => {
    const [disk, metrics] = [new RecordingFileSystem(), new RecordingMetrics()];
    const files = new FaultyFileSystem(disk);
    const broker = await opened(files, metrics);
    await broker.removeQueue('removed', { force: true });
    expect(isSmall(metrics)).toBe(false);
    await drained(broker);
    expect(isSmall(metrics)).toBe(true);
  });

  test('operations wait for a small step of the compaction when there is much that belongs to no task', async () => {
    const disk = new RecordingFileSystem();
    const broker = await open(disk, { maxBytesPerFile: 1_048_576, durability: 'os' });
    const events = Array.from({ length: 400 }, (_, nth) => ({ atMs: nth, taskId: `task ${nth}` }));
    for (let entry = 0; entry < 100; entry++)
      await Promise.all(events.map((event) => broker.recordEnqueueEvent(`entry ${entry}`, event)));
    let most = 0;
    let done = disk.log.length;
    for (let nth = 0; nth < 500; nth++) {
      await broker.enqueue(newTask({ id: 'a', payload: new Uint8Array(4_000) }));
      await broker.change(QUEUE, { id: 'a' }, 'delete');
      const written = disk.log.slice(done).map((one) => (one.kind === 'write' ? one.bytes.length : 0));
      done = disk.log.length;
      const bytesWritten = written.reduce((sum, bytes) => sum + bytes, 0);
      most = Math.max(most, bytesWritten);
    }
    expect(disk.log.some(({ kind }) => kind === 'unlink')).toBe(true);
    expect(most).toBeGreaterThan(65_536);
    expect(most).toBeLessThan(262_144);
    await drained(broker);
  });

  test('operations wait for a small step of the compaction when many files without live tasks are removed', async () => {
    const files = new FaultyFileSystem(new RecordingFileSystem());
    const broker = await open(files, { durability: 'os' });
    for (let nth = 0; nth < 60; nth++)
      await broker.enqueue(newTask({ queue: 'q', payload: new Uint8Array(3_000) }));
    await broker.removeQueue('q', { force: true });
    let most = 0;
    for (let nth = 0; nth < 10; nth++) {
      const before = files.calls.get('unlink') ?? 0;
      await broker.enqueue(newTask());
      most = Math.max(most, (files.calls.get('unlink') ?? 0) - before);
    }
    expect(most).toBeLessThanOrEqual(12);
    await drained(broker);
    expect(files.calls.get('unlink')).toBeGreaterThan(50);
  });
});

test('a file of a broker whose tasks are all done is removed without being read', async () => {
  const files = new FaultyFileSystem(new RecordingFileSystem());
  const broker = await open(files);
  files.calls.clear();
  for (let nth = 0; nth < 200; nth++) {
    await broker.enqueue(newTask({ payload: Buffer.alloc(200) }));
    await broker.complete(await take(broker));
  }
  expect(files.calls.get('create')).toBeGreaterThan(10);
  expect(files.calls.get('unlink')).toBeGreaterThan((files.calls.get('create') ?? 0) - 5);
  expect(files.calls.get('read') ?? 0).toBe(0);
});

test('a broker that is closed while its log is compacted writes nothing afterwards, and leaves no file open', async () => {
  const broken: string[] = [];
  for (let nth = 0; nth < 40; nth++) {
    const files = new FaultyFileSystem(new RecordingFileSystem());
    const broker = await open(files);
    for (let kept = 0; kept < 30; kept++)
      await broker.enqueue(newTask({ queue: 'kept', payload: Buffer.alloc(100) }));
    for (let done = 0; done < nth; done++) {
      await broker.enqueue(newTask({ payload: Buffer.alloc(300) }));
      await broker.complete(await take(broker));
    }
    const last = broker.enqueue(newTask());
    await new Promise(setImmediate);
    await Promise.all([last, broker.close()]);
    const calls = new Map(files.calls);
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    const opened = (calls.get('open') ?? 0) + (calls.get('create') ?? 0);
    if (opened !== calls.get('close'))
      broken.push(`${opened} opened, ${calls.get('close')} closed after ${nth}`);
    expect(files.calls).toEqual(calls);
  }
  expect(broken).toEqual([]);
});

/** How a round enqueues its tasks. */
type EnqueueAll = (broker: EmbeddedBroker, tasks: NewTask[]) => Promise<unknown>;

describe('the log stays below three times what is live and two files, however large a write is', () => {
  const inOneCall: EnqueueAll = (broker, tasks) => broker.enqueueMany(tasks);
  const atOnce: EnqueueAll = (broker, tasks) => Promise.all(tasks.map((task) => broker.enqueue(task)));

  test.each([
    ['half a file in one call', inOneCall, 65_536, 200, 40],
    ['half a file in a hundred calls', atOnce, 65_536, 200, 40],
    ['several files in one call', inOneCall, 4_096, 200, 40],
    ['several files in a hundred calls', atOnce, 4_096, 200, 40],
    ['two files of large payloads in one call', inOneCall, 131_072, 2_500, 30],
  ])(
    'the log stays small when enqueues write %s',
    async (_, enqueueAll, maxBytesPerFile, payloadBytes, rounds) => {
      const disk = new RecordingFileSystem();
      const metrics = new RecordingMetrics();
      const broker = await open(disk, { maxBytesPerFile, durability: 'os', metrics });
      const tasksOf = (queue: string, count: number, bytes: number): NewTask[] =>
        Array.from({ length: count }, () => newTask({ queue, payload: new Uint8Array(bytes) }));
      await broker.enqueueMany(tasksOf('kept', 300, 300));
      const read = (name: string): number => metrics.readers.get(`escapement_broker_${name}`)?.() ?? 0;
      const largestFile = Math.max(maxBytesPerFile, 100 * (payloadBytes + 200));
      const beyond: number[] = [];
      for (let round = 0; round < rounds; round++) {
        await enqueueAll(broker, tasksOf('done', 100, payloadBytes));
        await broker.removeQueue('done', { force: true });
        if (read('log_bytes') > 3 * read('live_bytes') + 2 * largestFile) beyond.push(round);
      }
      expect(beyond).toEqual([]);
      const onDisk = [...disk.disk.values()].reduce((sum, { length }) => sum + length, 0);
      expect(onDisk).toBeLessThanOrEqual(3 * read('live_bytes') + 2 * largestFile);
      // A power cut must not undo the removal of a file and keep that of a later one, where its tasks were removed.
      const removals = disk.log.filter(({ kind }) => kind === 'unlink' || kind === 'syncFolder');
      expect(removals.map(({ kind }) => kind).join(' ')).not.toContain('unlink unlink');
      expect((await broker.queueStats('kept')).counts.pending).toBe(300);
    },
  );
});

test('leasing a task reads its payload from the disk, and no other one of its call of enqueueMany', async () => {
  const disk = new RecordingFileSystem();
  const broker = await open(disk);
  const payloads = Array.from({ length: 50 }, (_, nth) => new Uint8Array(20_000).fill(nth));
  await broker.enqueueMany(payloads.map((payload) => newTask({ payload })));
  const before = disk.bytesRead;
  for (const payload of payloads) {
    const { message } = await take(broker);
    expect(payload.every((byte, at) => message.payload[at] === byte)).toBe(true); // toEqual takes 20 ms
  }
  expect(disk.bytesRead - before).toBeLessThanOrEqual(50 * 20_000);
});
