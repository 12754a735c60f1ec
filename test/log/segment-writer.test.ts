import { beforeEach, expect, test } from 'vitest';
import { Log } from '../../src/log/log.ts';
import { allRemains, RecordingFileSystem } from '../diskqueue/recording-file-system.ts';
import { SmallDisk } from '../diskqueue/small-disk.ts';

const OPTIONS = {
  ...{ folder: '/log', name: 'journal', maxBytesPerFile: 4 * 1024 * 1024, isAlwaysDurable: true },
  wallNow: () => 0,
};
const path = '/log/journal.0000000001.segment';

let files: RecordingFileSystem;
beforeEach(() => {
  files = new RecordingFileSystem();
});

async function sizesOf(log: Log, payloadBytes: number, appends: number): Promise<number[]> {
  const sizes: number[] = [];
  for (let nth = 0; nth < appends; nth++) {
    expect(await log.append([Buffer.alloc(payloadBytes, 1)])).toMatchObject({ appended: 1 });
    await log.sync();
    sizes.push(await files.size(path));
  }
  return sizes;
}

test('zeros behind the records make a file grow in steps, of its own length and at most 256 KiB, and are cut off when it is closed', async () => {
  const { log } = await Log.open({ ...OPTIONS, files });
  const sizes = await sizesOf(log, 1_000, 700);
  expect([...new Set(sizes)].slice(0, 3)).toEqual([4_096, 12_288, 28_672]);
  const end = log.segments[0]?.end as number;
  expect(sizes.at(-1)).toBeGreaterThan(end);
  for (const [nth, size] of sizes.entries()) {
    const used = 128 + (nth + 1) * 1_024;
    expect(size - used).toBeLessThanOrEqual(Math.min(used, 256 * 1_024) + 4_096);
  }
  expect(new Set(sizes).size).toBeLessThan(15);
  await log.close();
  expect(await files.size(path)).toBe(end + 40);
});

test('zeros behind the records are in no file of which records are readable before they are synced, and never behind its largest size', async () => {
  const { log } = await Log.open({ ...OPTIONS, files, isAlwaysDurable: false });
  expect(await sizesOf(log, 1_000, 2)).toEqual([128 + 1_024, 128 + 2 * 1_024]);
  await log.close();
  files = new RecordingFileSystem();
  const { log: small } = await Log.open({ ...OPTIONS, files, maxBytesPerFile: 312 });
  expect(await sizesOf(small, 12, 4)).toEqual([312, 312, 312, 312]);
  await small.close();
});

test('zeros behind the records are left out when the disk has no space for them', async () => {
  const disk = new SmallDisk(files, 5 * 4_096);
  const { log } = await Log.open({ ...OPTIONS, files: disk });
  const sizes = await sizesOf(log, 1_000, 18);
  expect(sizes.slice(0, 4)).toEqual([4_096, 4_096, 4_096, 12_288]);
  expect(sizes.at(-1)).toBe(128 + 18 * 1_024);
  expect(await log.append([Buffer.alloc(2_000)])).toMatchObject({ appended: 0, error: { code: 'ENOSPC' } });
  await log.close();
  const { log: again, found } = await Log.open({ ...OPTIONS, files });
  expect([found.damages, again.next]).toEqual([[], 19]);
  await again.close();
});

test('zeros behind the records are cut off when a log is opened that was killed', async () => {
  const { log } = await Log.open({ ...OPTIONS, files });
  await sizesOf(log, 1_000, 5);
  const killed = new RecordingFileSystem(files.afterPowerCut(files.log.length, allRemains));
  expect(await killed.size(path)).toBe(12_288);
  const { log: again, found } = await Log.open({ ...OPTIONS, files: killed });
  expect([found.damages, again.next, await killed.size(path)]).toEqual([[], 6, 128 + 5 * 1_024 + 40]);
  await Promise.all([log.close(), again.close()]);
});
