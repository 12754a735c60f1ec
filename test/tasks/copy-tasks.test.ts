import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Client,
  copyTasks,
  EmbeddedBroker,
  Task,
  type Broker,
  type LeasedTask,
  type TaskOptions,
} from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { checkBroker, ManualClock } from 'escapement/testing';
import { beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest';
import { FILE_SYSTEM } from '../../src/log/file-system.ts';
import { TASK_STATES } from '../../src/tasks/task-state.ts';
import { DumpReader, DumpWriter } from '../../src/tasks/task-dump.ts';
import { take } from '../conformance/broker/support.ts';
import { RecordingFileSystem } from '../diskqueue/recording-file-system.ts';
import { folderOfTest } from '../folder.ts';
import { freshDatabase } from '../redis/redis-case.ts';
import { codeOf, START_MS } from './support/bench.ts';

const HOUR_MS = 3_600_000;

let clock: ManualClock;
let directory: string;
let dump: string;

beforeEach(() => {
  clock = new ManualClock({ nowMs: 1_000, wallMs: START_MS });
  directory = folderOfTest();
  dump = join(directory, 'jobs.jsonl');
});

async function memory(): Promise<EmbeddedBroker> {
  const broker = await EmbeddedBroker.open({ clock });
  onTestFinished(() => broker.close());
  return broker;
}

async function folder(name: string): Promise<EmbeddedBroker> {
  const broker = await EmbeddedBroker.open({ clock, dataPath: join(directory, name) });
  onTestFinished(() => broker.close());
  return broker;
}

async function redis(): Promise<RedisBroker> {
  const database = await freshDatabase();
  const broker = new RedisBroker({ url: database.url, clock });
  onTestFinished(async () => {
    await broker.close();
    await database.dispose();
  });
  return broker;
}

/** A broker in memory with everything that one can have. */
async function filled(): Promise<EmbeddedBroker> {
  const broker = await memory();
  await fill(broker);
  return broker;
}

const lease = (broker: Broker): Promise<LeasedTask> => take(broker, 'default', 30_000);

/** Tasks of a broker that was filled. */
const ALL = 15;

/** Everything that a broker can have. Times are whole seconds, as Redis has them. */
async function fill(broker: Broker): Promise<void> {
  const client = new Client({ broker });
  const add = (taskId: string, options: TaskOptions = {}): Promise<unknown> =>
    client.enqueue(new Task(`type:${taskId}`, { id: taskId, é: '\u2028' }), { taskId, ...options });
  const failure = { error: 'boom é', isFailure: true };
  await add('done', { retentionMs: HOUR_MS, headers: { trace: 'ü', empty: '' }, maxRetry: 3 });
  await add('failed', { timeoutMs: 7_000 });
  await add('dead', { deadline: START_MS + 9 * HOUR_MS });
  await add('lost', { uniqueTtlMs: HOUR_MS });
  for (const id of ['first', 'second', 'third']) await add(id);
  const done = await lease(broker);
  await broker.writeResult(done, Uint8Array.of(0, 255, 10));
  await broker.writeProgress(done, '{"step":2}');
  await broker.complete(done);
  await broker.retry(await lease(broker), failure, START_MS + HOUR_MS);
  await broker.archive(await lease(broker), failure);
  const lost = await lease(broker);
  await broker.writeResult(lost, new Uint8Array());
  const workerLost = { error: 'worker lost', isFailure: false, isRecovery: true };
  await broker.retry(lost, workerLost, START_MS + 2 * HOUR_MS);
  for (const inMs of [9_000, 5_000, 7_000]) await add(`in ${inMs}`, { processInMs: inMs, queue: 'later' });
  await add('large', { queue: 'later', key: 'account 1' });
  for (const id of ['a', 'b']) await add(id, { group: 'g', queue: 'grouped', key: `account ${id}` });
  await add('c', { group: 'h', queue: 'grouped', processInMs: HOUR_MS });
  await add('gone', { queue: 'empty' });
  await broker.change('empty', { id: 'gone' }, 'delete');
  await broker.pause('later');
  await broker.setLimits('later', { perKey: { concurrency: 2, rate: { tasks: 5, perMs: 60_000 } } });
  await broker.setLimits('default', { concurrency: 9 });
  const tick = { entryKey: 'nightly', atMs: START_MS };
  const message = { ...lost.message, id: 'ticked', uniqueKey: '', queue: 'grouped' };
  await broker.enqueueTick({ message, processAtMs: 0, uniqueTtlMs: 0 }, tick);
  for (let n = 0; n < 3; n++) {
    await broker.recordEnqueueEvent('entry', { taskId: `t${n}`, atMs: START_MS + n * 1_000 });
  }
  clock.advance(2_000);
}

/** Everything that an inspector shows, and what a lease has. */
async function shown(broker: Broker): Promise<unknown> {
  const page = { page: 1, size: 1_000 };
  const queues = [];
  for (const name of await broker.queues()) {
    const stats = { ...(await broker.queueStats(name)), memoryBytes: 0 };
    const tasks = [];
    for (const state of TASK_STATES) {
      for (const { message, result, ...others } of await broker.tasks(name, state, page)) {
        const payload = Buffer.from(message.payload).toString();
        const isFrozen = Object.isFrozen(message.headers); // handlers receive them
        tasks.push({ message: { ...message, payload }, isFrozen, result: result && [...result], ...others });
      }
    }
    queues.push({
      ...{ stats, tasks, groups: await broker.groups(name), days: await broker.history(name, 90) },
      ...{ limits: await broker.limits(name), keys: await broker.keys(name, page) },
      tick: await broker.lastTickMs(name, 'nightly'),
    });
  }
  return { queues, events: await broker.enqueueEvents('entry', page) };
}

/** What is not shown: locks, recoveries, epochs. */
async function hidden(broker: Broker): Promise<unknown> {
  const client = new Client({ broker });
  const duplicate = new Task('type:lost', { id: 'lost', é: '\u2028' }, { uniqueTtlMs: 1_000 });
  const code = await codeOf(client.enqueue(duplicate));
  await broker.change('default', { id: 'lost' }, 'run');
  await broker.change('default', { state: 'pending' }, 'run').catch(() => undefined);
  const leased = await broker.dequeue('default', 9, 30_000);
  const lost = leased.find(({ message }) => message.id === 'lost');
  return { code, recoveries: lost?.recoveries, order: leased.map(({ message }) => message.id) };
}

const HIDDEN = { code: 'ERR_TASK_DUPLICATE', recoveries: 1, order: ['first', 'second', 'third', 'lost'] };

describe.runIf(inject('redis').isThere)('a copy by way of Redis', () => {
  test('a copy from memory to a dump, a folder, Redis and another folder shows what the first one does', async () => {
    const first = await filled();
    const expected = await shown(first);
    const place = await folder('one');
    const there = await redis();
    const again = await folder('two');

    const all = { queues: 4, tasks: ALL, added: ALL };
    expect(await copyTasks(first, dump)).toEqual(all);
    expect(await copyTasks(dump, place)).toEqual(all);
    expect(await shown(place)).toEqual(expected);
    expect(await copyTasks(place, there)).toEqual(all);
    expect(await shown(there)).toEqual(expected);
    expect(await copyTasks(there, again)).toEqual(all);
    expect(await shown(again)).toEqual(expected);
    expect(await shown(first)).toEqual(expected);

    await again.close();
    const reopened = await folder('two');
    checkBroker(reopened);
    expect(await shown(reopened)).toEqual(expected);
    expect(await hidden(reopened)).toEqual(HIDDEN);
    expect(await hidden(there)).toEqual(HIDDEN);
  });

  test('leases go on with larger epochs, and repair finds nothing in Redis', async () => {
    const first = await redis();
    await fill(first);
    for (let n = 0; n < 5; n++) await first.release(await lease(first));
    const { epoch } = await lease(first);
    clock.advance(31_000);
    const second = await folder('one');
    await copyTasks(first, second);
    const third = await redis();
    await copyTasks(second, third);

    expect(await third.repair('default', { apply: false })).toEqual([]);
    expect(await third.repair('grouped', { apply: false })).toEqual([]);
    expect((await lease(second)).epoch).toBeGreaterThan(epoch);
    expect((await lease(third)).epoch).toBeGreaterThan(epoch);
  });
});

describe('a copy', () => {
  const TARGETS: readonly (readonly [name: string, open: () => Promise<Broker>])[] = [
    ['memory', memory],
    ['a folder', () => folder('target')],
    ...(inject('redis').isThere ? [['Redis', redis] as const] : []),
  ];

  test.each(TARGETS)(
    'a copy to %s that was interrupted goes on with merge, and doubles nothing',
    async (_, open) => {
      const from = await filled();
      const to = await open();
      const stop = new AbortController();
      const onProgress = (done: number): void => {
        if (done > 4) stop.abort(new Error('interrupted'));
      };
      const interrupted = copyTasks(from, to, { onProgress, signal: stop.signal });
      await expect(interrupted).rejects.toThrow('interrupted');

      await expect(copyTasks(from, to)).rejects.toMatchObject({ code: 'ERR_QUEUE_NOT_EMPTY' });
      const { tasks, added } = await copyTasks(from, to, { merge: true });
      expect({ tasks, isPart: added > 0 && added < ALL }).toEqual({ tasks: ALL, isPart: true });
      expect(await copyTasks(from, to, { merge: true })).toEqual({ queues: 4, tasks: ALL, added: 0 });
      expect(await shown(to)).toEqual(await shown(from));
    },
  );

  test.each(TARGETS)('a copy to %s with tasks is refused, unless they may stay', async (_, open) => {
    const from = await filled();
    const to = await open();
    await new Client({ broker: to }).enqueue(new Task('own'), { taskId: 'own' });

    await expect(copyTasks(from, to)).rejects.toMatchObject({
      ...{ code: 'ERR_QUEUE_NOT_EMPTY', op: 'copyTasks' },
      message: 'the target has tasks: 1. With merge they stay, and an interrupted copy goes on',
    });
    expect(await to.queues()).toEqual(['default']);
    expect(await copyTasks(from, to, { merge: true })).toMatchObject({ added: ALL });
    expect((await to.queueStats('default')).counts.pending).toBe(4);
  });

  test('a copy of a broker with a running server or an active task is refused', async () => {
    const from = await filled();
    const task = await lease(from);
    await expect(copyTasks(from, await memory())).rejects.toMatchObject({
      code: 'ERR_TASK_STATE',
      message: "task 'first' of queue 'default' is active, and its lease lasts",
    });
    await from.release(task);
    const server = { id: 's', host: 'h', pid: 7, workers: [], queues: {} };
    await from.announceServer(() => server as never, 1_000);
    await expect(copyTasks(from, await memory())).rejects.toMatchObject({ code: 'ERR_SERVER_STATE' });
  });

  test('a copy has a task at the head of its queue whose worker was lost', async () => {
    const from = await filled();
    await lease(from);
    clock.advance(31_000);
    const to = await memory();
    await copyTasks(from, to);
    const [recovered] = await to.dequeue('default', 1, 1_000);
    expect(recovered).toMatchObject({ message: { id: 'first' }, recoveries: 1 });
  });

  test.each(['source', 'target'] as const)(
    'a copy rejects when its %s is closed, and leaves no file of a folder open',
    async (closed) => {
      const files = new RecordingFileSystem();
      const options = { clock, dataPath: directory, [FILE_SYSTEM]: files };
      const source = await EmbeddedBroker.open(options);
      const payload = 'x'.repeat(2_000);
      const tasks = Array.from({ length: 1_000 }, () => new Task('large', payload));
      await new Client({ broker: source }).enqueueMany(tasks);
      const brokers = { source, target: await memory() };
      const copied = copyTasks(brokers.source, brokers.target, {
        onProgress: (done) => void (done > 0 && brokers[closed].close()),
      });
      await expect(copied).rejects.toMatchObject({ code: 'ERR_BROKER_CLOSED', op: 'copyTasks' });
      await source.close();
      expect(files.handles).toBe(0);
    },
  );

  test('a copy of large payloads from a folder has them', async () => {
    const from = await folder('one');
    const payload = 'x'.repeat(100_000);
    for (let n = 0; n < 30; n++) await new Client({ broker: from }).enqueue(new Task('large', payload));
    const to = await folder('two');
    await copyTasks(from, to);
    const tasks = await to.tasks('default', 'pending', { page: 1, size: 30 });
    expect(new Set(tasks.map(({ message }) => message.payload.length))).toEqual(new Set([100_002]));
  });
});

describe('a dump', () => {
  test('a dump is never replaced, and a part of one is not taken for one', async () => {
    const from = await filled();
    await expect(copyTasks(from, dump, { signal: AbortSignal.abort() })).rejects.toThrow('aborted');
    writeFileSync(`${dump}.part`, 'what a killed copy has left');
    await copyTasks(from, dump);
    expect(readdirSync(directory)).toEqual(['jobs.jsonl']);
    await expect(copyTasks(from, dump)).rejects.toMatchObject({
      code: 'ERR_QUEUE_NOT_EMPTY',
      op: 'copyTasks',
    });
  });

  test('of two copies to one path at a time the one that began last writes the dump, and the other fails', async () => {
    const first = await DumpWriter.create(dump, 0);
    const last = await DumpWriter.create(dump, 0);
    await expect(first.finish()).rejects.toThrow(`the dump ${dump} cannot be written: another copy`);
    await first.close();
    await last.finish();
    await last.close();
    expect(readdirSync(directory)).toEqual(['jobs.jsonl']);
    expect(await new DumpReader(dump).count()).toBe(0);
  });

  test('a dump is JSON lines', async () => {
    const from = await filled();
    await copyTasks(from, dump);
    const lines = readFileSync(dump, 'utf8').trimEnd().split('\n');
    const [first, ...others] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(first).toEqual({ format: 'escapement-tasks', version: 1, tasks: ALL });
    expect(others.at(-1)).toEqual({ end: true, tasks: ALL });
    expect(others.find(({ task }) => (task as { id?: string } | undefined)?.id === 'done')).toEqual({
      task: {
        ...{ id: 'done', type: 'type:done', queue: 'default', state: 'completed', group: '', uniqueKey: '' },
        ...{ key: '', headers: { trace: 'ü', empty: '' }, maxRetry: 3, retried: 0 },
        ...{ lastError: '', lastFailedAtMs: 0 },
        ...{ timeoutMs: 1_800_000, deadlineMs: 0, retentionMs: HOUR_MS, completedAtMs: START_MS },
        ...{ atMs: START_MS + HOUR_MS, recoveries: 0, lockEndsMs: 0, progress: '{"step":2}', result: 'AP8K' },
        payload: Buffer.from('{"id":"done","é":"\u2028"}').toString('base64'),
      },
    });
  });

  const HEAD = '{"format":"escapement-tasks","version":1,"tasks":1}';
  test.each([
    ['', 'line 0: the end is missing'],
    ['{"format":"other"}', 'line 1: it is not a dump of tasks'],
    [HEAD.replace('1', '2'), 'line 1: version 2 is not known'],
    ['{"format":"escapement-tasks","version":1}', 'line 1: tasks must be a number. Received undefined'],
    [`${HEAD}\n{"queue"`, 'line 2: '],
    [`${HEAD}\n{"task":{"state":"active"}}`, "line 2: 'active' is not a state"],
    [`${HEAD}\n{"task":{"state":"pending"}}`, 'line 2: id must be a string'],
    [`${HEAD}\n`, 'line 1: the end is missing'],
    [`${HEAD}\n{"end":true,"tasks":1}`, 'line 2: 0 of 1 tasks are there'],
  ])('a dump that holds %j is refused', async (text, reason) => {
    writeFileSync(dump, text);
    const copying = copyTasks(dump, await memory());
    await expect(copying).rejects.toMatchObject({
      ...{ code: 'ERR_WIRE_MESSAGE', op: 'copyTasks' },
      message: expect.stringContaining(`${dump}, ${reason}`) as string,
    });
  });

  const TASK = {
    ...{ id: 'a', queue: 'q', type: 't', state: 'pending', payload: 'YQ==', headers: {}, lastError: '' },
    ...{ maxRetry: 3, retried: 0, recoveries: 0, timeoutMs: 0, retentionMs: 0, deadlineMs: 0 },
    ...{ atMs: START_MS, lastFailedAtMs: 0, completedAtMs: 0, lockEndsMs: 0, uniqueKey: '', group: '' },
  };
  const QUEUE = { name: 'q', epoch: 0, processedTotal: 0, failedTotal: 0, ticks: [], days: [] };
  test.each<[line: object, reason: string]>([
    [{ task: { ...TASK, id: '' } }, 'id must be a string that is not blank'],
    [{ task: { ...TASK, id: '\ud800' } }, 'id must be well-formed Unicode'],
    [{ task: { ...TASK, queue: 'q}:t:a' } }, 'queue must be a queue name'],
    [{ task: { ...TASK, retried: -1 } }, 'retried must be an integer of at least 0. Received -1'],
    [{ task: { ...TASK, recoveries: 1e10 } }, 'recoveries must be at most 2147483647'],
    [{ task: { ...TASK, payload: '####' } }, "payload must be base64 with its padding. Received '####'"],
    [{ task: { ...TASK, result: 'YQ' } }, 'result must be base64 with its padding'],
    [{ task: { ...TASK, uniqueKey: 'session:1' } }, "uniqueKey must begin with 'asynq:{q}:unique:'"],
    [{ queue: { ...QUEUE, name: '}:t:a' } }, 'name must be a queue name'],
    [{ queue: { ...QUEUE, epoch: 1e300 } }, 'epoch must be an integer of at least 0'],
    [
      { queue: { ...QUEUE, days: [['21.11.2026', 1, 0]] } },
      "days[0][0] must be a day: '2026-11-21'. Received '21.11.2026'",
    ],
    [
      { queue: { ...QUEUE, ticks: [['entry', null]] } },
      'ticks[0][1] must be a number of milliseconds. Received null',
    ],
  ])('a dump with a line that no broker writes is refused: %j', async (line, reason) => {
    writeFileSync(dump, `${HEAD}\n${JSON.stringify({ queue: QUEUE })}\n${JSON.stringify(line)}`);
    const to = await memory();
    await expect(copyTasks(dump, to)).rejects.toMatchObject({
      ...{ code: 'ERR_WIRE_MESSAGE', op: 'copyTasks' },
      message: expect.stringContaining(`${dump}, line 3: ${reason}`) as string,
    });
    expect((await to.queueStats('q')).counts.pending).toBe(0);
  });

  test('a line of a dump is read in a time that is proportional to its length', async () => {
    const from = await memory();
    const payload = new Uint8Array(12 * 1_048_576).fill(1);
    await new Client({ broker: from }).enqueue(new Task('large', payload));
    await copyTasks(from, dump);
    const to = await memory();
    const before = process.cpuUsage();
    await copyTasks(dump, to);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(1_500); // several times as long if each chunk is searched with all before it
    const [task] = await to.dequeue('default', 1, 1_000);
    expect(Buffer.compare(task?.message.payload ?? new Uint8Array(), payload)).toBe(0);
  });

  test('nothing but a dump or a broker can be copied', async () => {
    const broker = await memory();
    await expect(copyTasks({} as Broker, broker)).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
    await expect(copyTasks(broker, '')).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_TYPE' });
    for (const [from, to, name] of [
      ['a\0b', broker, 'from'],
      [broker, 'a\0b', 'to'],
    ] as const) {
      await expect(copyTasks(from, to)).rejects.toMatchObject({
        code: 'ERR_INVALID_ARG_VALUE',
        message: expect.stringContaining(`${name} must be a path without null characters`) as string,
      });
    }
  });

  test('a dump that cannot be read or written is reported with its path and the error of the host', async () => {
    const broker = await memory();
    const path = join(directory, 'none', 'jobs.jsonl');
    for (const [from, to, verb] of [
      [path, broker, 'read'],
      [broker, path, 'written'],
    ] as const) {
      await expect(copyTasks(from, to)).rejects.toMatchObject({
        ...{ code: 'ERR_BROKER_UNAVAILABLE', op: 'copyTasks', cause: { code: 'ENOENT' } },
        message: expect.stringContaining(`the dump ${path} cannot be ${verb}: ENOENT`) as string,
      });
    }
  });
});
