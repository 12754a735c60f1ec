import { readFileSync } from 'node:fs';
import type { EmbeddedBroker, TaskState } from 'escapement/tasks';
import { checkBroker, ManualClock } from 'escapement/testing';
import { expect, test } from 'vitest';
import { Log } from '../../../../src/log/log.ts';
import { decodeRecordHeader, decodeSegmentHeader } from '../../../../src/log/segment.ts';
import { RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES } from '../../../../src/log/segment.ts';
import { INTERNALS } from '../../../../src/tasks/broker/embedded/embedded-broker.ts';
import { ENTRIES, Kind } from '../../../../src/tasks/broker/embedded/journal-format.ts';
import type { Journal } from '../../../../src/tasks/broker/embedded/journal.ts';
import type { JournaledRow } from '../../../../src/tasks/broker/embedded/journaled-row.ts';
import type { TaskStore } from '../../../../src/tasks/broker/embedded/task-store.ts';
import {
  TRANSFER,
  type Piece,
  type WholeQueue,
  type WholeTask,
} from '../../../../src/tasks/broker/transfer.ts';
import { lockKey, newTask, QUEUE, type TaskParts } from '../../../conformance/broker/support.ts';
import { RecordingFileSystem } from '../../../diskqueue/recording-file-system.ts';
import { folderOfFile } from '../../../folder.ts';
import { openFolder } from './open-folder.ts';

/*
 * The golden file has an entry a line: every kind, with every field. Folders that exist have such entries, so a line never changes: a new
 * kind or field has lines of its own, at the end.
 */
const GOLDEN = readFileSync(new URL('golden/journal-entries.hex', import.meta.url), 'utf8');

const NOW = 1_795_262_400_000;
const DAY = 86_400_000;
const folder = folderOfFile();

function open(files: RecordingFileSystem): Promise<EmbeddedBroker> {
  const clock = new ManualClock({ nowMs: NOW, wallMs: NOW });
  return openFolder(folder, { clock, maxBytesPerFile: 65_536 }, files);
}

function task(id: string, state: TaskState, parts: TaskParts = {}, rest: Partial<WholeTask> = {}): WholeTask {
  const { message } = newTask({ id, timeoutMs: 0, ...parts });
  const nothing = { recoveries: 0, lockEndsMs: 0, result: undefined, progress: undefined };
  return { ...nothing, message, state: state as WholeTask['state'], atMs: NOW, ...rest };
}

/** The fields of a task that its runs change. */
const RAN = { retried: 2, lastError: 'größer', lastFailedAtMs: NOW - 2_000, completedAtMs: NOW - 1_000 };
const WHOLE: TaskParts = {
  ...{ payload: Uint8Array.of(0, 1, 0xff), headers: { ä: 'ß' }, group: 'g', uniqueKey: lockKey('u') },
  ...{ maxRetry: 7, timeoutMs: 1_000, deadlineMs: NOW + DAY, retentionMs: 60_000, ...RAN },
};
const WHOLE_STATE = {
  ...{ atMs: NOW + 5_000, recoveries: 3, lockEndsMs: NOW + 9_000 },
  ...{ result: Uint8Array.of(9, 8), progress: '{"done":1}' },
};
/** One in each state. Each field that an entry may leave out is in another one of them, so that its bit is seen. */
const IN_STATES = [
  task('pending', 'pending', { timeoutMs: 1_000 }),
  task('locked', 'pending', { uniqueKey: lockKey('v') }, { lockEndsMs: NOW + 9_000 }),
  task('keyed', 'pending', { key: 'k', deadlineMs: NOW + DAY }),
  task('scheduled', 'scheduled', { headers: { a: 'b' } }, { atMs: NOW + 1_000, recoveries: 1 }),
  task('whole', 'retry', WHOLE, WHOLE_STATE),
  task('retry', 'retry', { retried: 1 }, { atMs: NOW + 6_000, progress: '50' }),
  task('archived', 'archived', { lastError: 'x' }, { result: Uint8Array.of(7) }),
  task('completed', 'completed', { completedAtMs: NOW, retentionMs: 1_000 }, { atMs: NOW + 1_000 }),
  task('aggregating', 'aggregating', { group: 'g' }),
];
const SETTINGS: WholeQueue = {
  ...{ name: QUEUE, isPaused: true, epoch: 0, ticks: [['first', NOW - DAY]] },
  limits: { concurrency: 5, rate: { tasks: 10, perMs: 1_000, burst: 10 }, perKey: { concurrency: 1 } },
  ...{ days: [['2026-11-20', 5, 2]], processedTotal: 50, failedTotal: 20 },
};
const EVENT = { atMs: NOW, taskId: 'enqueued' };

function internalsOf(broker: EmbeddedBroker): { journal: Journal; store: TaskStore } {
  return broker[INTERNALS]() as ReturnType<typeof internalsOf>;
}

/** Writes every kind of entry. @returns all entries, a line each. */
async function writeAll(): Promise<string> {
  const files = new RecordingFileSystem();
  const broker = await open(files);
  const { journal, store } = internalsOf(broker);
  const transfer = broker[TRANSFER]();
  await transfer.write({ kind: 'queue', queue: SETTINGS });
  const others = ['started', 'changed', 'removed'].map((id) => task(id, 'pending'));
  await transfer.write({ kind: 'tasks', queue: QUEUE, tasks: [...IN_STATES, ...others] });
  await transfer.write({ kind: 'tasks', queue: 'gone', tasks: [task('gone', 'pending', { queue: 'gone' })] });
  await transfer.write({ kind: 'events', entryId: 'first', events: [EVENT] });
  const rowOf = (id: string): JournaledRow => store.queue(QUEUE).rows.get(id) as JournaledRow;
  const [started, changed] = [rowOf('started'), rowOf('changed')];
  journal.start(started);
  journal.write(Kind.result, started.number, Uint8Array.of(1, 2));
  journal.write(Kind.progress, started.number, '50');
  changed.message = { ...changed.message, ...RAN };
  changed.recoveries = 3;
  journal.change(changed);
  journal.remove(rowOf('removed'), false);
  journal.write(Kind.removeQueue, 'gone');
  journal.write(Kind.count, NOW, 1, QUEUE);
  journal.write(Kind.tick, NOW, QUEUE, 'second');
  journal.write(Kind.events, 'second', [EVENT]);
  journal.write(Kind.bucket, NOW + 100, QUEUE, '');
  await broker.close();
  return [...files.disk.values()].flatMap(entriesIn).join('');
}

/** The entries in a segment, a line of hexadecimal digits each. */
function entriesIn(segment: Buffer): string[] {
  const salt = decodeSegmentHeader(segment)?.salt ?? 0;
  const lines: string[] = [];
  let at = SEGMENT_HEADER_BYTES;
  for (let record = decodeRecordHeader(segment, at, salt); record?.type === ENTRIES;) {
    const end = at + RECORD_HEADER_BYTES + record.length;
    for (let entry = at + RECORD_HEADER_BYTES, next = 0; entry < end; entry = next) {
      next = entry + 5 + segment.readUInt32LE(entry + 1);
      lines.push(`${segment.toString('hex', entry, next)}\n`);
    }
    at = end;
    record = decodeRecordHeader(segment, at, salt);
  }
  return lines;
}

test('the entries that a broker writes are those of the golden file, which has every kind', async () => {
  expect(await writeAll()).toBe(GOLDEN);
  const kinds = GOLDEN.split('\n').map((line) => Number.parseInt(line.slice(0, 2), 16));
  expect(kinds).toEqual(expect.arrayContaining(Object.values(Kind)));
});

test('a broker reads every field of every kind from the entries of the golden file', async () => {
  const files = new RecordingFileSystem();
  const options = { files, folder, name: 'tasks', recordType: ENTRIES, maxBytesPerFile: 65_536 };
  const { log } = await Log.open({ ...options, isAlwaysDurable: true, wallNow: () => NOW });
  await log.append([Buffer.from(GOLDEN.replaceAll('\n', ''), 'hex')]);
  await log.close();
  const broker = await open(files);
  const pieces: Piece[] = [];
  for await (const piece of broker[TRANSFER]().read()) pieces.push(piece);
  const [pending, locked, keyed, ...others] = IN_STATES;
  const tasks = [
    task('started', 'pending', {}, { recoveries: 1, result: Uint8Array.of(1, 2), progress: '50' }), // its run is lost
    ...[pending, locked],
    task('changed', 'pending', RAN, { recoveries: 3 }),
    ...[keyed, ...others],
  ];
  const { store } = internalsOf(broker);
  const queue = {
    ...{ ...SETTINGS, epoch: store.serial, ticks: [...SETTINGS.ticks, ['second', NOW]] },
    ...{ days: [...SETTINGS.days, ['2026-11-21', 1, 1]], processedTotal: 51, failedTotal: 21 },
  };
  expect(pieces).toEqual([
    { kind: 'queue', queue },
    { kind: 'tasks', queue: QUEUE, tasks },
    { kind: 'events', entryId: 'first', events: [EVENT] },
    { kind: 'events', entryId: 'second', events: [EVENT] },
  ]);
  expect(store.queue(QUEUE).settings.buckets).toEqual([['', NOW + 100]]);
  expect(store.serial).toBeGreaterThan(1_000_000); // numbers of tasks that were reserved are not used again
  checkBroker(broker);
  await broker.close();
});
