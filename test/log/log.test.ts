import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { ownTurn } from '../../src/core/own-turn.ts';
import { examineSegment } from '../../src/log/examine-segment.ts';
import { Log, type KnownLog, type PayloadPart } from '../../src/log/log.ts';
import type { RecoveredSegments } from '../../src/log/recover-segments.ts';
import { crc32, positionAfter, type LogPosition } from '../../src/log/segment.ts';
import { FaultyFileSystem, type Fault } from '../diskqueue/faulty-file-system.ts';
import { allRemains, nothingRemains, RecordingFileSystem } from '../diskqueue/recording-file-system.ts';
import { folderOfFile } from '../folder.ts';

const folder = folderOfFile();

let files: RecordingFileSystem;
beforeEach(() => {
  files = new RecordingFileSystem();
});

/** Segments of 300 bytes: four records of twelve bytes each. */
const OPTIONS = { folder, name: 'journal', maxBytesPerFile: 312, isAlwaysDurable: false, wallNow: () => 0 };

function open(
  on = files,
  isAlwaysDurable = false,
  known?: KnownLog,
): Promise<{ log: Log; found: RecoveredSegments }> {
  return Log.open({ ...OPTIONS, files: on, isAlwaysDurable }, known);
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text.padEnd(12, '.'));
}

/** Appends records one by one. @returns their positions. */
async function appendAll(log: Log, texts: readonly string[]): Promise<LogPosition[]> {
  const positions: LogPosition[] = [];
  for (const text of texts) {
    const { appended, position, error } = await log.append([bytesOf(text)]);
    expect([appended, error]).toEqual([1, undefined]);
    positions.push(position as LogPosition);
  }
  return positions;
}

interface ReadRecord {
  readonly sequence: number;
  readonly text: string;
}

/** All records of a log, in order. */
async function recordsOf(log: Log): Promise<ReadRecord[]> {
  const records: ReadRecord[] = [];
  for (const segment of log.segments) {
    const reader = await log.openReader(segment);
    for (let pieces = await reader.next(); pieces.length > 0; pieces = await reader.next()) {
      for (const piece of pieces) {
        if (piece.kind !== 'record') continue;
        const { sequence, payload } = piece;
        records.push({ sequence, text: payload.toString().replace(/\.*$/, '') });
      }
    }
    await reader.close();
  }
  return records;
}

function textsOf(records: readonly ReadRecord[]): string[] {
  return records.map(({ text }) => text);
}

const TEXTS = Array.from({ length: 10 }, (_, i) => `record ${i}`);

test('a log keeps the sequence of every record over a reopen', async () => {
  const { log } = await open();
  const { appended, error } = await log.append(['a', 'b', 'c'].map(bytesOf));
  expect([appended, error, log.next]).toEqual([3, undefined, 4]);
  await log.close();
  const again = await open();
  expect(again.found.damages).toEqual([]);
  expect(await recordsOf(again.log)).toEqual([
    { sequence: 1, text: 'a' },
    { sequence: 2, text: 'b' },
    { sequence: 3, text: 'c' },
  ]);
});

test('a log begins a segment when the last one is full, and never appends to one of an earlier process', async () => {
  const { log } = await open();
  await appendAll(log, TEXTS);
  expect(log.segments.map(({ number, base, next }) => [number, base, next])).toEqual([
    [1, 1, 5],
    [2, 5, 9],
    [3, 9, 11],
  ]);
  await log.close();
  const again = await open();
  await appendAll(again.log, ['new']);
  expect(again.log.segments.at(-1)).toMatchObject({ number: 4, base: 11, next: 12 });
  expect(textsOf(await recordsOf(again.log))).toEqual([...TEXTS, 'new']);
});

test('a log counts the payload bytes that were appended and are readable', async () => {
  const { log } = await open(files, true);
  await appendAll(log, ['a', 'b']);
  expect([log.appendedBytes, log.next]).toEqual([0, 1]);
  await log.sync();
  expect([log.appendedBytes, log.next]).toEqual([24, 3]);
  await log.endSegment();
  await appendAll(log, ['c']);
  await log.sync();
  expect([log.appendedBytes, log.next]).toEqual([36, 4]);
});

test('a log does not use the number or the sequences that its owner has noted', async () => {
  const { log } = await open(files, false, { lastNumber: 7 });
  log.skipTo(100);
  await appendAll(log, ['a']);
  expect(log.segments).toMatchObject([{ number: 8, base: 100, next: 101 }]);
});

test('a log keeps every record that was synced, and drops the others, when the power fails', async () => {
  const { log } = await open();
  await appendAll(log, TEXTS.slice(0, 6));
  await log.sync();
  await appendAll(log, TEXTS.slice(6));
  for (const remains of [nothingRemains, allRemains]) {
    const after = new RecordingFileSystem(files.afterPowerCut(files.log.length, remains));
    const { log: recovered, found } = await open(after);
    expect(found.damages).toEqual([]);
    expect(textsOf(await recordsOf(recovered))).toEqual(remains === allRemains ? TEXTS : TEXTS.slice(0, 8));
    await recovered.close();
  }
});

/** The disk with a damaged payload in the first segment: that of the record at a position. */
function damagedAt({ offset }: LogPosition): RecordingFileSystem {
  const { disk } = files;
  const [path] = [...disk.keys()].sort() as [string];
  (disk.get(path) as Buffer)[offset + 24] = 0;
  return new RecordingFileSystem(disk);
}

/** A payload that is read back as a whole. */
const wholeOf = (position: LogPosition, payload: Buffer): PayloadPart => ({
  ...{ position, start: 0, length: payload.length, crc: crc32(payload) },
});

test('a payload that is read back by its position is read from memory, from the file, and after a reopen', async () => {
  const { log } = await open();
  const positions = await appendAll(log, TEXTS);
  const check = async (on: Log): Promise<void> => {
    for (const [i, position] of positions.entries()) {
      const payload = bytesOf(TEXTS[i] as string);
      expect(await on.read(wholeOf(position, payload))).toEqual(payload);
    }
  };
  await check(log);
  await log.close();
  const again = await open();
  await check(again.log);
  await again.log.close();
  expect(files.handles).toBe(0);
});

test('a payload that is read back by its position is found behind another one of the same append', async () => {
  const { log } = await open();
  const { position } = await log.append([Buffer.from('first'), Buffer.from('second')]);
  const second = positionAfter(position as LogPosition, 5);
  expect((await log.read(wholeOf(second, Buffer.from('second'))))?.toString()).toBe('second');
});

test('a payload that is read back by its position is read in part, whatever is around the part', async () => {
  const { log } = await open();
  const { position } = await log.append([Buffer.from('first second third')]);
  const part = { ...wholeOf(position as LogPosition, Buffer.from('second')), start: 6 };
  expect((await log.read(part))?.toString()).toBe('second');
  expect(await log.read({ ...part, start: 5 })).toBeUndefined();
});

test('a payload that is read back by its position is undefined if it is damaged, another one, or its segment was removed', async () => {
  const { log } = await open();
  const positions = await appendAll(log, TEXTS);
  await log.close();
  const [first, , third] = positions as [LogPosition, LogPosition, LogPosition];
  const { log: again } = await open(damagedAt(third));
  const firstPart = wholeOf(first, bytesOf(TEXTS[0] as string));
  const thirdPart = wholeOf(third, bytesOf(TEXTS[2] as string));
  expect(await again.read(thirdPart)).toBeUndefined();
  expect(await again.read({ ...firstPart, position: third })).toBeUndefined();
  expect(await again.read({ ...firstPart, length: 1_000_000 })).toBeUndefined();
  expect(await again.read(firstPart)).toBeDefined();
  await again.remove(again.segments.slice(0, 1));
  expect(await again.read(firstPart)).toBeUndefined();
  await again.close();
});

test('a log gets smaller when records that are needed are moved to its end and the first segment is removed', async () => {
  const { log } = await open();
  await appendAll(log, TEXTS);
  const isNeeded = (text: string): boolean => ['record 2', 'record 9'].includes(text);
  for (let round = 0; round < 3; round++) {
    const [oldest] = log.segments;
    if (oldest === undefined) throw new Error('no segment');
    if (oldest === log.written) await log.endSegment();
    const reader = await log.openReader(oldest);
    for (let pieces = await reader.next(); pieces.length > 0; pieces = await reader.next()) {
      for (const piece of pieces) {
        if (piece.kind !== 'record') continue;
        const text = piece.payload.toString().replace(/\.*$/, '');
        if (isNeeded(text)) await log.append([piece.payload]);
      }
    }
    await reader.close();
    await log.sync();
    await log.remove([oldest]);
  }
  await log.close();
  const { log: again, found } = await open();
  expect(found.damages).toEqual([]);
  expect(await recordsOf(again)).toMatchObject([{ text: 'record 9' }, { text: 'record 2' }]);
  expect(again.segments.length).toBeLessThanOrEqual(2);
  await again.close();
});

test('a record whose segment is being removed reads as undefined, whenever the read starts', async () => {
  const { log } = await open();
  const [position] = await appendAll(log, TEXTS);
  if (position === undefined) throw new Error('nothing was appended');
  const part = wholeOf(position, bytesOf(TEXTS[0] as string));
  const read = (): Promise<Buffer | undefined> => log.read(part);
  expect(await read()).toEqual(bytesOf(String(TEXTS[0])));
  const first = log.segments.slice(0, 1);
  const before = read();
  const removal = log.remove(first);
  const reads = [];
  for (let turn = 0; turn < 10; turn++) {
    reads.push(read());
    await Promise.resolve();
  }
  await removal;
  reads.push(read());
  await before; // the record, or undefined: it started earlier
  expect(await Promise.all(reads)).toEqual(reads.map(() => undefined));
  await log.close();
  expect(files.handles).toBe(0);
});

test('an examination of a segment finds its records and its damage', async () => {
  const { log } = await open();
  const positions = await appendAll(log, TEXTS.slice(0, 4));
  await log.close();
  const on = damagedAt(positions[1] as LogPosition);
  const { log: again } = await open(on);
  const [segment] = again.segments as [(typeof again.segments)[0]];
  const examined = await examineSegment(on, segment, undefined, () => undefined);
  expect(examined).toMatchObject({
    ...{ records: 3, next: 5, isSealed: true, headerCopies: ['intact', 'intact'] },
    ...{ hasWrongFooter: false, hasStrayFooter: false },
    damages: [{ from: 2, to: 3, reason: 'the checksum of a payload is wrong' }],
  });
  await again.close();
});

test('behind a segment with the largest number nothing is appended, because it would not be found again', async () => {
  const path = join(folder, 'journal.999999999999999.segment');
  for (const bytes of [Buffer.alloc(0), Buffer.from('no segment')]) {
    const { log } = await open(new RecordingFileSystem(new Map([[path, bytes]])));
    const { appended, error } = await log.append([bytesOf('lost')]);
    expect({ appended, error: String(error) }).toEqual({
      appended: 0,
      error: 'Error: a segment has the number 999999999999999, and none can come behind it',
    });
    await log.close();
  }
});

const syncs = (): number => files.log.filter(({ kind }) => kind === 'sync').length;

test('a sync that nothing waits for begins after a quarter of a segment, and only if records are readable without it', async () => {
  for (const isAlwaysDurable of [false, true]) {
    const { log } = await open(files, isAlwaysDurable);
    await log.beginSegment();
    const before = syncs();
    await appendAll(log, ['one', 'two', 'three']);
    await ownTurn();
    expect(syncs() - before).toBe(isAlwaysDurable ? 0 : 1);
    await log.close();
  }
});

test('the failure of a sync that nothing waits for is returned by the next append, once, and rejects every sync until its records are not needed', async () => {
  const fault: Fault = { call: 'sync', nth: 1, code: 'EIO', isLasting: false };
  const { log } = await Log.open({ ...OPTIONS, files: new FaultyFileSystem(files, fault) });
  await appendAll(log, ['one', 'two', 'three']);
  await ownTurn();
  const { appended, error } = await log.append([bytesOf('four')]);
  expect([appended, error]).toEqual([0, expect.objectContaining({ code: 'EIO' })]);
  await appendAll(log, ['five']);
  expect(textsOf(await recordsOf(log))).toEqual(['one', 'two', 'three', 'five']);
  expect(log.segments.length).toBe(2);
  for (const firstNeeded of [0, 1])
    await expect(log.sync(firstNeeded)).rejects.toMatchObject({ code: 'EIO' });
  await log.sync(log.next);
  await log.close();
  expect(files.handles).toBe(0);
});

test('a sync that nothing waits for is awaited before its file is closed', async () => {
  const { log } = await open();
  await appendAll(log, ['one', 'two', 'three']);
  await log.leaveSegment();
  const kinds = files.log.map(({ kind }) => kind);
  expect(kinds.at(-1)).toBe('sync');
  expect(files.handles).toBe(0);
});

test('reading parts of many segments leaves few files open, also if they are read at the same time', async () => {
  const { log } = await open();
  const texts = Array.from({ length: 400 }, (_, nth) => `record ${nth}`);
  const positions = await appendAll(log, texts);
  await log.sync();
  expect(log.segments.length).toBe(100);
  const parts = positions.map((position, nth) => wholeOf(position, bytesOf(texts[nth] as string)));
  const read = async (nth: number): Promise<void> => {
    expect((await log.read(parts[nth] as PayloadPart))?.equals(bytesOf(texts[nth] as string))).toBe(true);
  };
  for (let nth = 0; nth < 400; nth += 3) await read(nth);
  expect(files.handles).toBeLessThanOrEqual(65);
  await Promise.all(parts.map((_, nth) => read(nth)));
  expect(files.handles).toBeLessThanOrEqual(65);
  await log.close();
  expect(files.handles).toBe(0);
});
