import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { File } from '../../../src/log/file-system.ts';
import {
  dataFileName,
  decodeMetadata,
  encodeMetadata,
  filesOfQueue,
  metadataFileName,
  type Metadata,
} from '../../../src/diskqueue/nsq/format.ts';
import { MetadataFile } from '../../../src/diskqueue/nsq/metadata-file.ts';
import { countRecords, type RecordCount } from '../../../src/diskqueue/nsq/records.ts';
import { filesAfterOperations, openOurs } from '../../interop/diskqueue/both-directions.ts';
import { FaultyFileSystem, type Call } from '../faulty-file-system.ts';
import { nothingRemains, RecordingFileSystem } from '../recording-file-system.ts';
import { records } from './queue-folder.ts';

it('a file name has six digits, or more if necessary', () => {
  expect(dataFileName('q', 0)).toBe('q.diskqueue.000000.dat');
  expect(dataFileName('orders:a', 999_999)).toBe('orders:a.diskqueue.999999.dat');
  expect(dataFileName('q', 1_000_000)).toBe('q.diskqueue.1000000.dat');
  expect(metadataFileName('q')).toBe('q.diskqueue.meta.dat');
});

it('the files of a queue are found among others, by number', () => {
  const names = [
    'q.diskqueue.1000000.dat',
    'q.diskqueue.000010.dat',
    'q.diskqueue.000002.dat',
    'q.diskqueue.000001.dat.bad',
    'q.diskqueue.meta.dat',
    'q.diskqueue.meta.dat.42.tmp',
    'q.diskqueue.meta.dat.x.tmp',
    'q.diskqueue.meta.dat..tmp',
    'q.diskqueue.0000011.dat',
    'q.diskqueue.00012.dat',
    'q.diskqueue.-00013.dat',
    'q.diskqueue..dat',
    'q.diskqueue.dat',
    'q2.diskqueue.000014.dat',
    'a.q.diskqueue.000015.dat',
    'q.diskqueue.000016.dat.bad.bad',
    'q.diskqueue.000017.dat.gz',
  ];
  expect(filesOfQueue('q', names)).toEqual({
    data: [2, 10, 1_000_000],
    bad: [1],
    temporary: ['q.diskqueue.meta.dat.42.tmp'],
    hasMetadata: true,
  });
});

it('special characters in the name of a queue have no meaning', () => {
  expect(filesOfQueue('a.*', ['aab.diskqueue.000000.dat', 'a.*.diskqueue.000001.dat']).data).toEqual([1]);
  expect(filesOfQueue('a.diskqueue.000000.dat', ['a.diskqueue.000000.dat']).data).toEqual([]);
});

const decode = (text: string): unknown => decodeMetadata(Buffer.from(text, 'latin1'));

it('metadata is three lines', () => {
  const metadata = { depth: 5, read: { number: 0, offset: 14 }, write: { number: 1, offset: 30 } };
  expect(encodeMetadata(metadata).toString()).toBe('5\n0,14\n1,30\n');
  expect(decode('5\n0,14\n1,30\n')).toEqual(metadata);
  expect(decode('-5\n0,0\n0,0\n')).toMatchObject({ depth: -5 });
});

it.each([
  ['is empty', ''],
  ['is not numbers', 'garbage'],
  ['is zeros', '\0\0\0\0\0\0\0\0'],
  ['has a depth without digits', '-\n0,0\n0,0\n'],
  ['ends in the middle of a number', '5\n2,100\n'],
  ['lacks the last newline', '5\n0,14\n1,30'],
  ['has other characters', '5\n0, 14\n1,30\n'],
  ['has a negative position', '5\n0,-14\n1,30\n'],
  ['has a number that is too large', '5\n0,14\n1,9007199254740993\n'],
  ['has the read position in a later file', '5\n2,0\n1,30\n'],
  ['has the read position behind the write position', '5\n1,31\n1,30\n'],
])('metadata that %s is not used', (_, text) => {
  expect(decode(text)).toBeUndefined();
});

const OLD: Metadata = { depth: 1, read: { number: 0, offset: 0 }, write: { number: 0, offset: 14 } };
const NEW: Metadata = { depth: 2, read: { number: 0, offset: 0 }, write: { number: 0, offset: 28 } };

it('saved metadata is on the disk, under its name', async () => {
  const disk = new RecordingFileSystem();
  const metadata = new MetadataFile(disk, '/q', 'q');
  expect(await metadata.load()).toBeUndefined();
  await metadata.save(OLD);
  await metadata.save(NEW);
  expect(metadata.holds(NEW)).toBe(true);
  expect([...disk.disk.keys()]).toEqual(['/q/q.diskqueue.meta.dat']);
  const left = new RecordingFileSystem(disk.afterPowerCut(disk.log.length, nothingRemains));
  expect(await new MetadataFile(left, '/q', 'q').load()).toEqual(NEW);
});

/** The first call of a kind succeeds; later ones fail until the disk is healed. */
const failingLater = (disk: RecordingFileSystem, call: Call): FaultyFileSystem =>
  new FaultyFileSystem(disk, { call, nth: 1, code: 'EIO', isLasting: true });

it.each(['create', 'write', 'sync', 'close', 'rename'] as const)(
  'the metadata stays as it was if %s fails, and no other file is left',
  async (call) => {
    const disk = new RecordingFileSystem();
    const metadata = new MetadataFile(failingLater(disk, call), '/q', 'q');
    await metadata.save(OLD);
    await expect(metadata.save(NEW)).rejects.toMatchObject({ code: 'EIO' });
    expect([metadata.durable, metadata.isUnsure]).toEqual([OLD, false]);
    expect([...disk.disk.keys()]).toEqual(['/q/q.diskqueue.meta.dat']);
    expect(await new MetadataFile(disk, '/q', 'q').load()).toEqual(OLD);
  },
);

it('the metadata is unsure if the folder cannot be synced', async () => {
  const files = failingLater(new RecordingFileSystem(), 'syncFolder');
  const metadata = new MetadataFile(files, '/q', 'q');
  await metadata.save(OLD);
  await expect(metadata.save(NEW)).rejects.toMatchObject({ code: 'EIO' });
  expect([metadata.durable, metadata.isUnsure, metadata.holds(OLD)]).toEqual([OLD, true, false]);
  files.heal();
  await metadata.save(OLD);
  expect([metadata.isUnsure, metadata.holds(OLD)]).toEqual([false, true]);
});

it('metadata that cannot be opened is not taken for missing', async () => {
  const fault = { call: undefined, nth: 0, code: 'EMFILE', isLasting: true } as const;
  const files = new FaultyFileSystem(new RecordingFileSystem(), fault);
  await expect(new MetadataFile(files, '/q', 'q').load()).rejects.toMatchObject({ code: 'EMFILE' });
});

let reads = 0;

function walk(bytes: Buffer, from = 0, end = bytes.length): Promise<RecordCount> {
  reads = 0;
  const read = (buffer: Buffer, position: number): Promise<number> => {
    reads++;
    return Promise.resolve(bytes.copy(buffer, 0, position));
  };
  return countRecords({ read } as File, from, end);
}

it.each([1, 4, 100, 65_532, 262_140, 262_139, 300_000])(
  'counting finds records of %i bytes in any block',
  async (length) => {
    const bytes = records(Array.from({ length: 12 }, () => Buffer.alloc(length, 1)));
    expect(await walk(bytes)).toMatchObject({ end: bytes.length, records: 12, bytes: 12 * length });
  },
);

it('only the headers of long records are read', async () => {
  await walk(records(Array.from({ length: 5 }, () => Buffer.alloc(5_000_000))));
  expect(reads).toBe(5);
});

it('after the same operations the files are those of go-diskqueue, byte for byte', async () => {
  const golden = readFileSync(new URL('../golden/go-diskqueue-1.1.0.json', import.meta.url), 'utf8');
  expect(await filesAfterOperations(openOurs)).toEqual(JSON.parse(golden));
});
