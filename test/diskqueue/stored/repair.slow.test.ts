import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  DATA,
  decodeSegmentHeader,
  encodeRecord,
  encodeSegmentHeader,
  SEGMENT_HEADER_BYTES,
  segmentFileName,
} from '../../../src/log/segment.ts';
import { StoredCheckedQueue } from '../../../src/diskqueue/checked/stored-checked-queue.ts';
import { CannotRepair } from '../../../src/diskqueue/stored/stored-queue.ts';
import { propertyRuns, stepOf } from '../../runs.ts';
import { FaultyFileSystem } from '../faulty-file-system.ts';
import { withoutZeros } from '../support/damage.ts';
import { MemoryDisk } from './memory-disk.ts';
import {
  bytesOf,
  expectInOrder,
  FOLDER,
  handedOut,
  NAME,
  pathsOf,
  planFor,
  queueOf,
  repair,
  storedOn,
} from './repaired.ts';

const MESSAGES = Array.from({ length: 30 }, (_, i) => `message ${i + 1}${'.'.repeat(i % 7)}`);
const HEADER = 24;

/** Where the messages are in a segment: offset of the record, and its sequence. */
async function recordsIn(
  disk: MemoryDisk,
): Promise<{ path: string; offset: number; end: number; sequence: number }[]> {
  const records = [];
  const sequences = new Map<string, number>();
  for await (const { sequence, data } of storedOn(disk).messages({
    isAll: true,
    from: 0,
    onDamage: () => undefined,
  })) {
    sequences.set(Buffer.from(data).toString(), sequence);
  }
  for (const path of pathsOf(disk, '.segment')) {
    for (const [text, sequence] of sequences) {
      const at = bytesOf(disk, path).indexOf(Buffer.from(text));
      const length = at < 0 ? 0 : bytesOf(disk, path).readUInt32LE(at - HEADER + 4);
      if (at >= 0 && length === text.length)
        records.push({ path, offset: at - HEADER, end: at + length, sequence });
    }
  }
  return records;
}

/** A queue that was closed, and where its messages are. */
const whole = await queueOf(MESSAGES);
const records = await recordsIn(whole);
const SEGMENTS = pathsOf(whole, '.segment');
/** The same, as a killed process leaves it. */
const crashed = await queueOf(MESSAGES, { isClosed: false });
const last = pathsOf(crashed, '.segment').at(-1) as string;

/** A copy of a disk with a flipped bit. */
function flipped(disk: MemoryDisk, path: string, at: number): MemoryDisk {
  const copy = new MemoryDisk(disk.contents);
  bytesOf(copy, path)[at] = (bytesOf(disk, path)[at] as number) ^ (1 << (at % 8));
  return copy;
}

/** The messages whose records are in the file up to `end`, or in another file. */
function wholeUpTo(path: string, end: number): string[] {
  const gone = new Set(records.filter((r) => r.path === path && r.end > end).map(({ sequence }) => sequence));
  return MESSAGES.filter((_, i) => !gone.has(i + 1));
}

it('repair of a queue with one flipped bit keeps every message, except for the one that it is in; a second repair changes nothing', async () => {
  expect(records).toHaveLength(MESSAGES.length);
  const step = stepOf(7);
  // Each file is begun at another byte, so that every byte of a header is hit in one of them.
  for (const [nth, path] of SEGMENTS.entries()) {
    for (let at = nth % step; at < bytesOf(whole, path).length; at += step) {
      const disk = flipped(whole, path, at);
      const hit = records.find((r) => r.path === path && at >= r.offset && at < r.end);
      const lost = await repair(disk);
      const expected = MESSAGES.filter((_, i) => i + 1 !== hit?.sequence);
      expect([path, at, await handedOut(disk)]).toEqual([path, at, expected]);
      expect(lost.map(({ firstSequence, messages }) => [firstSequence, messages])).toEqual(
        hit === undefined ? [] : [[hit.sequence, 1]],
      );
      await expectInOrder(disk);
    }
  }
});

/** Nothing can be read in a segment of which both copies of the header are damaged. */
function isReadable(disk: MemoryDisk, path: string): boolean {
  return decodeSegmentHeader(bytesOf(disk, path).subarray(0, 128)) !== undefined;
}

it('repair of a queue with many flipped bits keeps every message that has none, and leaves nothing to report; a second repair changes nothing', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(SEGMENTS.length - 1), fc.nat(10_000), fc.nat(7)), {
        minLength: 2,
        maxLength: 12,
      }),
      async (flips) => {
        const disk = new MemoryDisk(whole.contents);
        const hit = new Set<number>();
        for (const [i, place, bit] of flips) {
          const path = SEGMENTS[i] as string;
          const bytes = bytesOf(disk, path);
          const at = place % bytes.length;
          bytes[at] = (bytes[at] as number) ^ (1 << bit);
          for (const r of records) if (r.path === path && at >= r.offset && at < r.end) hit.add(r.sequence);
        }
        fc.pre(SEGMENTS.every((path) => isReadable(disk, path)));
        const lost = await repair(disk);
        const messages = await handedOut(disk);
        expect(messages).toEqual(MESSAGES.filter((message) => messages.includes(message)));
        const untouched = MESSAGES.filter((_, i) => !hit.has(i + 1));
        expect(untouched.filter((message) => !messages.includes(message))).toEqual([]);
        const named = lost.reduce((sum, loss) => sum + (loss.messages ?? 0), 0);
        expect(named).toBeLessThanOrEqual(MESSAGES.length - messages.length);
        await expectInOrder(disk);
      },
    ),
    propertyRuns(),
  );
});

it('repair of a queue with a file that was cut off keeps every message before the cut, and all of the other files', async () => {
  for (const [nth, path] of SEGMENTS.entries()) {
    for (let length = nth; length < bytesOf(whole, path).length; length += 3 * stepOf(5)) {
      const disk = new MemoryDisk(whole.contents);
      disk.contents.set(path, bytesOf(whole, path).subarray(0, length));
      await repair(disk);
      expect([path, length, await handedOut(disk)]).toEqual([path, length, wholeUpTo(path, length)]);
      await expectInOrder(disk);
    }
  }
});

it('repair of a queue with a file that was cut off loses no other message when it is damaged and repaired again and again', async () => {
  const disk = await queueOf(MESSAGES);
  let expected = MESSAGES;
  for (const [i, path] of pathsOf(disk, '.segment').entries()) {
    const left = await recordsIn(disk);
    const hit = left.find((record) => record.path === path);
    if (hit === undefined) throw new Error('no record');
    bytesOf(disk, path)[hit.end - 1] = 0;
    const lost = await repair(disk);
    expect(lost).toHaveLength(1);
    expected = expected.filter((message) => message !== MESSAGES[hit.sequence - 1]);
    expect(await handedOut(disk)).toEqual(expected);
    await expectInOrder(disk);
    expect(pathsOf(disk, '.damaged')).toHaveLength(i + 1);
  }
});

it('a repaired queue has a record of what was lost, so nothing is reported again without its cursor', async () => {
  const disk = await queueOf(MESSAGES);
  const [path = ''] = pathsOf(disk, '.segment');
  bytesOf(disk, path)[128 + HEADER] = 0;
  expect(await repair(disk)).toMatchObject([{ firstSequence: 1, lastSequence: 1, messages: 1 }]);
  disk.contents.delete(`${FOLDER}/q.cursor`);
  expect(await handedOut(disk)).toEqual(MESSAGES.slice(1));
  await expectInOrder(disk);
});

it('repair of a queue after a crash seals the last file, cuts off a torn end, and loses no message', async () => {
  for (const tail of [[], [0xec], [0xec, 0x51, 1, 0, 9, 0, 0, 0, 31], new Array<number>(600).fill(0)]) {
    const disk = new MemoryDisk(crashed.contents);
    disk.contents.set(last, Buffer.concat([withoutZeros(bytesOf(crashed, last)), Buffer.from(tail)]));
    expect((await storedOn(disk).verify(() => undefined)).problems).toEqual([]);
    const { steps, lost } = await planFor(disk);
    expect([steps.map(({ action }) => action), lost]).toEqual([['seal'], []]);
    await repair(disk);
    expect(await handedOut(disk)).toEqual(MESSAGES);
    await expectInOrder(disk);
  }
});

it('a repair makes no message of a record of which a power cut has left the beginning', async () => {
  const { length } = withoutZeros(bytesOf(crashed, last));
  const record = length - HEADER - (MESSAGES.at(-1) as string).length;
  for (let torn = record; torn < length; torn++) {
    const disk = new MemoryDisk(crashed.contents);
    bytesOf(disk, last).fill(0, torn);
    await repair(disk);
    expect([torn, await handedOut(disk)]).toEqual([torn, MESSAGES.slice(0, -1)]);
  }
});

it('repair of a queue after a crash removes unfinished files', async () => {
  const disk = await queueOf(MESSAGES);
  const [first = ''] = pathsOf(disk, '.segment');
  const left = ['.cursor.new', '.0000000099.segment'].map((name) => `${FOLDER}/q${name}`);
  for (const path of [...left, `${first}.rewritten`, `${first}.damaged.new`, `${first}.damaged.2.new`]) {
    disk.contents.set(path, Buffer.from('x'));
  }
  await repair(disk);
  expect(pathsOf(disk, 'new').concat(pathsOf(disk, 'rewritten'))).toEqual([]);
  expect(pathsOf(disk, '.segment')).toHaveLength(4);
  expect(await handedOut(disk)).toEqual(MESSAGES);
  await expectInOrder(disk);
});

it('repair of a queue after a crash does nothing to an intact queue', async () => {
  for (const acked of [0, 3, 30]) await expectInOrder(await queueOf(MESSAGES, { acked }));
});

it('repair of a damaged cursor loses no message, wherever a bit is flipped, but some may be delivered again', async () => {
  const someAcked = await queueOf(MESSAGES, { acked: 12 });
  const [path = ''] = pathsOf(someAcked, '.cursor');
  const starts = [0, 64, 4_096, 8_192, 8_256]; // of its head, its two slots, and its first ranges
  const bytes = starts.flatMap((start) => Array.from({ length: 64 }, (_, i) => start + i));
  for (const at of bytes.filter((_, i) => i % stepOf(3) === 0)) {
    const disk = flipped(someAcked, path, at);
    expect(await repair(disk)).toEqual([]);
    const messages = await handedOut(disk);
    expect(messages.slice(-18)).toEqual(MESSAGES.slice(-18));
    expect(MESSAGES.slice(-messages.length)).toEqual(messages);
    await expectInOrder(disk);
  }
});

it('repair of a damaged cursor writes a new one where it is missing and older messages were removed', async () => {
  const disk = await queueOf(MESSAGES, { acked: 12 });
  disk.contents.delete(`${FOLDER}/q.cursor`);
  expect(await repair(disk)).toEqual([]);
  expect((await handedOut(disk)).slice(-18)).toEqual(MESSAGES.slice(-18));
  await expectInOrder(disk);
});

it('repair of a queue of which a file is missing names its messages once', async () => {
  for (const path of SEGMENTS.slice(1, -1)) {
    const disk = new MemoryDisk(whole.contents);
    disk.contents.delete(path);
    const gone = records.filter((record) => record.path === path).map(({ sequence }) => sequence);
    const lost = await repair(disk);
    expect(lost).toMatchObject([
      { firstSequence: Math.min(...gone), lastSequence: Math.max(...gone), messages: gone.length },
    ]);
    expect(await handedOut(disk)).toEqual(MESSAGES.filter((_, i) => !gone.includes(i + 1)));
    await expectInOrder(disk);
  }
});

it('repair of a file in which nothing can be read reports a loss of an unknown number of messages if it is the only file', async () => {
  const disk = new MemoryDisk();
  const path = `${FOLDER}/q.0000000001.segment`;
  disk.contents.set(path, Buffer.alloc(1_000, 'x'));
  expect(await repair(disk)).toMatchObject([{ file: path, bytes: 1_000, messages: undefined }]);
  expect(pathsOf(disk, '.damaged')).toEqual([`${path}.damaged`]);
  await expectInOrder(disk);
});

it('repair of a file in which nothing can be read reports no loss if the next file proves that all of it was acknowledged', async () => {
  const disk = await queueOf(MESSAGES);
  const [first = '', second = ''] = pathsOf(disk, '.segment');
  const acked = (await recordsIn(disk)).filter(({ path }) => path === first).length;
  const cursor = await queueOf(MESSAGES, { acked, isClosed: false });
  disk.contents.set(`${FOLDER}/q.cursor`, bytesOf(cursor, `${FOLDER}/q.cursor`));
  disk.contents.set(first, Buffer.alloc(1_000, 'x'));
  expect(await repair(disk)).toEqual([]);
  expect(pathsOf(disk, '.segment')[0]).toBe(second);
  await expectInOrder(disk);
});

it('a file of which both copies of the header are damaged is set aside by a repair, which reports the messages that verify has named before', async () => {
  for (const path of SEGMENTS.slice(0, -1)) {
    const disk = new MemoryDisk(whole.contents);
    bytesOf(disk, path)[3] = 0xff;
    bytesOf(disk, path)[70] = 0xff;
    const sequences = records.filter((record) => record.path === path).map(({ sequence }) => sequence);
    const lost = { file: path, firstSequence: Math.min(...sequences), lastSequence: Math.max(...sequences) };
    const { problems } = await storedOn(disk).verify(() => undefined);
    expect(problems).toMatchObject([lost]);
    expect(await repair(disk)).toMatchObject([{ ...lost, messages: sequences.length }]);
    expect(bytesOf(disk, `${path}.damaged`)).toHaveLength(bytesOf(whole, path).length);
    expect(await handedOut(disk)).toEqual(MESSAGES.filter((_, i) => !sequences.includes(i + 1)));
    await expectInOrder(disk);
  }
});

it('repair of a file in whose middle bytes are missing makes it valid, or throws CannotRepair and leaves it as it was', async () => {
  let repaired = 0;
  for (const path of SEGMENTS) {
    for (const missing of [7, 50, 75, 100, 150]) {
      for (let at = 130; at + missing < bytesOf(whole, path).length; at += 23 * stepOf(3)) {
        const disk = new MemoryDisk(whole.contents);
        const bytes = bytesOf(disk, path);
        disk.contents.set(path, Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + missing)]));
        try {
          await repair(disk);
        } catch (error) {
          expect(error).toBeInstanceOf(CannotRepair);
          expect(pathsOf(disk, '')).toEqual(pathsOf(whole, ''));
          continue;
        }
        await expectInOrder(disk);
        expect(MESSAGES).toEqual(expect.arrayContaining(await handedOut(disk)));
        repaired++;
      }
    }
  }
  expect(repaired).toBeGreaterThan(20);
});

it('verify lists damaged messages, however many a file has', async () => {
  const MANY = 150_000; // more than a call has arguments
  const header = {
    ...{ number: 1, salt: 7, baseSequence: 1, previousEnd: 0, isAlwaysDurable: true, createdWallMs: 0 },
  };
  const file = Buffer.alloc(SEGMENT_HEADER_BYTES + (MANY + 1) * (HEADER + 1));
  let end = encodeSegmentHeader(header).copy(file);
  for (let i = 0; i <= MANY; i++) {
    end = encodeRecord(file, end, DATA, Buffer.of(1), header.baseSequence + i, header.salt, true);
    if (i < MANY) file[end - 1] = 2;
  }
  const disk = new MemoryDisk(new Map([[`${FOLDER}/${segmentFileName(NAME, header.number)}`, file]]));
  const { messages, problems } = await storedOn(disk).verify(() => undefined);
  expect([messages, problems.length]).toEqual([1, MANY]);
});

it('a repair for which the disk has no space leaves every file as it was, and no other one', async () => {
  const damaged = flipped(whole, SEGMENTS[0] as string, (records[0] as (typeof records)[0]).end - 1);
  const calls = new FaultyFileSystem(new MemoryDisk(damaged.contents));
  await repair(damaged, new StoredCheckedQueue(calls, FOLDER, NAME));
  const writes = (calls.calls.get('write') ?? 0) - 1; // the last one is that of the cursor, the next step
  expect(writes).toBeGreaterThan(3);
  for (let nth = 0; nth < writes; nth++) {
    const disk = new MemoryDisk(damaged.contents);
    const full = new FaultyFileSystem(disk, { call: 'write', nth, code: 'ENOSPC', isLasting: true });
    const repaired = repair(disk, new StoredCheckedQueue(full, FOLDER, NAME));
    await expect(repaired).rejects.toHaveProperty('code', 'ENOSPC');
    expect([...disk.contents.keys()]).toEqual([...damaged.contents.keys()]);
    expect(disk.contents).toEqual(damaged.contents);
  }
});

it('a repair that is interrupted has lost no intact message, and can be repeated', async () => {
  const damaged = await queueOf(MESSAGES, { acked: 2 });
  const paths = pathsOf(damaged, '.segment');
  for (const [i, path] of paths.entries()) bytesOf(damaged, path)[i === 1 ? 3 : 128 + HEADER + 2] = 0xff;
  bytesOf(damaged, paths[1] as string)[70] = 0xff;
  const expected = new MemoryDisk(damaged.contents);
  await repair(expected);
  const kept = await handedOut(expected);
  expect(kept.length).toBeGreaterThan(15);
  for (let changes = 0; ; changes++) {
    const disk = new MemoryDisk(damaged.contents);
    disk.changesLeft = changes;
    const isDone = await repair(disk).then(
      () => true,
      () => false,
    );
    disk.changesLeft = Infinity;
    await repair(disk);
    expect([changes, await handedOut(disk)]).toEqual([changes, kept]);
    await expectInOrder(disk);
    if (isDone) break;
  }
});
