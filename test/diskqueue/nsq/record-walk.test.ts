import { expect, it } from 'vitest';
import type { File } from '../../../src/log/file-system.ts';
import { countRecords, type RecordCount } from '../../../src/diskqueue/nsq/records.ts';
import { record, records } from './queue-folder.ts';

let reads = 0;

function walk(bytes: Buffer, from = 0, end = bytes.length): Promise<RecordCount> {
  reads = 0;
  const read = (buffer: Buffer, position: number): Promise<number> => {
    reads++;
    return Promise.resolve(bytes.copy(buffer, 0, position));
  };
  return countRecords({ read } as File, from, end);
}

it('counts records, and the bytes of their messages', async () => {
  const bytes = records(['one', '', 'three'].map((text) => Buffer.from(text)));
  expect(await walk(bytes)).toMatchObject({ end: 20, records: 3, bytes: 8, nextLength: undefined });
  expect(await walk(bytes, 7)).toMatchObject({ end: 20, records: 2, bytes: 5 });
  expect(await walk(bytes, 20)).toMatchObject({ end: 20, records: 0, bytes: 0 });
});

it.each([1, 4, 100, 65_532, 262_140, 262_139, 300_000])(
  'finds records of %i bytes in any block',
  async (length) => {
    const bytes = records(Array.from({ length: 12 }, () => Buffer.alloc(length, 1)));
    expect(await walk(bytes)).toMatchObject({ end: bytes.length, records: 12, bytes: 12 * length });
  },
);

it('does not read what is between the heads of long records', async () => {
  await walk(records(Array.from({ length: 5 }, () => Buffer.alloc(5_000_000))));
  expect(reads).toBe(5);
});

it('stops before a record that is not whole, and says how long it would be', async () => {
  const bytes = Buffer.concat([record('whole'), record('torn').subarray(0, 6)]);
  expect(await walk(bytes)).toMatchObject({ end: 9, records: 1, nextLength: 4 });
  expect(await walk(bytes.subarray(0, 12))).toMatchObject({ end: 9, records: 1, nextLength: undefined });
});

it('stops before a length below zero', async () => {
  const bytes = Buffer.concat([record('whole'), Buffer.alloc(10, 0xff)]);
  expect(await walk(bytes)).toMatchObject({ end: 9, records: 1, nextLength: -1 });
});

it('says where the empty messages at the end begin', async () => {
  const empty = Buffer.alloc(0);
  expect(await walk(records([empty, Buffer.from('x'), empty, empty]))).toMatchObject({
    ...{ end: 17, records: 4, lastEmpty: 2, lastEmptyFrom: 9 },
  });
  expect(await walk(records([Buffer.from('x')]))).toMatchObject({ lastEmpty: 0, lastEmptyFrom: 5 });
});

it('ends where the file does, even if that is too early', async () => {
  expect(await walk(record('x'), 0, 100)).toMatchObject({ end: 5, records: 1 });
});
