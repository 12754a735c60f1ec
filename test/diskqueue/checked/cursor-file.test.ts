import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, test } from 'vitest';
import { AckRanges, UNKNOWN_BYTES } from '../../../src/diskqueue/ack-ranges.ts';
import { CursorFile, type CursorState } from '../../../src/diskqueue/checked/cursor-file.ts';
import { FaultyFileSystem } from '../faulty-file-system.ts';
import { FIRST_SEED, Random, runs } from '../random.ts';
import { nothingRemains, RecordingFileSystem, someRemains, type Disk } from '../recording-file-system.ts';

const FOLDER = '/queue';
const PATH = `${FOLDER}/spool.cursor`;
const HINT = { segment: 3, offset: 4_096, sequence: 5 };
const LAST = 40;

let files: RecordingFileSystem;
beforeEach(() => {
  files = new RecordingFileSystem();
});

function load(disk: Disk = files.disk): Promise<CursorState> {
  return new CursorFile(new RecordingFileSystem(disk), FOLDER, PATH).load();
}

function setOf(acks: AckRanges): number[] {
  return Array.from({ length: LAST }, (_, i) => i).filter((i) => acks.has(i));
}

/** Every message has other bytes than the others. */
function bytesOf(from: number, to: number): number {
  return Array.from({ length: to - from }, (_, i) => 100 + from + i).reduce((sum, bytes) => sum + bytes, 0);
}

/** A cursor with a prefix and two ranges, in six records. */
async function write(): Promise<AckRanges> {
  const acks = new AckRanges(1);
  acks.add(1, 6, 60);
  acks.add(10, 12, 0x1234);
  const cursor = new CursorFile(files, FOLDER, PATH);
  await cursor.rewrite(acks, HINT);
  acks.add(20, 30, UNKNOWN_BYTES);
  await cursor.append([{ from: 20, to: 30, bytes: UNKNOWN_BYTES }], acks.prefix, HINT);
  acks.add(6, 8, 20);
  await cursor.append([{ from: 6, to: 8, bytes: 20 }], acks.prefix, { ...HINT, sequence: 6 });
  await cursor.sync();
  await cursor.close();
  return acks;
}

test('says again what it was told', async () => {
  const acks = await write();
  const { acks: loaded, hint, isThere, damages } = await load();
  expect(loaded).toMatchObject({ prefix: acks.prefix, ranges: acks.ranges });
  expect(hint).toEqual({ ...HINT, sequence: 6 });
  expect({ isThere, damages }).toEqual({ isThere: true, damages: [] });
});

test('its bytes are what they always were', async () => {
  await write();
  const hex = (files.disk.get(PATH) as Buffer).toString('hex').match(/.{1,32}/g) ?? [];
  const golden = readFileSync(new URL('../golden/checked-cursor.hex', import.meta.url), 'utf8');
  expect(hex.map((line) => `${line}\n`).join('')).toBe(golden);
});

test('there is none', async () => {
  expect(await load()).toMatchObject({ acks: { prefix: 1, ranges: [] }, isThere: false, damages: [] });
});

test('cut at any byte: what is whole counts, and nothing else', async () => {
  const all = setOf(await write());
  const bytes = files.disk.get(PATH) as Buffer;
  let before: number[] = [];
  for (let length = 0; length <= bytes.length; length++) {
    const { acks, isThere, damages } = await load(new Map([[PATH, bytes.subarray(0, length)]]));
    const known = setOf(acks);
    expect(known).toEqual(expect.arrayContaining(before));
    expect(all).toEqual(expect.arrayContaining(known));
    expect(isThere).toBe(length >= 8 + 48);
    if (length >= 8) expect(damages.length).toBe((length - 8) % 48 === 0 ? 0 : 1);
    before = known;
  }
  expect(before).toEqual(all);
});

test('a wrong bit costs what that record says, and never invents anything', async () => {
  const all = setOf(await write());
  const bytes = files.disk.get(PATH) as Buffer;
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const copy = Buffer.from(bytes);
    copy[bit >> 3] = (copy[bit >> 3] as number) ^ (1 << (bit & 7));
    const { acks, damages } = await load(new Map([[PATH, copy]]));
    expect(all).toEqual(expect.arrayContaining(setOf(acks)));
    expect(setOf(acks).length).toBeGreaterThanOrEqual(all.length - 10);
    expect(damages).toHaveLength(1);
  }
});

test('zeros are no record', async () => {
  await write();
  const bytes = Buffer.concat([files.disk.get(PATH) as Buffer, Buffer.alloc(480)]);
  const { damages, acks } = await load(new Map([[PATH, bytes]]));
  expect(acks.end).toBe(30);
  expect(damages.every(({ isTorn }) => isTorn)).toBe(true);
});

/** Adds what is not there yet, saves it some way, and notes what was promised when. */
async function randomWork(
  random: Random,
): Promise<{ promised: { at: number; known: number[] }[]; last: number[] }> {
  const acks = new AckRanges(1);
  const promised = [{ at: 0, known: setOf(acks) }];
  let cursor = new CursorFile(files, FOLDER, PATH);
  for (let i = 0; i < 15; i++) {
    const from = 1 + random.below(LAST - 6);
    const to = from + 1 + random.below(4);
    const range = { from, to, bytes: bytesOf(from, to) };
    acks.add(from, to, range.bytes);
    if (cursor.isLong || random.chance(0.2)) await cursor.rewrite(acks, undefined);
    else await cursor.append([range], acks.prefix, undefined);
    if (random.chance(0.5)) await cursor.sync();
    if (!cursor.isUnsynced) promised.push({ at: files.log.length, known: setOf(acks) });
    if (random.chance(0.1)) {
      await cursor.close();
      cursor = new CursorFile(files, FOLDER, PATH);
    }
  }
  await cursor.close();
  return { promised, last: setOf(acks) };
}

test('a power cut at any moment: what was synced is known, what was never said is not', async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + runs(20); seed++) {
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

describe('on a disk that refuses', () => {
  test.each(['write', 'sync', 'create', 'rename', 'syncFolder', 'close'] as const)(
    'after a failed %s it is written anew, and open files are closed',
    async (call) => {
      for (let nth = 0; nth < 4; nth++) {
        files = new RecordingFileSystem();
        const faulty = new FaultyFileSystem(files, { call, nth, code: 'EIO', isLasting: false });
        const cursor = new CursorFile(faulty, FOLDER, PATH);
        const acks = new AckRanges(1);
        for (let i = 1; i < 6; i++) {
          acks.add(i * 2, i * 2 + 1, i);
          const save = async (): Promise<void> => {
            if (cursor.isLong) await cursor.rewrite(acks, undefined);
            else await cursor.append([{ from: i * 2, to: i * 2 + 1, bytes: i }], acks.prefix, undefined);
            await cursor.sync();
          };
          await save().catch(() => cursor.rewrite(acks, undefined));
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
});

test('it is made anew when it has doubled, not with every save', async () => {
  const acks = new AckRanges(1);
  const cursor = new CursorFile(files, FOLDER, PATH);
  let rewrites = 0;
  for (let i = 0; i < 60_000; i += 20) {
    const ranges = Array.from({ length: 20 }, (_, j) => {
      const from = 2 * (i + j) + 2;
      return { from, to: from + 1, bytes: 7 };
    });
    for (const { from, to, bytes } of ranges) acks.add(from, to, bytes);
    if (cursor.isLong) {
      rewrites++;
      await cursor.rewrite(acks, undefined);
    } else await cursor.append(ranges, acks.prefix, undefined);
  }
  expect(rewrites).toBeLessThan(5);
  await cursor.close();
  expect((await load()).acks).toMatchObject({ bytesBeyond: 7 * 60_000, ranges: { length: 60_000 } });
});
