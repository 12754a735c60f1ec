import { DelayedOperationPurgatory, type PurgatoryOptions } from 'escapement';
import { checkPurgatory } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import type { DelayedOperation } from '../../src/purgatory/delayed-operation.ts';
import { PendingKeys } from '../../src/purgatory/key-checks.ts';
import { KeyLists, Watcher, Watchers } from '../../src/purgatory/watchers.ts';
import { thrownBy } from '../timer/support/errors.ts';
import { TestOperation } from './support/fixture.ts';

test('removing one of 100 000 watchers of a key does not visit the others', () => {
  const watchers = new Watchers();
  const operations = Array.from({ length: 100_000 }, (_, i) => new TestOperation(`${i}`));
  for (const operation of operations) watchers.add(operation, ['x']);
  for (const operation of operations.reverse()) watchers.remove(operation);
  expect([watchers.size, watchers.keys]).toEqual([0, 0]);
});

const operation = undefined as unknown as DelayedOperation;

/** Somebody waits for a key, and no longer. */
function visit(lists: KeyLists, key: unknown): void {
  const list = lists.use(key);
  const watcher = new Watcher(operation, list, undefined);
  watcher.unlink();
  lists.emptied(list);
}

test('the last 256 keys that have become empty are kept, and no more', () => {
  const lists = new KeyLists();
  for (let key = 0; key < 10_000; key++) visit(lists, key);
  expect([lists.size, lists.emptyKeys, lists.all.size]).toEqual([0, 256, 256]);
  expect([...lists.all.keys()]).toEqual(Array.from({ length: 256 }, (_, i) => 9_744 + i));
});

test('a key that is watched again is not deleted when others become empty', () => {
  const lists = new KeyLists();
  for (let i = 0; i < 300; i++) visit(lists, 'hot');
  const list = lists.use('hot');
  new Watcher(operation, list, undefined);
  for (let key = 0; key < 300; key++) visit(lists, key);
  expect(lists.get('hot')).toBe(list);
  expect([lists.size, lists.emptyKeys]).toEqual([1, 256]);
});

test('an object as a key is not kept', () => {
  const lists = new KeyLists();
  visit(lists, {});
  visit(lists, () => undefined);
  expect(lists.all.size).toBe(0);
});

function drain(queue: PendingKeys): unknown[] {
  const taken: unknown[] = [];
  for (let key = queue.take(); key !== undefined; key = queue.take()) taken.push(key);
  return taken;
}

test('a queue of keys that never ends costs the same at its end as at its beginning', () => {
  const queue = new PendingKeys();
  for (let i = 0; i < 100; i++) queue.add(i);
  for (let i = 100; i < 1_000_000; i++) {
    queue.add(i);
    queue.take();
  }
  expect(drain(queue)).toHaveLength(100);
});

interface Partition {
  readonly topic: string;
  readonly index: number;
}

const byValue: PurgatoryOptions<Partition> = { keyOf: ({ topic, index }) => `${topic}-${index}` };

function watch<K>(purgatory: DelayedOperationPurgatory<K>, keys: Iterable<K>): TestOperation {
  const operation = new TestOperation('a');
  expect(purgatory.tryCompleteElseWatch(operation, keys)).toBe(false);
  checkPurgatory(purgatory);
  return operation;
}

describe('equality of keys; default: the key itself (SameValueZero)', () => {
  test.each([
    ['x', 'x'],
    ['', ''],
    [1, 1],
    [NaN, NaN],
    [0, -0],
    [-0, 0],
    [Infinity, Infinity],
    [10n, 10n],
    [Symbol.iterator, Symbol.iterator],
    [null, null],
    [false, false],
  ])('%o is the same key as %o', (one, other) => {
    const purgatory = new DelayedOperationPurgatory<unknown>('test');
    const operation = watch(purgatory, [one, other]);
    expect([purgatory.watched, purgatory.watchedKeys]).toEqual([1, 1]);
    operation.holds = true;
    expect(purgatory.checkAndComplete(other)).toBe(1);
    expect([purgatory.watched, purgatory.watchedKeys]).toEqual([0, 0]);
    watch(purgatory, [one]);
    expect(purgatory.cancelForKey(other)).toHaveLength(1);
  });

  test.each([
    [1, '1'],
    [1, 1n],
    [1, true],
    [Symbol('s'), Symbol('s')],
    ['x', 'X'],
    [null, 'null'],
    [{}, {}],
  ])('%o is another key than %o', (one, other) => {
    const purgatory = new DelayedOperationPurgatory<unknown>('test');
    const operation = watch(purgatory, [one]);
    expect([purgatory.checkAndComplete(other), operation.tries]).toEqual([0, 2]);
    expect(purgatory.cancelForKey(other)).toEqual([]);
    watch(purgatory, [one, other]);
    expect([purgatory.watched, purgatory.watchedKeys]).toEqual([3, 2]);
  });

  test('an object that cannot be converted to a string may be a key', () => {
    const purgatory = new DelayedOperationPurgatory<object>('test');
    const secretive = {
      toString: (): never => {
        throw new Error('mine');
      },
    };
    const operation = watch(purgatory, [Object.create(null) as object, secretive]);
    operation.holds = true;
    expect(purgatory.checkAndComplete(secretive)).toBe(1);
  });

  test.each(['__proto__', 'constructor', 'toString'])('%s may be a key', (key) => {
    const purgatory = new DelayedOperationPurgatory<string>('test');
    expect([purgatory.checkAndComplete(key), purgatory.cancelForKey(key)]).toEqual([0, []]);
    const operation = watch(purgatory, [key]);
    expect(purgatory.cancelForKey(key)).toEqual([operation]);
  });
});

test('keyOf maps a structured key to a comparable value', () => {
  const purgatory = new DelayedOperationPurgatory<Partition>('test', byValue);
  const operation = watch(purgatory, [
    { topic: 't', index: 0 },
    { topic: 't', index: 1 },
    { topic: 't', index: 0 },
  ]);
  expect([purgatory.watched, purgatory.watchedKeys]).toEqual([2, 2]);
  expect(purgatory.checkAndComplete({ topic: 't', index: 2 })).toBe(0);
  operation.holds = true;
  expect(purgatory.checkAndComplete({ topic: 't', index: 1 })).toBe(1);
  expect(purgatory.watched).toBe(0);
});

test('keyOf is used by cancelForKey and wait', async () => {
  const purgatory = new DelayedOperationPurgatory<Partition>('test', byValue);
  const wait = purgatory.wait([{ topic: 't', index: 0 }], () => undefined, { timeoutMs: Infinity });
  const operation = watch(purgatory, [{ topic: 't', index: 0 }]);
  expect(purgatory.cancelForKey({ topic: 't', index: 0 })).toEqual([operation]);
  await expect(wait).rejects.toHaveProperty('code', 'ERR_OPERATION_CANCELLED');
});

test.each([NaN, 0, 7n, Symbol.iterator, ''])('keyOf may return %o', (plain) => {
  const purgatory = new DelayedOperationPurgatory<object>('test', { keyOf: () => plain });
  const operation = watch(purgatory, [{}, {}]);
  expect(purgatory.watched).toBe(1);
  expect(purgatory.cancelForKey({})).toEqual([operation]);
});

test('keyOf is called once for each key, with the key alone', () => {
  const calls: unknown[][] = [];
  const keyOf = (...args: unknown[]): string => {
    calls.push(args);
    return String(args[0]);
  };
  const purgatory = new DelayedOperationPurgatory<string>('test', { keyOf });
  watch(purgatory, ['x', 'y', 'x']);
  purgatory.checkAndComplete('y');
  expect(calls).toEqual([['x'], ['y'], ['x'], ['y']]);
});

test('keyOf may accept undefined as a key', () => {
  const purgatory = new DelayedOperationPurgatory<string | undefined>('test', {
    keyOf: (key) => key ?? '',
  });
  const operation = watch(purgatory, [undefined]);
  expect(purgatory.cancelForKey(undefined)).toEqual([operation]);
});

test('the keys may be a set, a map of keys, a generator or a typed array', () => {
  function* generate(): Generator<number> {
    yield* [1, 2, 1];
  }
  for (const keys of [
    new Set([1, 2]),
    new Map([
      [1, 0],
      [2, 0],
    ]).keys(),
    generate(),
    Uint8Array.of(1, 2, 1),
  ]) {
    const purgatory = new DelayedOperationPurgatory<number>('test');
    watch(purgatory, keys);
    expect(purgatory.watched).toBe(2);
  }
});

test('the keys are read once, before the first try, so later changes have no effect', () => {
  const purgatory = new DelayedOperationPurgatory<string>('test');
  const keys = ['x'];
  const operation = new TestOperation('a', { onTry: () => keys.push('y') });
  purgatory.tryCompleteElseWatch(operation, keys);
  expect(purgatory.watched).toBe(1);
});

test('an iterator of keys is closed when it is not read to its end', () => {
  let isClosed = false;
  function* keys(): Generator<string | undefined> {
    try {
      yield 'x';
      yield undefined;
      expect.fail('it went on');
    } finally {
      isClosed = true;
    }
  }
  const purgatory = new DelayedOperationPurgatory<string | undefined>('test');
  expect(thrownBy(() => purgatory.tryCompleteElseWatch(new TestOperation('a'), keys()))).toBeInstanceOf(
    TypeError,
  );
  expect([isClosed, purgatory.watched]).toEqual([true, 0]);
});

test('a snapshot of a purgatory has its numbers, and the keys with the most operations first', () => {
  const purgatory = new DelayedOperationPurgatory<string>('fetch', { timerEnabled: false });
  for (const keys of [['a'], ['b', 'c'], ['b']]) purgatory.tryCompleteElseWatch(new TestOperation('x'), keys);
  purgatory.tryCompleteElseWatch(new TestOperation('y'), ['once']);
  purgatory.cancelForKey('once');
  const { keys, ...numbers } = purgatory.inspect();
  expect(numbers).toEqual({ name: 'fetch', watched: 4, numDelayed: 0, watchedKeys: 3 });
  expect(keys).toEqual([
    { key: 'b', operations: 2 },
    { key: 'a', operations: 1 },
    { key: 'c', operations: 1 },
  ]);
  purgatory.close();
});

test('a snapshot of a purgatory reads a limited number of keys and operations', () => {
  const watchers = new Watchers();
  for (let nth = 0; nth < 5_000; nth++) watchers.add(new TestOperation('x'), ['busy', `key ${nth}`]);
  const keys = watchers.largest();
  expect(keys).toHaveLength(100);
  expect(keys[0]).toEqual({ key: 'busy', operations: 1_000 });
  for (let nth = 0; nth < 10; nth++) watchers.add(new TestOperation('x'), ['the last key']);
  expect(watchers.largest()[1]?.operations).toBe(1);
  const crowded = new Watchers();
  const crowd = Array.from({ length: 30 }, (_, i) => i);
  for (let nth = 0; nth < 1_000; nth++) crowded.add(new TestOperation('x'), crowd);
  expect(crowded.largest()).toHaveLength(20);
});
