import { readFileSync } from 'node:fs';
import { beforeEach, expect, test } from 'vitest';
import { AckRanges, UNKNOWN_BYTES } from '../../../src/diskqueue/ack-ranges.ts';
import { CursorFile } from '../../../src/diskqueue/checked/cursor-file.ts';
import type { CursorState, LogEnd } from '../../../src/diskqueue/checked/cursor-format.ts';
import { FaultyFileSystem } from '../faulty-file-system.ts';
import { Random } from '../random.ts';
import { FIRST_SEED, runs } from '../../runs.ts';
import { nothingRemains, RecordingFileSystem, someRemains, type Disk } from '../recording-file-system.ts';

const FOLDER = '/queue';
const NAME = 'spool';
const PATH = `${FOLDER}/${NAME}.cursor`;
const HINT = { segment: 3, offset: 4_096, sequence: 5 };
const END: LogEnd = { segment: 4, isEnded: false, next: 33 };
const LAST = 40;
/** Its records of ranges begin there, and its second slot is there. */
const RANGES = 8_192;
const SLOT_B = 4_096;
const SIZE = 65_536;

let files: RecordingFileSystem;
beforeEach(() => {
  files = new RecordingFileSystem();
});

function load(disk: Disk = files.disk): Promise<CursorState> {
  return new CursorFile(new RecordingFileSystem(disk), FOLDER, NAME).load();
}

function setOf(acks: AckRanges): number[] {
  return Array.from({ length: LAST }, (_, i) => i).filter((i) => acks.has(i));
}

/** Every message has other bytes than the others. */
function bytesOf(from: number, to: number): number {
  return Array.from({ length: to - from }, (_, i) => 100 + from + i).reduce((sum, bytes) => sum + bytes, 0);
}

/** A cursor with a prefix and two ranges, of which both slots were written over. */
async function write(): Promise<AckRanges> {
  const acks = new AckRanges(1);
  acks.add(1, 6, 60);
  acks.add(10, 12, 0x1234);
  const cursor = new CursorFile(files, FOLDER, NAME);
  await cursor.rewrite(acks, HINT, END);
  acks.add(20, 30, UNKNOWN_BYTES);
  await cursor.append([{ from: 20, to: 30, bytes: UNKNOWN_BYTES }]);
  acks.add(6, 8, 20);
  for (const next of [34, 35]) {
    const end = { ...END, isEnded: true, next };
    await cursor.writePrefix({ prefix: acks.prefix, hint: { ...HINT, sequence: 6 }, end });
    await cursor.sync();
  }
  await cursor.close();
  return acks;
}

test('a cursor returns what was written to it', async () => {
  const acks = await write();
  const { acks: loaded, hint, end, isThere, damages } = await load();
  expect(loaded).toMatchObject({ prefix: acks.prefix, ranges: acks.ranges });
  expect(hint).toEqual({ ...HINT, sequence: 6 });
  expect({ end, isThere, damages }).toEqual({
    ...{ end: { segment: 4, isEnded: true, next: 35 }, isThere: true, damages: [] },
  });
});

/** A golden file, as bytes. */
function golden(name: string): Buffer {
  const hex = readFileSync(new URL(`../golden/${name}.hex`, import.meta.url), 'utf8');
  return Buffer.from(hex.replaceAll('\n', ''), 'hex');
}

test('the bytes of a cursor are those of the golden file', async () => {
  await write();
  const bytes = files.disk.get(PATH) as Buffer;
  const parts = [
    bytes.subarray(0, 192),
    bytes.subarray(SLOT_B, SLOT_B + 128),
    bytes.subarray(RANGES, RANGES + 192),
  ];
  expect(Buffer.concat(parts).toString('hex')).toBe(golden('checked-cursor').toString('hex'));
  expect(bytes).toHaveLength(SIZE + 64);
});

test('a cursor of version 1 is read, and rewritten by the first save', async () => {
  const old = golden('checked-cursor-1');
  const { acks, hint, end, isThere, damages } = await load(new Map([[PATH, old]]));
  expect(acks).toMatchObject({
    prefix: 8,
    ranges: [
      { from: 10, to: 12, bytes: 0x1234 },
      { from: 20, to: 30 },
    ],
  });
  expect({ hint, end, isThere, damages }).toEqual({
    hint: { ...HINT, sequence: 6 },
    end: { segment: 0, isEnded: false, next: 0 },
    ...{ isThere: true, damages: [] },
  });
  files = new RecordingFileSystem(new Map([[PATH, old]]));
  const cursor = new CursorFile(files, FOLDER, NAME);
  await cursor.load();
  expect(await cursor.reuse()).toBe(false);
});

test('without a cursor nothing is acknowledged', async () => {
  expect(await load()).toMatchObject({ acks: { prefix: 1, ranges: [] }, isThere: false, damages: [] });
});

/** Lengths around the ends of all that is in the file. */
const LENGTHS = [0, 1, 7, 8, 63, 64, 65, 127, 128, 129, 191, 192, SLOT_B, SLOT_B + 1, SLOT_B + 64].concat(
  Array.from({ length: 200 }, (_, i) => RANGES + i),
);

test('of a cursor that was cut at any byte, the intact records count', async () => {
  const all = setOf(await write());
  const bytes = files.disk.get(PATH) as Buffer;
  let before: number[] = [];
  for (const length of LENGTHS) {
    const { acks, isThere, damages } = await load(new Map([[PATH, bytes.subarray(0, length)]]));
    const known = setOf(acks);
    expect(known).toEqual(expect.arrayContaining(before));
    expect(all).toEqual(expect.arrayContaining(known));
    expect(isThere).toBe(length >= 128);
    if (length >= 64) expect(damages.length).toBe(length % 64 === 0 ? 0 : 1);
    before = known;
  }
  expect(before).toEqual(all);
});

test('a flipped bit in a cursor costs that record, and adds no acknowledgement', async () => {
  const acks = await write();
  const all = setOf(acks);
  const bytes = files.disk.get(PATH) as Buffer;
  const offsets = [0, 7, ...range(64, 128), ...range(SLOT_B, SLOT_B + 64), ...range(RANGES, RANGES + 128)];
  for (const offset of offsets) {
    const copy = Buffer.from(bytes);
    copy[offset] = (copy[offset] as number) ^ (1 << (offset & 7));
    const { acks: left, damages } = await load(new Map([[PATH, copy]]));
    expect(all).toEqual(expect.arrayContaining(setOf(left)));
    expect(setOf(left).length).toBeGreaterThanOrEqual(all.length - 10);
    if (offset < RANGES) expect(left.prefix, 'the other slot').toBe(acks.prefix);
    expect(damages).toHaveLength(1);
  }
});

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

test('zeros in a cursor are not a valid record', async () => {
  await write();
  const bytes = Buffer.concat([files.disk.get(PATH) as Buffer, Buffer.alloc(640)]);
  const { damages, acks } = await load(new Map([[PATH, bytes]]));
  expect(acks.end).toBe(30);
  expect(damages.every(({ isTorn }) => isTorn)).toBe(true);
});

/** The writes to the file since a length of the log. */
function writesSince(length: number): { at: number; length: number }[] {
  return files.log.slice(length).flatMap((operation) => {
    return operation.kind === 'write' ? [{ at: operation.at, length: operation.bytes.length }] : [];
  });
}

test('a slot on the disk is overwritten only when the other one is on the disk', async () => {
  const cursor = new CursorFile(files, FOLDER, NAME);
  await cursor.rewrite(new AckRanges(1), undefined, END);
  const begun = files.log.length;
  const save = (prefix: number): Promise<void> => cursor.writePrefix({ prefix, hint: undefined, end: END });
  for (const prefix of [2, 3, 4]) await save(prefix);
  await cursor.sync();
  await save(5);
  await cursor.close();
  expect(writesSince(begun).map(({ at }) => at)).toEqual([SLOT_B, SLOT_B, SLOT_B, 64]);
  const again = new CursorFile(files, FOLDER, NAME);
  expect((await again.load()).acks.prefix).toBe(5);
  await again.reuse();
  const later = files.log.length;
  await again.writePrefix({ prefix: 6, hint: undefined, end: END });
  await again.close();
  expect(writesSince(later)).toEqual([{ at: SLOT_B, length: 64 }]); // 5 is in the first one
});

test('a cursor does not grow while the prefix reaches its ranges', async () => {
  const cursor = new CursorFile(files, FOLDER, NAME);
  await cursor.rewrite(new AckRanges(1), undefined, END);
  for (let prefix = 100; prefix < 10_000; prefix += 100) {
    await cursor.append(
      range(1, 40).map((i) => ({ from: prefix + 2 * i, to: prefix + 2 * i + 1, bytes: 1 })),
    );
    await cursor.writePrefix({ prefix: prefix + 100, hint: undefined, end: END });
    await cursor.sync();
  }
  await cursor.close();
  expect(await files.size(PATH)).toBe(SIZE);
});

test('a range is not overwritten before the slot on the disk has passed it', async () => {
  const cursor = new CursorFile(files, FOLDER, NAME);
  await cursor.rewrite(new AckRanges(1), undefined, END);
  await cursor.append([{ from: 1, to: 9, bytes: 8 }]); // as if the prefix had not been written any more
  await cursor.close();
  const again = new CursorFile(files, FOLDER, NAME);
  expect((await again.load()).acks.prefix).toBe(9);
  expect(await again.reuse()).toBe(true);
  await again.append([{ from: 20, to: 21, bytes: 1 }]);
  await again.close();
  expect((await load()).acks).toMatchObject({ prefix: 9, ranges: [{ from: 20, to: 21, bytes: 1 }] });
});

/** Adds what is not there yet, saves it some way, and notes what was promised when. */
async function randomWork(
  random: Random,
): Promise<{ promised: { at: number; known: number[] }[]; last: number[] }> {
  const acks = new AckRanges(1);
  const promised = [{ at: 0, known: setOf(acks) }];
  let cursor = new CursorFile(files, FOLDER, NAME);
  for (let i = 0; i < 15; i++) {
    const from = 1 + random.below(LAST - 6);
    const to = from + 1 + random.below(4);
    const added = { from, to, bytes: bytesOf(from, to) };
    acks.add(from, to, added.bytes);
    if (!cursor.isOpen || random.chance(0.1)) await cursor.rewrite(acks, undefined, END);
    else {
      await cursor.append([added]);
      await cursor.writePrefix({ prefix: acks.prefix, hint: undefined, end: END });
    }
    if (random.chance(0.5)) await cursor.sync();
    if (!cursor.isUnsynced) promised.push({ at: files.log.length, known: setOf(acks) });
    if (random.chance(0.1)) {
      await cursor.close();
      cursor = new CursorFile(files, FOLDER, NAME);
      if (random.chance(0.8)) {
        await cursor.load();
        expect(await cursor.reuse()).toBe(true);
      }
    }
  }
  await cursor.close();
  return { promised, last: setOf(acks) };
}

test('after a power cut at any time a cursor has what was synced, and nothing that was not written', async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + runs(10); seed++) {
    const random = new Random(seed);
    files = new RecordingFileSystem();
    const { promised, last } = await randomWork(random);
    for (let point = 0; point <= files.log.length; point++) {
      for (const remains of [nothingRemains, someRemains(random)]) {
        const { acks } = await load(files.afterPowerCut(point, remains));
        const sure = promised.filter(({ at }) => at <= point).at(-1)?.known ?? [];
        expect(setOf(acks), `seed ${seed}, ${point}`).toEqual(expect.arrayContaining(sure));
        expect(last).toEqual(expect.arrayContaining(setOf(acks)));
        for (const { from, to, bytes } of acks.ranges) {
          if (!Number.isNaN(bytes)) expect(bytes, `seed ${seed}, ${point}`).toBe(bytesOf(from, to));
        }
      }
    }
  }
});

test.each(['write', 'sync', 'create', 'rename', 'syncFolder', 'close'] as const)(
  'a cursor on a disk that fails is rewritten after a failed %s, and open files are closed',
  async (call) => {
    for (let nth = 0; nth < 4; nth++) {
      files = new RecordingFileSystem();
      const faulty = new FaultyFileSystem(files, { call, nth, code: 'EIO', isLasting: false });
      const cursor = new CursorFile(faulty, FOLDER, NAME);
      const acks = new AckRanges(1);
      for (let i = 1; i < 6; i++) {
        acks.add(i * 2, i * 2 + 1, i);
        const save = async (): Promise<void> => {
          if (!cursor.isOpen) await cursor.rewrite(acks, undefined, END);
          else await cursor.append([{ from: i * 2, to: i * 2 + 1, bytes: i }]);
          await cursor.sync();
        };
        await save().catch(() => cursor.rewrite(acks, undefined, END));
        expect(setOf((await load()).acks)).toEqual(setOf(acks));
        expect(setOf((await load(files.afterPowerCut(files.log.length, nothingRemains))).acks)).toEqual(
          setOf(acks),
        );
      }
      await cursor.close().catch(() => undefined);
      expect(files.handles).toBe(0);
      expect(faulty.syncedAgain).toEqual([]);
    }
  },
);

test('a cursor is rewritten when it has doubled, not with every save', async () => {
  const acks = new AckRanges(1);
  const cursor = new CursorFile(files, FOLDER, NAME);
  let rewrites = 0;
  for (let i = 0; i < 60_000; i += 20) {
    const ranges = Array.from({ length: 20 }, (_, j) => {
      const from = 2 * (i + j) + 2;
      return { from, to: from + 1, bytes: 7 };
    });
    for (const { from, to, bytes } of ranges) acks.add(from, to, bytes);
    if (!cursor.isOpen || cursor.isLong) {
      rewrites++;
      await cursor.rewrite(acks, undefined, END);
    } else await cursor.append(ranges);
  }
  expect(rewrites).toBeLessThan(5);
  await cursor.close();
  expect((await load()).acks).toMatchObject({ bytesBeyond: 7 * 60_000, ranges: { length: 60_000 } });
});
