import { EmbeddedBroker, type CorruptionEvent, type EmbeddedBrokerOptions } from 'escapement/tasks';
import { checkBroker, ManualClock } from 'escapement/testing';
import { expect, test } from 'vitest';
import type { FileSystem } from '../../../../src/log/file-system.ts';
import { Log } from '../../../../src/log/log.ts';
import { FOOTER, RECORD_HEADER_BYTES } from '../../../../src/log/segment.ts';
import { FOR_READING, INTERNALS } from '../../../../src/tasks/broker/embedded/embedded-broker.ts';
import { EntryWriter } from '../../../../src/tasks/broker/embedded/entry-bytes.ts';
import { ENTRIES, Kind, writeTask } from '../../../../src/tasks/broker/embedded/journal-format.ts';
import {
  failure,
  idsIn,
  LONG_MS,
  newTask,
  QUEUE,
  take,
  type TaskParts,
} from '../../../conformance/broker/support.ts';
import { allRemains, RecordingFileSystem, type Disk } from '../../../diskqueue/recording-file-system.ts';
import { withoutZeros } from '../../../diskqueue/support/damage.ts';
import { uncaughtErrors } from '../../../uncaught-errors.ts';
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

test('operations of one turn with more than 4 KiB are in records of their own: damage to one costs one task', async () => {
  const files = new RecordingFileSystem();
  let broker = await open(files, [], { maxBytesPerFile: 65_536 });
  const payloads = async (): Promise<string[]> => {
    const tasks = await broker.tasks(QUEUE, 'pending', { page: 1, size: 10 });
    return tasks.map(({ message }) => Buffer.from(message.payload).toString());
  };
  const [a, b, c] = ['a', 'b', 'c'].map((id) => id.repeat(5_000)) as [string, string, string];
  await Promise.all([a, b, c].map((text) => broker.enqueue(newTask({ payload: Buffer.from(text) }))));
  expect(await payloads()).toEqual([a, b, c]);
  await broker.close();
  const [[path, bytes] = ['', Buffer.of()]] = files.disk;
  const events: CorruptionEvent[] = [];
  broker = await open(new RecordingFileSystem(flipped(files.disk, path, bytes.indexOf(b) + 700)), events);
  expect(await payloads()).toEqual([a, c]);
  expect(events).toMatchObject([{ file: path }]);
  await broker.close();
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
  const ids = await idsIn(broker, 'pending');
  await broker.close();
  return ids;
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

/** Adds a file with intact records to a disk. */
async function withRecords(disk: Disk, ...records: Buffer[]): Promise<RecordingFileSystem> {
  const files = new RecordingFileSystem(disk);
  const options = { files, folder, name: 'tasks', recordType: ENTRIES, maxBytesPerFile: 4_096 };
  const { log } = await Log.open({ ...options, isAlwaysDurable: true, wallNow: () => START_MS });
  for (const record of records) await log.append([record]);
  await log.close();
  return files;
}

/** Returns a record with a pending task. */
function recordOf(id: string): Buffer {
  const { message } = newTask({ id });
  const row = { message, recoveries: 0, result: undefined, progress: undefined };
  const number = 1e9 + id.charCodeAt(0);
  const stored = { state: 'pending', isStarted: false, serial: number, atMs: START_MS } as const;
  const entry = new EntryWriter();
  entry.begin(Kind.task);
  writeTask(entry, number, stored, 0, row, message.payload);
  entry.end();
  return entry.bytes;
}

const ILLEGAL_RECORDS: readonly (readonly [what: string, record: Buffer, reason: RegExp])[] = [
  // The state is behind the kind, the length and the number.
  ['a task in an unknown state', recordOf('illegal').fill(0x7f, 13, 14), /unknown state/],
  ['an entry that is longer than the record', recordOf('illegal').subarray(0, -1), /longer than its record/],
  ['fewer bytes than an entry has', Buffer.of(1, 2, 3), /not entries of a broker/],
];

test.each(ILLEGAL_RECORDS)(
  'an intact record with %s is reported, and costs nothing else',
  async (_, record, reason) => {
    const { disk } = await withRecords(await threeFiles(), recordOf('d'), record, recordOf('e'));
    const events: CorruptionEvent[] = [];
    expect(await idsOn(disk, events)).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(events).toMatchObject([{ reason: expect.stringMatching(reason) as string }]);
  },
);

test.each(ILLEGAL_RECORDS)(
  'a file that has an intact record with %s is compacted, and none of its tasks is lost',
  async (_, record) => {
    const files = await withRecords(await threeFiles(), recordOf('d'), record, recordOf('e'));
    const before = [...files.disk.keys()];
    const broker = await open(files);
    for (let at = 0; at < 40; at++) {
      await broker.enqueue(newTask({ id: 'x', queue: 'other', payload: large }));
      await broker.change('other', { id: 'x' }, 'delete');
    }
    await broker.close();
    expect(before.filter((path) => files.disk.has(path))).toEqual([]);
    const events: CorruptionEvent[] = [];
    expect(await idsOn(files.disk, events)).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(events).toEqual([]);
  },
);

test('an entry of an unknown kind is passed over, and those behind it are read', async () => {
  const entry = new EntryWriter();
  entry.begin(99);
  entry.text('of a later version');
  entry.end();
  const { disk } = await withRecords(await threeFiles(), Buffer.concat([entry.bytes, recordOf('d')]));
  const events: CorruptionEvent[] = [];
  expect(await idsOn(disk, events)).toEqual(['a', 'b', 'c', 'd']);
  expect(events).toEqual([]);
});

test.each([false, true])(
  'an error of onCorruption is uncaught, and stops nothing; for reading: %j',
  async (isReading) => {
    const uncaught = uncaughtErrors();
    const disk = await threeFiles();
    const [first = ''] = [...disk.keys()].sort();
    const thrown = new Error('from the handler');
    const onCorruption = (): void => {
      throw thrown;
    };
    const options = { onCorruption, [FOR_READING]: isReading };
    const broker = await open(new RecordingFileSystem(flipped(disk, first, 200)), [], options);
    expect((await broker.queueStats(QUEUE)).counts.pending).toBe(2);
    await broker.close();
    await until('the error is uncaught', () => uncaught.length > 0);
    expect(uncaught).toEqual([thrown]);
  },
);
