import {
  EmbeddedBroker,
  Inspector,
  Server,
  Task,
  type CorruptionEvent,
  type GroupAggregator,
  type TaskInfo,
} from 'escapement/tasks';
import { checkBroker, ManualClock } from 'escapement/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { FileSystem } from '../../../../src/log/file-system.ts';
import { idsOf, LONG_MS, newTask, QUEUE } from '../../../conformance/broker/support.ts';
import { RecordingFileSystem } from '../../../diskqueue/recording-file-system.ts';
import { folderOfFile } from '../../../folder.ts';
import { until } from '../../../until.ts';
import { openFolder } from './open-folder.ts';

const folder = folderOfFile();

const START_MS = 1_795_262_400_000;
const large = new Uint8Array(1_100).fill(7);
/** Its record gets a file of its own. */
const own = new Uint8Array(5_000).fill(7);

async function open(files: FileSystem, events: CorruptionEvent[]): Promise<EmbeddedBroker> {
  const clock = new ManualClock({ nowMs: START_MS, wallMs: START_MS });
  const broker = await openFolder(folder, { clock, onCorruption: (event) => events.push(event) }, files);
  onTestFinished(() => broker.close());
  return broker;
}

/** @returns the path and the bytes of the first file with that part. */
function fileWith({ disk }: RecordingFileSystem, part: string | Uint8Array): [path: string, bytes: Buffer] {
  return [...disk].find(([, bytes]) => bytes.indexOf(part) >= 0) ?? ['', Buffer.of()];
}

/** Flips a bit of a file while it is open: some bytes behind where a part of it begins. @returns its path. */
async function damage(files: RecordingFileSystem, part: string | Uint8Array, behind = 0): Promise<string> {
  const [path, bytes] = fileWith(files, part);
  const at = bytes.indexOf(part) + behind;
  const file = await files.open(path);
  const byte = Buffer.alloc(1);
  await file.read(byte, at);
  await file.write(Buffer.of(byte.readUInt8(0) ^ 1), at);
  await file.close();
  return path;
}

describe('damage that comes while the broker is open', () => {
  test.each(['dequeue', 'recover', 'takeGroup'] as const)(
    '%s leaves a task out whose payload is damaged: it is archived, and the others are returned',
    async (operation) => {
      const files = new RecordingFileSystem();
      const events: CorruptionEvent[] = [];
      let broker = await open(files, events);
      const group = operation === 'takeGroup' ? 'g' : '';
      await broker.enqueue(newTask({ id: 'large', payload: large, group }));
      await broker.enqueue(newTask({ id: 'small', payload: Uint8Array.of(1), group }));
      if (operation === 'recover') await broker.dequeue(QUEUE, 2, 0);
      const path = await damage(files, large, 700);
      const limits = { graceMs: 0, maxDelayMs: 0, maxSize: 0 };
      const call = {
        dequeue: async () => idsOf(await broker.dequeue(QUEUE, 2, LONG_MS)),
        recover: async () => idsOf(await broker.recover([QUEUE], 0, LONG_MS)),
        takeGroup: async () =>
          (await broker.takeGroup(QUEUE, group, limits, LONG_MS)).set?.messages.map(({ id }) => id),
      }[operation];
      expect(await call()).toEqual(['small']);
      const offset = files.disk.get(path)?.indexOf(large.subarray(0, 700));
      expect(events).toEqual([{ file: path, offset, bytes: large.length, reason: 'a payload is damaged' }]);
      checkBroker(broker);
      await broker.close();
      broker = await open(files, []);
      const lost = await broker.task(QUEUE, 'large');
      expect([lost.state, lost.message.payload.length]).toEqual(['archived', 0]);
      expect(lost.message.lastError).toContain('its record in the folder of the broker is damaged');
    },
  );

  test.each([
    ['are damaged', (files: RecordingFileSystem) => damage(files, own, 700)],
    ['were in a removed file', (files: RecordingFileSystem) => files.unlink(fileWith(files, own)[0])],
  ] as const)(
    'a server with one free slot runs the tasks behind those whose payloads %s',
    async (_, lose) => {
      const files = new RecordingFileSystem();
      const events: CorruptionEvent[] = [];
      const broker = await open(files, events);
      await broker.enqueue(newTask({ id: 'large', payload: own }));
      for (const id of ['a', 'b']) await broker.enqueue(newTask({ id }));
      await lose(files);
      const server = new Server({ broker, concurrency: 1 });
      const ran: string[] = [];
      await server.start((_task, { taskId }) => ran.push(taskId));
      await until('two tasks have run', () => ran.length === 2);
      expect(ran).toEqual(['a', 'b']);
      expect(events).toMatchObject([{ bytes: own.length, reason: 'a payload is damaged' }]);
      await server.shutdown();
    },
  );

  test('a group of which no payload can be read is not aggregated', async () => {
    const files = new RecordingFileSystem();
    const broker = await open(files, []);
    await broker.enqueue(newTask({ id: 'large', payload: large, group: 'g' }));
    await broker.enqueue(newTask({ queue: 'other' })); // the last write is read from memory
    await damage(files, large, 700);
    const aggregated: number[] = [];
    const groupAggregator: GroupAggregator = (_, { length }) => {
      aggregated.push(length);
      return new Task('digest', { length });
    };
    const server = new Server({ broker, groupAggregator, groupMaxSize: 1 });
    await server.start(() => undefined);
    await until('the task is archived', async () => (await broker.task(QUEUE, 'large')).state === 'archived');
    await server.shutdown();
    expect(aggregated).toEqual([]);
    expect((await broker.queueStats(QUEUE)).counts).toMatchObject({ archived: 1, pending: 0, completed: 0 });
  });

  test.each(['page', 'scan'] as const)(
    'a %s has a task whose payload is damaged without it and with the reason, and the others whole; nothing changes',
    async (how) => {
      const files = new RecordingFileSystem();
      const events: CorruptionEvent[] = [];
      const broker = await open(files, events);
      await broker.enqueue(newTask({ id: 'large', payload: large }));
      for (const id of ['a', 'b'])
        await broker.enqueue(newTask({ id, payload: new Uint8Array(2_000).fill(7) }));
      await damage(files, large, 700);
      const inspector = new Inspector({ broker });
      const tasks: TaskInfo[] = [];
      if (how === 'page') tasks.push(...(await inspector.list(QUEUE, 'pending')));
      else for await (const piece of inspector.scan(QUEUE)) tasks.push(...piece);
      const shown = tasks.map(({ id, state, payload, lastError }) => [id, state, payload.length, lastError]);
      const reason = `the payload of task 'large' of queue '${QUEUE}' cannot be read: it is damaged`;
      expect(shown).toEqual([
        ['large', 'pending', 0, reason],
        ['a', 'pending', 2_000, ''],
        ['b', 'pending', 2_000, ''],
      ]);
      const error = { code: 'ERR_WIRE_MESSAGE', message: reason };
      await expect(inspector.getTaskInfo(QUEUE, 'large')).rejects.toMatchObject(error);
      expect(events).toEqual([]);
      expect((await broker.queueStats(QUEUE)).counts.pending).toBe(3);
    },
  );

  test('a piece of a scan reads a limited number of bytes from the disk', async () => {
    const broker = await open(new RecordingFileSystem(), []);
    const payload = new Uint8Array(400_000);
    await broker.enqueueMany(Array.from({ length: 7 }, () => newTask({ payload })));
    const { tasks, next } = await broker.scan(QUEUE, ['pending'], 100);
    expect(tasks).toHaveLength(3);
    const rest = await broker.scan(QUEUE, ['pending'], 100, next);
    expect(rest.tasks).toHaveLength(3);
  });

  test('compaction writes the tasks of a damaged record again, from memory', async () => {
    const files = new RecordingFileSystem();
    const events: CorruptionEvent[] = [];
    let broker = await open(files, events);
    for (const id of ['a', 'b', 'c']) await broker.enqueue(newTask({ id, headers: { id } }));
    await broker.enqueue(newTask({ id: 'large', payload: large }));
    const path = await damage(files, '{"id":"b"}');
    await damage(files, large, 700);
    const queue = 'other';
    for (let at = 0; at < 40; at++) {
      await broker.enqueue(newTask({ id: 'x', queue, payload: large }));
      await broker.change(queue, { id: 'x' }, 'delete');
    }
    expect([...files.disk.keys()]).not.toContain(path);
    expect(events).toHaveLength(2);
    checkBroker(broker);
    await broker.close();
    broker = await open(files, []);
    const tasks = await broker.tasks(QUEUE, 'pending', { page: 1, size: 10 });
    expect(tasks.map(({ message }) => message.headers)).toEqual([{ id: 'a' }, { id: 'b' }, { id: 'c' }]);
    expect(await broker.task(QUEUE, 'large')).toMatchObject({ state: 'archived' });
  });
});
