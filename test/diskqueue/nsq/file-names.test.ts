import { expect, it } from 'vitest';
import { dataFileName, metadataFileName, filesOfQueue } from '../../../src/diskqueue/nsq/format.ts';

it('has six digits, or more where they are needed', () => {
  expect(dataFileName('q', 0)).toBe('q.diskqueue.000000.dat');
  expect(dataFileName('orders:a', 999_999)).toBe('orders:a.diskqueue.999999.dat');
  expect(dataFileName('q', 1_000_000)).toBe('q.diskqueue.1000000.dat');
  expect(metadataFileName('q')).toBe('q.diskqueue.meta.dat');
});

it('finds the files of a queue among others, by number', () => {
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

it('takes the name of a queue as it is', () => {
  expect(filesOfQueue('a.*', ['aab.diskqueue.000000.dat', 'a.*.diskqueue.000001.dat']).data).toEqual([1]);
  expect(filesOfQueue('a.diskqueue.000000.dat', ['a.diskqueue.000000.dat']).data).toEqual([]);
});
