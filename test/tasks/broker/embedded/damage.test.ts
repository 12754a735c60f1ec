import {
  EmbeddedBroker,
  Inspector,
  Server,
  Task,
  type CorruptionEvent,
  type EmbeddedBrokerOptions,
  type GroupAggregator,
  type TaskInfo,
} from 'escapement/tasks';
import { checkBroker, ManualClock } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import type { FileSystem } from '../../../../src/log/file-system.ts';
import { FOOTER, RECORD_HEADER_BYTES } from '../../../../src/log/segment.ts';
import { INTERNALS } from '../../../../src/tasks/broker/embedded/embedded-broker.ts';
import {
  failure,
  LONG_MS,
  newTask,
  QUEUE,
  take,
  type TaskParts,
} from '../../../conformance/broker/support.ts';
import { allRemains, RecordingFileSystem, type Disk } from '../../../diskqueue/recording-file-system.ts';
import { withoutZeros } from '../../../diskqueue/support/damage.ts';
import { uncaughtErrors } from '../../../diskqueue/support/queues.ts';
import { folderOfFile } from '../../../folder.ts';
import { runs } from '../../../runs.ts';
import { until } from '../../../until.ts';
import { openFolder } from './open-folder.ts';

const folder = folderOfFile();

const START_MS = 1_795_262_400_000;

async function open(
  files: FileSystem,
  events: CorruptionEvent[] = [],
  options: EmbeddedBrokerOptions = {},
): Promise<EmbeddedBroker> {
  const clock = new ManualClock({ nowMs: START_MS, wallMs: START_MS });
  return openFolder(folder, { clock, onCorruption: (event) => events.push(event), ...options }, files);
}

/** What is to be seen of a queue with one task: undefined if there is no such queue. */
type Shown = Readonly<Record<string, unknown>> | undefined;

/** A change, which is a record of its own, and what is shown of its queue if that record is damaged. */
type Step = readonly [
  name: string,
  change: (broker: EmbeddedBroker) => Promise<unknown>,
  without: Record<string, Shown>,
];

/** A task in a queue of its own, which has its name. @param without - what is left of the queue. */
function put(id: string, parts: TaskParts = {}, without?: Shown): Step {
  const add = (broker: EmbeddedBroker): Promise<unknown> =>
    broker.enqueue(newTask({ id, queue: id, maxRetry: 3, ...parts }));
  return [`the enqueueing of '${id}'`, add, { [id]: without }];
}

const START = { retried: 0, recoveries: 0, processed: 0, failed: 0, isPaused: false, tick: undefined };
const PENDING = { ...START, state: 'pending', error: '', result: undefined, payload: '' };
const GONE = { ...START, state: 'gone' };
const large = new Uint8Array(1_100).fill(7);

/** Each step is waited for. What is damaged costs what is here said, and nothing else. */
const STEPS: readonly Step[] = [
  put('kept', { payload: Uint8Array.of(1, 2), headers: { a: 'b' }, uniqueKey: 'unique' }),
  put('large', { payload: large }),
  put('group', { group: 'g' }),
  // A task that is completed runs again if its completion is lost; its start, before, costs nothing.
  put('done', {}, { ...GONE, processed: 1 }),
  ['the start of a run that was completed', (broker) => take(broker, 'done'), {}],
  ['a completion', complete('done'), { done: { ...PENDING, recoveries: 1 } }],
  put('active'),
  ['the start of a run', (broker) => take(broker, 'active'), { active: PENDING }],
  put('retried', {}, { ...GONE, processed: 1, failed: 1 }),
  ['the start of a run that failed', (broker) => take(broker, 'retried'), {}],
  [
    'a failure',
    async (broker) => broker.retry(leases(broker, 'retried'), failure(), START_MS + LONG_MS),
    { retried: { ...PENDING, recoveries: 1 } },
  ],
  put('deleted'),
  ['a deletion', (broker) => broker.change('deleted', { id: 'deleted' }, 'delete'), { deleted: PENDING }],
  put('archived'),
  [
    'an archiving',
    (broker) => broker.change('archived', { id: 'archived' }, 'archive'),
    { archived: PENDING },
  ],
  put('changed', { processAtMs: START_MS + LONG_MS }, { ...PENDING, state: 'scheduled', payload: '9' }),
  [
    'a new payload',
    (broker) => broker.updatePayload('changed', 'changed', Uint8Array.of(9)),
    { changed: { ...PENDING, state: 'scheduled' } },
  ],
  put('paused', {}, { ...GONE, isPaused: true }),
  ['a pause', (broker) => broker.pause('paused'), { paused: PENDING }],
  [
    'a tick with its task',
    (broker) =>
      broker.enqueueTick(newTask({ id: 'tick', queue: 'tick' }), { entryKey: 'tick', atMs: START_MS }),
    { tick: undefined },
  ],
  put('removed'),
  [
    'the removal of a queue',
    (broker) => broker.removeQueue('removed', { force: true }),
    { removed: PENDING },
  ],
  put('result'),
  ['a start', (broker) => take(broker, 'result'), { result: { ...PENDING, result: '4' } }],
  [
    'a result',
    async (broker) => broker.writeResult(leases(broker, 'result'), Uint8Array.of(4)),
    { result: { ...PENDING, recoveries: 1 } },
  ],
];

function complete(queue: string): Step[1] {
  return async (broker) => broker.complete(leases(broker, queue));
}

/** The lease of the task that is active in a queue. */
function leases(broker: EmbeddedBroker, name: string): Awaited<ReturnType<typeof take>> {
  const row = broker[INTERNALS]().store?.queue(name).lists.active.head;
  if (row === undefined) throw new Error(`no task of '${name}' is active`);
  return { message: row.message, epoch: row.serial, recoveries: row.recoveries };
}

async function show(broker: EmbeddedBroker): Promise<Record<string, Shown>> {
  const shown: Record<string, Shown> = {};
  for (const name of await broker.queues()) {
    const { isPaused, processedTotal: processed, failedTotal: failed } = await broker.queueStats(name);
    const tick = await broker.lastTickMs(name, 'tick');
    const row = broker[INTERNALS]().store?.queue(name).rows.get(name);
    const common = { processed, failed, isPaused, tick, retried: 0, recoveries: 0 };
    shown[name] = { ...common, state: 'gone' };
    if (row === undefined) continue;
    const { message, state, result } = await broker.task(name, name);
    const { retried, lastError: error, payload } = message;
    const { recoveries } = row;
    const texts = { payload: payload.join(), result: result?.join() };
    shown[name] = { ...common, state, retried, recoveries, error, ...texts };
  }
  return shown;
}

/** Bytes of a file, and the step that has written them: -1 for the first, when it was opened. */
interface Written {
  readonly path: string;
  readonly from: number;
  readonly to: number;
  readonly step: number;
}

/** Does the steps. @returns the disk when it was closed, and as a kill leaves it, and who wrote what. */
async function build(): Promise<{ closed: Disk; killed: Disk; written: Written[] }> {
  const files = new RecordingFileSystem();
  const broker = await open(files);
  const paths: string[] = [];
  const written: Written[] = [];
  let noted = 0;
  const note = (step: number): void => {
    for (; noted < files.log.length; noted++) {
      const done = files.log[noted];
      if (done?.kind === 'create') paths[done.file] = done.path;
      if (done?.kind !== 'write' || done.bytes[2] === FOOTER || done.at === 0) continue;
      written.push({
        path: paths[done.file] ?? '',
        from: done.at,
        to: done.at + recordBytes(done.bytes),
        step,
      });
    }
  };
  note(-1);
  for (const [step, [, change]] of STEPS.entries()) {
    await change(broker);
    note(step);
  }
  const killed = files.afterPowerCut(files.log.length, allRemains);
  await broker.close();
  return { closed: files.disk, killed, written };
}

/** Length of the records that a write begins with: zeros may follow. */
function recordBytes(bytes: Buffer): number {
  let end = 0;
  while (end + RECORD_HEADER_BYTES <= bytes.length && bytes.readUInt16LE(end) !== 0)
    end += RECORD_HEADER_BYTES + bytes.readUInt32LE(end + 4);
  return end;
}

function flipped(disk: Disk, path: string, offset: number): Disk {
  const bytes = Buffer.from(disk.get(path) ?? []);
  bytes.writeUInt8(bytes.readUInt8(offset) ^ (1 << (offset % 8)), offset);
  return new Map(disk).set(path, bytes);
}

async function shownBy(disk: Disk, events: CorruptionEvent[] = []): Promise<Record<string, Shown>> {
  const broker = await open(new RecordingFileSystem(disk), events);
  checkBroker(broker);
  const shown = await show(broker);
  await broker.close();
  return shown;
}

test.each(['closed', 'killed'] as const)(
  'one flipped bit in the folder of a broker that was %s costs the change whose record it is in, which is reported, and nothing else',
  { timeout: 600_000 },
  async (how) => {
    const { written, ...disks } = await build();
    const disk = disks[how];
    const whole = await shownBy(disk);
    expect(whole).toMatchObject({
      done: { state: 'gone' },
      kept: { payload: '1,2' },
      retried: { state: 'retry' },
    });
    const places = [...disk].flatMap(([path, bytes]) => {
      const { length } = how === 'closed' ? bytes : withoutZeros(bytes);
      return Array.from({ length }, (_, at) => ({ path, at }));
    });
    const stride = Math.max(1, Math.floor(places.length / runs(200)));
    const damagedSteps = new Set<number>();
    for (let nth = 0; nth < places.length; nth += stride) {
      const { path, at } = places[nth] as (typeof places)[0];
      const events: CorruptionEvent[] = [];
      const damaged = flipped(disk, path, at);
      const shown = await shownBy(damaged, events);
      const step = written.find((each) => each.path === path && each.from <= at && at < each.to)?.step;
      const [name, , without] = STEPS[step ?? -1] ?? [
        'a header, a footer or the first record',
        undefined,
        {},
      ];
      const expected = Object.entries({ ...whole, ...without }).filter(([, queue]) => queue !== undefined);
      const where = `byte ${at} of ${path}: ${name}; ${JSON.stringify(events)}`;
      expect(shown, where).toEqual(Object.fromEntries(expected));
      expect(events.length, where).toBe(step === undefined ? 0 : 1);
      for (const { file, offset, bytes } of events)
        expect([file, at >= offset, at < offset + bytes], where).toEqual([path, true, true]);
      if (step !== undefined) damagedSteps.add(step);
    }
    if (stride < 20) expect(damagedSteps.size).toBe(STEPS.length + 1);
  },
);

/** Flips a bit of the first file while it is open: some bytes behind where a part of it begins. @returns its path. */
async function damage(files: RecordingFileSystem, part: string | Uint8Array, behind = 0): Promise<string> {
  const [[path, bytes] = ['', Buffer.of()]] = files.disk;
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
      const messages =
        operation === 'takeGroup'
          ? ((await broker.takeGroup(QUEUE, group, limits, LONG_MS)).set?.messages ?? [])
          : (operation === 'dequeue'
              ? await broker.dequeue(QUEUE, 2, LONG_MS)
              : await broker.recover([QUEUE], 0, LONG_MS)
            ).map(({ message }) => message);
      expect(messages.map(({ id }) => id)).toEqual(['small']);
      expect(events).toMatchObject([{ file: path, reason: 'a payload is damaged' }]);
      checkBroker(broker);
      await broker.close();
      broker = await open(files, []);
      const lost = await broker.task(QUEUE, 'large');
      expect([lost.state, lost.message.payload.length]).toEqual(['archived', 0]);
      expect(lost.message.lastError).toContain('its record in the folder of the broker is damaged');
      await broker.close();
    },
  );

  test('a server with one free slot runs the tasks behind those whose payloads are damaged', async () => {
    const files = new RecordingFileSystem();
    const broker = await open(files, []);
    await broker.enqueue(newTask({ id: 'large', payload: large }));
    for (const id of ['a', 'b']) await broker.enqueue(newTask({ id }));
    await damage(files, large, 700);
    const server = new Server({ broker, concurrency: 1 });
    const ran: string[] = [];
    await server.start((_, { taskId }) => ran.push(taskId));
    await until('two tasks have run', () => ran.length === 2);
    expect(ran).toEqual(['a', 'b']);
    await server.shutdown();
    await broker.close();
  });

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
    await broker.close();
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
      const shown = tasks.map(({ id, state, payload, lastError }) => [
        ...[id, state, payload.length],
        lastError,
      ]);
      const reason = `the payload of task 'large' of queue '${QUEUE}' cannot be read: it is damaged`;
      expect(shown).toEqual([
        ['large', 'pending', 0, reason],
        ['a', 'pending', 2_000, ''],
        ['b', 'pending', 2_000, ''],
      ]);
      await expect(inspector.getTaskInfo(QUEUE, 'large')).rejects.toMatchObject({
        ...{ code: 'ERR_WIRE_MESSAGE', message: reason },
      });
      expect(events).toEqual([]);
      expect((await broker.queueStats(QUEUE)).counts.pending).toBe(3);
      await broker.close();
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
    await broker.close();
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
    await broker.close();
  });
});

/** The disk of a broker with three files, and a task in each. */
async function threeFiles(): Promise<Disk> {
  const files = new RecordingFileSystem();
  for (const id of ['a', 'b', 'c']) {
    const broker = await open(files);
    await broker.enqueue(newTask({ id }));
    await broker.close();
  }
  return files.disk;
}

async function idsOn(disk: Disk, events: CorruptionEvent[]): Promise<string[]> {
  const broker = await open(new RecordingFileSystem(disk), events);
  const tasks = await broker.tasks(QUEUE, 'pending', { page: 1, size: 10 });
  await broker.close();
  return tasks.map(({ message }) => message.id);
}

test('a file that is missing between two others is reported, and costs its own tasks', async () => {
  const disk = await threeFiles();
  const [, second = '', third = ''] = [...disk.keys()].sort();
  disk.delete(second);
  const events: CorruptionEvent[] = [];
  expect(await idsOn(disk, events)).toEqual(['a', 'c']);
  const reason = 'the segment before this one is missing';
  expect(events).toEqual([{ file: third, offset: 0, bytes: 0, reason }]);
});

test('a copy of a file under the name of another one is reported, and set aside', async () => {
  const disk = await threeFiles();
  const [first = '', , third = ''] = [...disk.keys()].sort();
  const copy = third.replace('0003', '0004');
  disk.set(copy, disk.get(first) ?? Buffer.of());
  const events: CorruptionEvent[] = [];
  expect(await idsOn(disk, events)).toEqual(['a', 'b', 'c']);
  expect(events).toMatchObject([{ file: copy, reason: 'its name and its header have different numbers' }]);
});

test('a file whose two headers are damaged costs its own tasks', async () => {
  const disk = await threeFiles();
  const second = [...disk.keys()].sort()[1] ?? '';
  const events: CorruptionEvent[] = [];
  expect(await idsOn(flipped(flipped(disk, second, 12), second, 76), events)).toEqual(['a', 'c']);
  expect(events).toMatchObject([{ file: second, offset: 0 }]);
});

test('an error of onCorruption is an uncaught exception, and stops nothing', async () => {
  const uncaught = uncaughtErrors();
  const disk = await threeFiles();
  const [first = ''] = [...disk.keys()].sort();
  const thrown = new Error('from the handler');
  const onCorruption = (): void => {
    throw thrown;
  };
  const broker = await open(new RecordingFileSystem(flipped(disk, first, 200)), [], { onCorruption });
  expect((await broker.queueStats(QUEUE)).counts.pending).toBe(2);
  await broker.close();
  await until('the error is uncaught', () => uncaught.length > 0);
  expect(uncaught).toEqual([thrown]);
});
