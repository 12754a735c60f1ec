import { beforeAll, expect, test } from 'vitest';
import { examineQueue, reportOf } from '../../../src/diskqueue/checked/examine-queue.ts';
import { AckRanges } from '../../../src/diskqueue/ack-ranges.ts';
import { CursorFile } from '../../../src/diskqueue/checked/cursor-file.ts';
import type { VerifyReport } from '../../../src/diskqueue/stored/stored-queue.ts';
import { folderOfFile } from '../../folder.ts';
import { NAME, openQueue, receiveAll } from '../crash/open-queue.ts';
import { allRemains, RecordingFileSystem, type Disk } from '../recording-file-system.ts';

const folder = folderOfFile();

/** Twelve messages of 50 bytes in segments of four, of which the first five and another are acknowledged. */
const SETUP = { maxBytesPerFile: 128 + 40 + 4 * 74 };
let closed: Disk;
let crashed: Disk;
/** As `crashed`; the cursor does not know of the last message. */
let unknown: Disk;
beforeAll(async () => {
  const files = new RecordingFileSystem();
  const queue = await openQueue(files, folder, SETUP);
  for (let i = 0; i < 11; i++) await queue.put(Buffer.alloc(50, i + 1));
  const deliveries = await receiveAll(queue);
  for (const i of [1, 2, 3, 4, 8]) deliveries[i]?.ack();
  await queue.flush();
  await queue.put(Buffer.alloc(50, 12));
  unknown = files.afterPowerCut(files.log.length, allRemains);
  await queue.flush();
  crashed = files.afterPowerCut(files.log.length, allRemains);
  await queue.close();
  closed = files.disk;
});

function segment(number: number): string {
  return `${folder}/${NAME}.000000000${number}.segment`;
}

async function verify(disk: Disk): Promise<VerifyReport> {
  const files = new RecordingFileSystem(disk);
  const report = reportOf(await examineQueue(files, folder, NAME));
  expect(files.log, 'it changes nothing').toEqual([]);
  expect(files.handles).toBe(0);
  return report;
}

function changed(disk: Disk, path: string, change: (bytes: Buffer) => Buffer): Disk {
  return new Map(disk).set(path, change(Buffer.from(disk.get(path) as Buffer)));
}

test('a report of an intact queue has its messages, and neither problems nor notes', async () => {
  const bytes = 3 * (128 + 4 * 74 + 40);
  expect(await verify(closed)).toEqual({ messages: 12, unacknowledged: 7, bytes, problems: [], notes: [] });
});

test('a report of a queue without files is empty', async () => {
  expect(await verify(new Map())).toMatchObject({ messages: 0, bytes: 0, problems: [], notes: [] });
});

test('an examination reports its progress up to the end', async () => {
  const told: number[] = [];
  await examineQueue(new RecordingFileSystem(closed), folder, NAME, (done, total) => {
    expect(total).toBe(3 * (128 + 4 * 74 + 40));
    told.push(done);
  });
  expect(told).toEqual([...told].sort((a, b) => a - b));
  expect(told.at(-1)).toBe(3 * (128 + 4 * 74 + 40));
});

test('a report of a queue after a crash has no note on a segment that is not sealed', async () => {
  const { segments } = await examineQueue(new RecordingFileSystem(crashed), folder, NAME);
  expect(segments.map(({ isSealed }) => isSealed)).toEqual([true, true, false]);
  const report = await verify(crashed);
  expect(report).toMatchObject({ messages: 12, unacknowledged: 7, problems: [], notes: [] });
});

test('a report of a queue after a crash notes a torn tail', async () => {
  const { problems, notes, messages } = await verify(
    changed(unknown, segment(3), (bytes) => bytes.subarray(0, 350 + 69)),
  );
  expect({ problems, messages }).toEqual({ problems: [], messages: 11 });
  expect(notes).toEqual([`${segment(3)}: 69 bytes at 350 are not part of a message`]);
});

test('a report of a queue after a crash notes files that are unfinished, or were set aside', async () => {
  const left = [
    [segment(4), 'is unfinished'],
    [`${folder}/${NAME}.cursor.new`, 'is unfinished'],
    [`${segment(9)}.damaged`, 'was set aside'],
    [`${segment(9)}.damaged.2`, 'was set aside'],
    [`${segment(9)}.damaged.3.new`, 'is unfinished'],
    [`${segment(9)}.rewritten`, 'is unfinished'],
  ] as const;
  const disk = new Map(crashed).set(`${folder}/other.0000000009.segment.damaged`, Buffer.alloc(3));
  for (const [path] of left) disk.set(path, Buffer.alloc(3));
  const { problems, notes } = await verify(disk);
  expect(problems).toEqual([]);
  expect(notes).toEqual(left.map(([path, note]) => `${path}: ${note}`));
});

test('a report of a queue after a crash notes acknowledgements of messages that are not in the files, and a torn record of the cursor', async () => {
  // An earlier version did not write where the log ends; nor is that known of what no sync has covered.
  const files = new RecordingFileSystem(closed);
  const acks = new AckRanges(1);
  for (const i of [2, 3, 4, 5, 9]) acks.add(i, i + 1, 50);
  const cursor = new CursorFile(files, folder, NAME);
  await cursor.rewrite(acks, undefined, { segment: 0, isEnded: false, next: 0 });
  await cursor.close();
  const disk = changed(files.disk, `${folder}/${NAME}.cursor`, (bytes) => bytes.subarray(0, -5));
  for (const number of [2, 3]) disk.delete(segment(number));
  const { problems, notes } = await verify(disk);
  expect(problems).toEqual([]);
  expect(notes.join('\n')).toMatch(/a write of 59 bytes at \d+ is unfinished/);
  expect(notes.join('\n')).toMatch(/messages 5 to 9 are acknowledged, and not in the files/);
});

test('a report of a queue after a crash notes damage of acknowledged messages', async () => {
  const { problems, notes } = await verify(
    changed(closed, segment(1), (bytes) => bytes.fill(0, 128 + 74, 128 + 80)),
  );
  expect(problems).toEqual([]);
  expect(notes).toEqual([`${segment(1)} at 202: no record begins here; it is acknowledged`]);
});

test('a report of a damaged queue names the messages that are lost by damage', async () => {
  const { problems, messages } = await verify(
    changed(closed, segment(2), (bytes) => bytes.fill(0xff, 360, 361)),
  );
  expect(messages).toBe(11);
  const lost = { file: segment(2), offset: 350, bytes: 74, firstSequence: 8, lastSequence: 8 };
  expect(problems).toEqual([{ ...lost, reason: 'no record begins here' }]);
});

test('a report of a damaged queue names a header of which one copy or both are damaged, or that has another number', async () => {
  const none = await verify(changed(closed, segment(2), (bytes) => bytes.fill(0, 0, 128)));
  expect(none.problems).toMatchObject([{ file: segment(2), offset: 0, firstSequence: 5, lastSequence: 8 }]);
  const one = await verify(changed(closed, segment(2), (bytes) => bytes.fill(1, 0, 64)));
  expect(one.problems).toMatchObject([{ file: segment(2), offset: 0, bytes: 64 }]);
  const renamed = new Map(closed).set(segment(7), closed.get(segment(3)) as Buffer);
  renamed.delete(segment(3));
  expect((await verify(renamed)).problems).toMatchObject([
    { file: segment(7), reason: 'its name and its header have different numbers' },
    { file: segment(3), firstSequence: 9, lastSequence: 12, reason: 'the segment is missing' },
  ]);
});

test('a report of a damaged queue names the messages that are missing at the end of a segment', async () => {
  const { problems } = await verify(changed(closed, segment(2), (bytes) => bytes.subarray(0, 350)));
  expect(problems).toMatchObject([{ file: segment(2), offset: 350, firstSequence: 8, lastSequence: 8 }]);
});

test('a report of a damaged queue names a damaged record of the cursor', async () => {
  const path = `${folder}/${NAME}.cursor`;
  const { problems } = await verify(changed(closed, path, (bytes) => bytes.fill(0xff, 12, 13)));
  expect(problems).toMatchObject([{ file: path, offset: 0, bytes: 64 }]);
});
