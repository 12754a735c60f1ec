import { describe, expect, test } from 'vitest';
import { KeyLists } from '../../src/purgatory/watchers.ts';
import { Watcher } from '../../src/purgatory/watchers.ts';
import type { DelayedOperation } from '../../src/purgatory/delayed-operation.ts';

const operation = undefined as unknown as DelayedOperation;

/** Somebody waits for a key, and no longer. */
function visit(lists: KeyLists, key: unknown): void {
  const list = lists.use(key);
  const watcher = new Watcher(operation, list, undefined);
  watcher.unlink();
  lists.emptied(list);
}

describe('lists by key', () => {
  test('count the keys that somebody waits for', () => {
    const lists = new KeyLists();
    const list = lists.use('a');
    const watcher = new Watcher(operation, list, undefined);
    expect([lists.size, lists.emptyKeys]).toEqual([1, 0]);
    watcher.unlink();
    lists.emptied(list);
    expect([lists.size, lists.emptyKeys]).toEqual([0, 1]);
    expect(lists.use('a')).toBe(list);
    expect([lists.size, lists.emptyKeys]).toEqual([1, 0]);
  });

  test('keep the last 256 that have become empty, and no more', () => {
    const lists = new KeyLists();
    for (let key = 0; key < 10_000; key++) visit(lists, key);
    expect([lists.size, lists.emptyKeys, lists.all.size]).toEqual([0, 256, 256]);
    expect([...lists.all.keys()]).toEqual(Array.from({ length: 256 }, (_, i) => 9_744 + i));
  });

  test('let nothing go that is in use again', () => {
    const lists = new KeyLists();
    visit(lists, 'a');
    const list = lists.use('a');
    new Watcher(operation, list, undefined);
    for (let key = 0; key < 1_000; key++) visit(lists, key);
    expect(lists.get('a')).toBe(list);
    expect([lists.size, lists.emptyKeys]).toEqual([1, 256]);
  });

  test('count right when one key comes and goes again and again among others', () => {
    const lists = new KeyLists();
    for (let i = 0; i < 5_000; i++) {
      visit(lists, 'hot');
      if (i % 3 === 0) visit(lists, i);
    }
    const empty = [...lists.all.values()].filter((list) => list.isEmpty).length;
    expect([lists.size, lists.emptyKeys]).toEqual([0, empty]);
    expect(empty).toBeLessThanOrEqual(256);
  });

  test('hold no object', () => {
    const lists = new KeyLists();
    visit(lists, {});
    visit(lists, () => undefined);
    expect(lists.all.size).toBe(0);
  });
});
