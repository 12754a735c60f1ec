import { describe, expect, test } from 'vitest';
import { IDLE, ItemTable, QUEUED, type ItemEntry } from '../../src/workqueue/item-table.ts';

function use(table: ItemTable<unknown>, key: unknown): ItemEntry<unknown> {
  const entry = table.use(key);
  entry.phase = QUEUED;
  entry.item = key;
  return entry;
}

/** Uses keys from–to together, and releases them in that order. */
function useTogether(table: ItemTable<unknown>, from: number, to: number): void {
  const entries: ItemEntry<unknown>[] = [];
  for (let i = from; i < to; i++) entries.push(use(table, `key ${i}`));
  for (const entry of entries) table.release(entry);
}

function expectSound(table: ItemTable<unknown>): void {
  const entries = [...table.all.values()];
  const idle = entries.filter(({ phase }) => phase === IDLE);
  expect(table.idle).toBe(idle.length);
  expect(table.size).toBe(entries.length - idle.length);
  expect(idle.filter(({ item }) => item !== undefined)).toEqual([]);
}

const LEAST = 256;
const MOST = 16_384;

describe('the entries of keys', () => {
  test('one that is in use is found, and its own', () => {
    const table = new ItemTable<unknown>();
    const entry = use(table, 'a');
    expect([table.use('a'), table.find('a'), table.find('b')]).toEqual([entry, entry, undefined]);
    expect([table.size, table.idle]).toEqual([1, 0]);
    table.release(entry);
    expect([entry.phase, entry.item, table.size]).toEqual([IDLE, undefined, 0]);
  });

  test('in a small table nothing idle is kept', () => {
    const table = new ItemTable<unknown>();
    for (let round = 0; round < 10; round++) useTogether(table, 0, 128);
    expect([table.all.size, table.idle]).toEqual([0, 0]);
  });

  test('in a large one, of keys that do not come back, at most 256 and a small table', () => {
    const table = new ItemTable<unknown>();
    useTogether(table, 0, 1_000);
    expectSound(table);
    for (let i = 0; i < 100; i++) useTogether(table, i * 1_000, (i + 1) * 1_000);
    expectSound(table);
    expect(table.idle).toBeGreaterThan(0);
    expect(table.idle).toBeLessThanOrEqual(LEAST);
  });

  test('of keys that come back, as many as were in use at once', () => {
    const table = new ItemTable<unknown>();
    for (let round = 0; round < 50; round++) {
      useTogether(table, 0, 5_000);
      expectSound(table);
    }
    expect(table.idle).toBeGreaterThan(4_000);
    expect(table.find('key 4999')).toBeDefined();
  });

  test('at most 16 384, however many come back', () => {
    const table = new ItemTable<unknown>();
    for (let round = 0; round < 10; round++) {
      useTogether(table, 0, 40_000);
      expect(table.idle).toBeLessThanOrEqual(MOST);
    }
    expectSound(table);
    expect(table.idle).toBeGreaterThan(MOST / 2);
  });

  test('they go again when other keys come', () => {
    const table = new ItemTable<unknown>();
    for (let round = 0; round < 10; round++) useTogether(table, 0, 20_000);
    expect(table.idle).toBeGreaterThan(10_000);
    for (let i = 0; i < 200; i++) useTogether(table, 100_000 + i * 300, 100_000 + i * 300 + 300);
    expectSound(table);
    expect(table.idle).toBeLessThanOrEqual(LEAST);
  });

  test('an entry that is in use is never forgotten, however many others go', () => {
    const table = new ItemTable<unknown>();
    useTogether(table, 0, 500);
    const kept = [...table.all.values()].slice(0, 50);
    for (const { key } of kept) use(table, key);
    for (let i = 0; i < 20; i++) useTogether(table, i * 1_000, i * 1_000 + 1_000);
    const [first] = kept;
    const again = use(table, 'key 5');
    table.release(again);
    expectSound(table);
    for (const entry of kept.filter(({ phase }) => phase === QUEUED))
      expect(table.find(entry.key)).toBe(entry);
    expect(first).toBeDefined();
  });

  test.each([
    ['objects', (i: number) => ({ i })],
    ['symbols', (i: number) => Symbol(`${i}`)],
    ['bigints', (i: number) => BigInt(i)],
    ['long strings', (i: number) => `${i}`.padEnd(257)],
  ])('%s are never kept', (_, keyOf) => {
    const table = new ItemTable<unknown>();
    const entries = Array.from({ length: 1_000 }, (_, i) => use(table, keyOf(i)));
    for (const entry of entries) table.release(entry);
    expect(table.all.size).toBe(0);
  });
});
