import { expect, it } from 'vitest';
import { decodeMetadata, encodeMetadata, isAfter } from '../../../src/diskqueue/nsq/format.ts';

const decode = (text: string): unknown => decodeMetadata(Buffer.from(text, 'latin1'));

it('is three lines', () => {
  const metadata = { depth: 5, read: { number: 0, offset: 14 }, write: { number: 1, offset: 30 } };
  expect(encodeMetadata(metadata).toString()).toBe('5\n0,14\n1,30\n');
  expect(decode('5\n0,14\n1,30\n')).toEqual(metadata);
});

it('may have a depth below zero', () => {
  expect(decode('-5\n0,0\n0,0\n')).toMatchObject({ depth: -5 });
});

it.each([
  ['is empty', ''],
  ['ends in its middle', '5\n2,100\n'],
  ['ends before its end', '5\n0,14\n1,30'],
  ['has other characters', '5\n0, 14\n1,30\n'],
  ['has a position below zero', '5\n0,-14\n1,30\n'],
  ['has a number that is too large', '5\n0,14\n1,9007199254740993\n'],
  ['has the read position in a later file', '5\n2,0\n1,30\n'],
  ['has the read position behind the write position', '5\n1,31\n1,30\n'],
])('is not believed if it %s', (_, text) => {
  expect(decode(text)).toBeUndefined();
});

it('orders positions by file, then by offset', () => {
  expect(isAfter({ number: 1, offset: 0 }, { number: 0, offset: 9 })).toBe(true);
  expect(isAfter({ number: 0, offset: 9 }, { number: 1, offset: 0 })).toBe(false);
  expect(isAfter({ number: 1, offset: 1 }, { number: 1, offset: 0 })).toBe(true);
  expect(isAfter({ number: 1, offset: 0 }, { number: 1, offset: 0 })).toBe(false);
});
