import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EmbeddedBroker, type EmbeddedBrokerOptions } from 'escapement/tasks';
import { checkBroker, checkBrokerLog, ManualClock } from 'escapement/testing';
import fc from 'fast-check';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { TurnBudget } from '../../../../src/core/own-turn.ts';
import { FOR_READING, INTERNALS } from '../../../../src/tasks/broker/embedded/embedded-broker.ts';
import { TaskList } from '../../../../src/tasks/broker/embedded/task-lists.ts';
import type { TaskStore } from '../../../../src/tasks/broker/embedded/task-store.ts';
import type { FileSystem } from '../../../../src/log/file-system.ts';
import { idsIn, idsOf, LONG_MS, newTask, QUEUE, take, takeAll } from '../../../conformance/broker/support.ts';
import { FaultyFileSystem, type Fault } from '../../../diskqueue/faulty-file-system.ts';
import { Random } from '../../../diskqueue/random.ts';
import { nothingRemains, RecordingFileSystem } from '../../../diskqueue/recording-file-system.ts';
import { SmallDisk } from '../../../diskqueue/small-disk.ts';
import { folderOfTest } from '../../../folder.ts';
import { RecordingMetrics } from '../../../metrics/recording-metrics.ts';
import { FIRST_SEED, propertyRuns } from '../../../runs.ts';
import { anyMessage, anyMs } from '../../support/any-message.ts';
import { codeOf } from '../../support/bench.ts';
import { openFolder } from './open-folder.ts';

let dataPath: string;
let clock: ManualClock;

beforeEach(() => {
  dataPath = folderOfTest();
  clock = new ManualClock({ nowMs: 5_000, wallMs: 1_795_262_400_000 });
});

/** Damage that was reported is an error, unless `onCorruption` is given. */
async function open(options: EmbeddedBrokerOptions = {}, files?: FileSystem): Promise<EmbeddedBroker> {
  const broker = await openFolder(dataPath, { clock, maxBytesPerFile: 67_108_864, ...options }, files);
  onTestFinished(() => broker.close().catch(() => undefined));
  return broker;
}

async function reopen(broker: EmbeddedBroker, options: EmbeddedBrokerOptions = {}): Promise<EmbeddedBroker> {
  await checkBrokerLog(broker);
  await broker.close();
  const again = await open(options);
  checkBroker(again);
  await checkBrokerLog(again);
  return again;
}

function storeOf(broker: EmbeddedBroker): TaskStore {
  const { store } = broker[INTERNALS]();
  if (store === undefined) throw new Error('the broker is closed');
  return store;
}

/** Does work until a log of small files was compacted several times. */
async function fillLog(broker: EmbeddedBroker): Promise<void> {
  for (let done = 0; done < 100; done++) {
    await broker.enqueue(newTask({ queue: 'done', payload: new Uint8Array(300) }));
    await broker.complete(await take(broker, 'done'));
  }
}

const FIRST = { page: 1, size: 10 };

describe('a reopened broker', () => {
  test('the epoch of a lease whose start a power cut has lost is not given again, also if the log was compacted', async () => {
    const files = new RecordingFileSystem();
    const broker = await open({ maxBytesPerFile: 4_096 }, files);
    await fillLog(broker);
    await broker.enqueue(newTask());
    const { epoch } = await take(broker);
    const disk = files.afterPowerCut(files.log.length, nothingRemains);
    await broker.close();
    const again = await open({}, new RecordingFileSystem(disk));
    expect((await take(again)).epoch).toBeGreaterThan(epoch);
  });

  test('a reopened broker has the result, or the progress, of a task that was released, also if the log was compacted', async () => {
    let broker = await open({ maxBytesPerFile: 4_096 });
    for (const id of ['one', 'other']) await broker.enqueue(newTask({ id }));
    const [one, other] = await broker.dequeue(QUEUE, 2, LONG_MS);
    if (one === undefined || other === undefined) throw new Error('the queue is empty');
    await broker.writeResult(one, Uint8Array.of(1));
    await broker.writeProgress(other, '2');
    for (const leased of [other, one]) await broker.release(leased);
    await fillLog(broker);
    broker = await reopen(broker);
    expect(await broker.tasks(QUEUE, 'pending', FIRST)).toMatchObject([
      { result: Uint8Array.of(1), progress: undefined },
      { result: undefined, progress: '2' },
    ]);
  });

  test('a reopened broker has every field of the messages of its tasks', async () => {
    let broker = await open();
    const messages = fc
      .sample(anyMessage(anyMs), propertyRuns())
      .map((message, n) => ({ ...message, id: `${n}`, queue: QUEUE }));
    await broker.enqueueMany(messages.map((message) => ({ message, processAtMs: 0, uniqueTtlMs: 0 })));
    for (let round = 0; round < 2; round++) {
      for (const message of messages) expect((await broker.task(QUEUE, message.id)).message).toEqual(message);
      broker = await reopen(broker);
    }
  });

  test("a reopened broker does not take a name for another one whose letters are the name's bytes", async () => {
    let broker = await open();
    const names = ['Ã©', 'é', 'Ã©']; // the last one is in memory when the bytes of 'é' are read
    for (const [at, name] of names.entries())
      await broker.enqueue(
        newTask({ id: `${at}`, queue: name, type: name, key: name, uniqueKey: `${name}${at}` }),
      );
    broker = await reopen(broker);
    expect(await broker.queues()).toEqual(['Ã©', 'é']);
    for (const [at, name] of names.entries())
      expect((await broker.task(name, `${at}`)).message).toMatchObject({ type: name, key: name });
  });

  test('a reopened broker hands a task out again that was active, at the head, with the same retries, one recovery more and a later epoch', async () => {
    let broker = await open();
    for (const id of ['first', 'second', 'third']) await broker.enqueue(newTask({ id }));
    const before = await broker.dequeue(QUEUE, 2, LONG_MS);
    broker = await reopen(broker);
    const after = await broker.dequeue(QUEUE, 3, LONG_MS);
    const shown = after.map(({ message, recoveries }) => `${message.id} ${message.retried} ${recoveries}`);
    expect(shown).toEqual(['first 0 1', 'second 0 1', 'third 0 0']);
    for (const { epoch } of after)
      expect(epoch).toBeGreaterThan(Math.max(...before.map((task) => task.epoch)));
    for (const task of before) expect(await codeOf(broker.complete(task))).toBe('ERR_LEASE_LOST');
    broker = await reopen(broker);
    expect(await take(broker)).toMatchObject({ message: { id: 'first' }, recoveries: 2 });
  });
});

test('a change that cannot be written for lack of memory costs no change of its record', async () => {
  const broker = await open();
  const before = broker.enqueue(newTask({ id: 'before' }));
  onTestFinished(() => void vi.restoreAllMocks());
  vi.spyOn(Buffer, 'allocUnsafeSlow').mockImplementationOnce(() => {
    throw new RangeError('Array buffer allocation failed');
  });
  const refused = broker.enqueue(newTask({ id: 'large', payload: new Uint8Array(20_000) }));
  const behind = broker.enqueue(newTask({ id: 'behind' }));
  await expect(refused).rejects.toThrow('Array buffer allocation failed');
  await Promise.all([before, behind]);
  await broker.close();
  expect(await idsIn(await open(), 'pending')).toEqual(['before', 'behind']);
});

test('a second broker on the folder is refused, and the folder is free when the first one is closed', async () => {
  const broker = await open();
  await expect(open()).rejects.toMatchObject({ code: 'ERR_BROKER_LOCKED', op: 'EmbeddedBroker.open' });
  await broker.close();
  await open();
});

describe('a folder that cannot be opened', () => {
  function expectUnavailable(path: string, code: string): Promise<void> {
    return expect(open({ dataPath: path })).rejects.toMatchObject({
      ...{ code: 'ERR_BROKER_UNAVAILABLE', op: 'EmbeddedBroker.open', cause: { code } },
      message: expect.stringContaining(`the folder ${path} cannot be opened: ${code}`) as string,
    });
  }

  test('a path with a file in the way cannot be opened, as the error of the host in an error of the broker reports', async () => {
    const file = join(dataPath, 'file');
    writeFileSync(file, '');
    await expectUnavailable(file, 'EEXIST');
    await expectUnavailable(join(file, 'jobs'), 'ENOTDIR');
  });

  test.runIf(process.platform === 'linux')(
    'a folder that cannot be made or locked is reported with the error of the host as cause',
    async () => {
      await expectUnavailable('/proc/nope', 'ENOENT');
      await expectUnavailable('/proc/self', 'ENOENT');
    },
  );
});

test('a payload of more than 1 KiB is not kept in memory, and is read when it is needed', async () => {
  let broker = await open();
  const payload = Uint8Array.from({ length: 5_000 }, (_, at) => at % 251);
  await broker.enqueue(newTask({ id: 'large', payload }));
  await broker.enqueue(newTask({ id: 'small', payload: payload.slice(0, 1_024) }));
  for (let round = 0; round < 2; round++) {
    const { rows } = storeOf(broker).queue(QUEUE);
    const kept = ['large', 'small'].map((id) => rows.get(id)?.message.payload.length);
    expect(kept).toEqual([0, 1_024]);
    expect((await broker.task(QUEUE, 'large')).message.payload).toEqual(payload);
    expect((await broker.tasks(QUEUE, 'pending', FIRST))[0]?.message.payload).toEqual(payload);
    broker = await reopen(broker);
  }
  const leased = await take(broker);
  expect(leased.message.payload).toEqual(payload);
});

test('a handler cannot change the headers of a task that was read from the folder', async () => {
  let broker = await open();
  await broker.enqueue(newTask({ headers: { trace: '1' } }));
  broker = await reopen(broker);
  const { headers } = (await take(broker)).message;
  expect(() => Object.assign(headers, { trace: '2' })).toThrow(TypeError);
});

test('metrics report the sizes of the log, its writes and syncs, what was moved and the files that were removed, until the broker is closed', async () => {
  const metrics = new RecordingMetrics();
  const maxBytesPerFile = 4_096;
  const broker = await open({ metrics, maxBytesPerFile });
  const read = (name: string): number | undefined => metrics.readers.get(`escapement_broker_${name}`)?.();
  await broker.enqueue(newTask({ payload: new Uint8Array(500) }));
  const liveBytes = read('live_bytes') ?? 0;
  expect([liveBytes > 500, (read('log_bytes') ?? 0) > liveBytes]).toEqual([true, true]);
  const gone = Array.from({ length: 20 }, () => newTask({ queue: 'gone', payload: new Uint8Array(500) }));
  await broker.enqueueMany(gone);
  expect(read('live_bytes')).toBeGreaterThan(20 * 500);
  await broker.removeQueue('gone', { force: true });
  expect(read('live_bytes')).toBe(liveBytes);
  for (let at = 0; at < 50; at++) {
    await broker.enqueue(newTask({ payload: new Uint8Array(500) }));
    await broker.complete(await take(broker));
  }
  expect(metrics.counts.get('escapement_broker_files_removed_total')).toBeGreaterThan(2);
  const writes = metrics.observed.get('escapement_broker_commit_duration_seconds') ?? [];
  expect(writes.length).toBeGreaterThan(100);
  const syncs = metrics.observed.get('escapement_broker_sync_duration_seconds') ?? [];
  expect(syncs.length).toBeGreaterThan(100);
  // The first task and the settings of two queues are moved again and again.
  expect(metrics.counts.get('escapement_broker_compacted_bytes_total')).toBeGreaterThan(2 * 500);
  expect(metrics.labels).toContainEqual({ folder: dataPath });
  await broker.close();
  expect(metrics.readers.size).toBe(0);
});

test('a disk that is full is read again aside: a reload that fails half-way shows nothing of itself, and costs no lease', async () => {
  const disk = new SmallDisk(new RecordingFileSystem(), 1e9);
  const fault = { call: 'read', nth: Infinity, code: 'EMFILE', isLasting: false } as const;
  const failing: Fault & { nth: number } = { ...fault };
  const files = new FaultyFileSystem(disk, failing);
  const broker = await open({ maxBytesPerFile: 4_096 }, files);
  for (let at = 0; at < 12; at++)
    await broker.enqueue(newTask({ id: `${at}`, payload: new Uint8Array(900) }));
  const [running, ended] = await broker.dequeue(QUEUE, 2, LONG_MS);
  if (running === undefined || ended === undefined) throw new Error('the queue is empty');
  disk.capacity = 0;
  const refused = newTask({ id: 'refused', payload: new Uint8Array(9_000) });
  expect(await Promise.all([codeOf(broker.complete(ended)), codeOf(broker.enqueue(refused))])).toEqual([
    'ERR_BROKER_UNAVAILABLE',
    'ERR_BROKER_UNAVAILABLE',
  ]);
  disk.capacity = 1e9;
  const { counts } = await broker.queueStats(QUEUE);
  const { failures } = files;
  for (let read = 0; ; read++) {
    failing.nth = (files.calls.get('read') ?? 0) + read;
    await clock.advanceAsync(1_000);
    if (files.failures === failures + read) break;
    checkBroker(broker);
    expect((await broker.queueStats(QUEUE)).counts).toEqual(counts);
    expect(await codeOf(broker.complete(running))).toBe('ERR_BROKER_UNAVAILABLE');
    expect(read).toBeLessThan(100);
  }
  expect(files.failures - failures).toBeGreaterThan(5);
  checkBroker(broker);
  expect((await broker.queueStats(QUEUE)).counts).toMatchObject({ active: 2, pending: 10 });
  await broker.complete(running);
  await broker.complete(ended);
  await broker.enqueue(refused);
  expect(readdirSync(dataPath)).toEqual(['tasks.lock']);
  expect((await disk.list(dataPath)).length).toBeLessThan(12);
});

test('a disk that gets space again and again while the log is compacted costs nothing that was accepted', async () => {
  const disk = new SmallDisk(new RecordingFileSystem(), 1e9);
  const options = { maxBytesPerFile: 4_096 };
  let broker = await open(options, disk);
  const random = new Random(FIRST_SEED);
  const there = new Set<string>();
  let refusals = 0;
  for (let step = 0; step < 400; step++) {
    const id = `${step}`;
    const task = newTask({ id, payload: new Uint8Array(random.below(1_500)) });
    if ((await codeOf(broker.enqueue(task))) === undefined) there.add(id);
    else refusals++;
    const [oldest] = there;
    if (oldest !== undefined && there.size > 5) {
      const code = await codeOf(broker.change(QUEUE, { id: oldest }, 'delete'));
      if (code === undefined) there.delete(oldest);
      else refusals++;
    }
    if (step % 20 === 10) disk.capacity = 0;
    if (step % 20 === 19) {
      disk.capacity = 1e9;
      await clock.advanceAsync(1_000);
      checkBroker(broker);
    }
  }
  await broker.close();
  broker = await open(options, disk);
  expect(await idsIn(broker, 'pending')).toEqual([...there]);
  expect(refusals).toBeGreaterThan(20);
});

test('opening a folder finds every task by its id, and leaves the event loop a turn after a thousand of them', async () => {
  const broker = await open({ durability: 'os' });
  const ids = Array.from({ length: 2_500 }, (_, i) => `task ${i}`);
  await broker.enqueueMany(ids.map((id) => newTask({ id })));
  const turns = vi.spyOn(TurnBudget.prototype, 'next');
  onTestFinished(() => {
    turns.mockRestore();
  });
  const reopened = await reopen(broker);
  expect(turns.mock.calls.length).toBeGreaterThanOrEqual(2);
  for (const id of ids) expect((await reopened.task(QUEUE, id)).state).toBe('pending');
});

test('a thousand tasks that are overdue are pending when the folder is open, the rest soon, in order of time; a reader has all at once', async () => {
  const broker = await open({ durability: 'os' });
  const dueMs = (i: number): number => clock.wallNow() + 1_000 + ((i * 7) % 2_500);
  const tasks = Array.from({ length: 2_500 }, (_, i) => newTask({ id: `task ${i}`, processAtMs: dueMs(i) }));
  await broker.enqueueMany(tasks);
  await broker.close();
  clock.advance(LONG_MS);
  const pending = async (of: EmbeddedBroker): Promise<number> => (await of.queueStats(QUEUE)).counts.pending;
  const reader = await open({ [FOR_READING]: true } as EmbeddedBrokerOptions);
  expect(await pending(reader)).toBe(2_500);
  await reader.close();
  const reopened = await open();
  expect(await pending(reopened)).toBe(1_000);
  await clock.advanceAsync(0);
  expect(await pending(reopened)).toBe(2_500);
  checkBroker(reopened);
  await checkBrokerLog(reopened);
  tasks.sort((a, b) => a.processAtMs - b.processAtMs);
  expect(await takeAll(reopened)).toEqual(idsOf(tasks));
});

test('a reader walks over the tasks that are kept once, however many are overdue', async () => {
  const broker = await open({ durability: 'os' });
  const dueMs = clock.wallNow() + 1_000;
  await broker.enqueueMany(Array.from({ length: 2_500 }, () => newTask({ processAtMs: dueMs })));
  await broker.enqueue(newTask({ queue: 'done', retentionMs: 10 * LONG_MS }));
  await broker.complete(await take(broker, 'done'));
  await broker.close();
  clock.advance(LONG_MS);
  const walks = vi.spyOn(TaskList.prototype, Symbol.iterator);
  onTestFinished(() => {
    walks.mockRestore();
  });
  const reader = await open({ [FOR_READING]: true } as EmbeddedBrokerOptions);
  expect((await reader.queueStats(QUEUE)).counts.pending).toBe(2_500);
  const { completed } = storeOf(reader).queue('done').lists;
  expect(walks.mock.contexts.filter((list) => list === completed)).toHaveLength(2); // it is armed, and may have expired
});

test('overdue retries are among overdue scheduled tasks by their times, however many there are', async () => {
  const broker = await open({ durability: 'os' });
  const dueMs = clock.wallNow() + 1_000;
  await broker.enqueue(newTask({ id: 'retry' }));
  await broker.retry(await take(broker), { error: 'down', isFailure: true }, dueMs + 1_500.5);
  const ids = Array.from({ length: 2_500 }, (_, i) => `task ${i}`);
  await broker.enqueueMany(ids.map((id, i) => newTask({ id, processAtMs: dueMs + i })));
  await broker.close();
  clock.advance(LONG_MS);
  const reopened = await open();
  await clock.advanceAsync(0);
  expect(await takeAll(reopened)).toEqual([...ids.slice(0, 1_501), 'retry', ...ids.slice(1_501)]);
});
