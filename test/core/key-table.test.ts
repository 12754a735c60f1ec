import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeyTable, type KeyEntry } from '../../src/core/key-table.ts';
import { testProperty } from '../runs.ts';

class Entry implements KeyEntry {
  readonly key: unknown;
  isIdle = true;
  slot = 0;

  constructor(key: unknown) {
    this.key = key;
  }
}

const MOST = 256;

function use(table: KeyTable<Entry>, key: unknown): Entry {
  const entry = table.use(key);
  entry.isIdle = false;
  return entry;
}

function release(table: KeyTable<Entry>, entry: Entry): void {
  entry.isIdle = true;
  table.release(entry);
}

/** Uses these keys together, and releases them in this order. */
function useTogether(table: KeyTable<Entry>, keys: readonly unknown[]): void {
  const entries = keys.map((key) => use(table, key));
  for (const entry of entries) release(table, entry);
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

test('a table keeps the keys that became idle last, and no more', () => {
  const table = new KeyTable(Entry, MOST);
  for (const key of range(0, 10_000)) useTogether(table, [key]);
  expect([table.size, table.idle]).toEqual([0, MOST]);
  expect([...table.all.keys()]).toEqual(range(9_744, 10_000));
  useTogether(table, range(0, 5_000));
  expect([...table.all.keys()]).toEqual(range(4_744, 5_000));
});

test('a key that is used again has the same entry', () => {
  const table = new KeyTable(Entry, MOST);
  const entry = use(table, 'hot');
  for (let i = 0; i < 1_000; i++) {
    release(table, entry);
    expect([table.size, table.idle]).toEqual([0, 1]);
    expect(use(table, 'hot')).toBe(entry);
  }
  expect([table.size, table.idle]).toEqual([1, 0]);
});

test('a key that is in use again is not deleted when others become idle', () => {
  const table = new KeyTable(Entry, MOST);
  useTogether(table, ['hot']);
  const entry = use(table, 'hot');
  useTogether(table, range(0, 300));
  expect(table.find('hot')).toBe(entry);
  expect([table.size, table.idle]).toEqual([1, MOST]);
  release(table, entry);
  expect([table.size, table.idle]).toEqual([0, MOST]);
});

test('a table keeps 256 idle keys while more keys are in use than it would keep', () => {
  const table = new KeyTable(Entry, 1_000);
  const entries = range(0, 3_000).map((key) => use(table, key));
  for (const entry of entries.splice(0, 1_999)) release(table, entry);
  expect([table.size, table.idle]).toEqual([1_001, MOST]);
  for (const entry of entries) release(table, entry);
  expect([table.size, table.idle]).toEqual([0, 1_000]);
});

test('a table that is small keeps no idle key', () => {
  const table = new KeyTable(Entry, MOST, 128);
  for (let round = 0; round < 10; round++) useTogether(table, range(0, 128));
  expect(table.all.size).toBe(0);
  useTogether(table, range(0, 129));
  expect(table.idle).toBe(129);
});

test.each([
  ['objects', (i: number) => ({ i })],
  ['functions', (i: number) => () => i],
  ['strings of more than 256 characters', (i: number) => `${i}`.padEnd(257)],
])('%s are not kept', (_, keyOf) => {
  const table = new KeyTable(Entry, MOST);
  useTogether(
    table,
    range(0, 1_000).map((i): unknown => keyOf(i)),
  );
  expect([table.size, table.all.size]).toEqual([0, 0]);
});

test.each([
  ['numbers', (i: number) => i],
  ['bigints', (i: number) => BigInt(i)],
  ['symbols', (i: number) => Symbol(i)],
  ['strings of 256 characters', (i: number) => `${i}`.padEnd(256)],
])('%s are kept', (_, keyOf) => {
  const table = new KeyTable(Entry, MOST);
  useTogether(
    table,
    range(0, 1_000).map((i): unknown => keyOf(i)),
  );
  expect([table.size, table.idle]).toEqual([0, MOST]);
});

testProperty(
  'a table has the keys that a naive one has, whatever is used and released',
  fc.property(fc.array(fc.nat(20), { maxLength: 200 }), (keys) => {
    const most = 8;
    const table = new KeyTable(Entry, most);
    const inUse = new Set<number>();
    let released: (number | undefined)[] = [];
    for (const key of keys) {
      if (inUse.delete(key)) {
        release(table, table.find(key) as Entry);
        released = [...released, key].slice(-most);
      } else {
        use(table, key);
        inUse.add(key);
        released = released.map((other) => (other === key ? undefined : other));
      }
      const idle = released.filter((other) => other !== undefined);
      expect(new Set(table.all.keys())).toEqual(new Set([...inUse, ...idle]));
      expect([table.size, table.idle]).toEqual([inUse.size, idle.length]);
    }
  }),
);
