import { expect, it } from 'vitest';
import { MetadataFile } from '../../../src/diskqueue/nsq/metadata-file.ts';
import type { Metadata } from '../../../src/diskqueue/nsq/format.ts';
import { CrashDisk } from './crash-disk.ts';

const OLD: Metadata = { depth: 1, read: { number: 0, offset: 0 }, write: { number: 0, offset: 14 } };
const NEW: Metadata = { depth: 2, read: { number: 0, offset: 0 }, write: { number: 0, offset: 28 } };

it('is there, and on the disk, when it is saved', async () => {
  const disk = new CrashDisk();
  const metadata = new MetadataFile(disk, '/q', 'q');
  expect(await metadata.load()).toBeUndefined();
  await metadata.save(OLD);
  await metadata.save(NEW);
  expect(metadata.holds(NEW)).toBe(true);
  expect(disk.names).toEqual(['/q/q.diskqueue.meta.dat']);
  const left = disk.afterPowerFailure({ bytes: 'none', part: 0 });
  expect(await new MetadataFile(left, '/q', 'q').load()).toEqual(NEW);
});

it.each(['create', 'write', 'sync', 'close', 'rename'])(
  'is as it was if %s fails, and nothing else is left behind',
  async (name) => {
    const disk = new CrashDisk();
    const metadata = new MetadataFile(disk, '/q', 'q');
    await metadata.save(OLD);
    disk.fault = (_, called) => (called === name ? 'EIO' : undefined);
    await expect(metadata.save(NEW)).rejects.toMatchObject({ code: 'EIO' });
    disk.fault = () => undefined;
    expect([metadata.durable, metadata.isUnsure]).toEqual([OLD, false]);
    expect(disk.names).toEqual(['/q/q.diskqueue.meta.dat']);
    expect(await new MetadataFile(disk, '/q', 'q').load()).toEqual(OLD);
  },
);

it('may be one or the other if the folder cannot be synced', async () => {
  const disk = new CrashDisk();
  const metadata = new MetadataFile(disk, '/q', 'q');
  await metadata.save(OLD);
  disk.fault = (_, called) => (called === 'syncFolder' ? 'EIO' : undefined);
  await expect(metadata.save(NEW)).rejects.toMatchObject({ code: 'EIO' });
  expect([metadata.durable, metadata.isUnsure, metadata.holds(OLD)]).toEqual([OLD, true, false]);
  disk.fault = () => undefined;
  await metadata.save(OLD);
  expect([metadata.isUnsure, metadata.holds(OLD)]).toEqual([false, true]);
});

it('is not taken for missing if it cannot be opened', async () => {
  const disk = new CrashDisk();
  disk.fault = () => 'EMFILE';
  await expect(new MetadataFile(disk, '/q', 'q').load()).rejects.toMatchObject({ code: 'EMFILE' });
});
