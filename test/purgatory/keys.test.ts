import { DelayedOperationPurgatory, type PurgatoryOptions } from 'escapement';
import { checkPurgatory } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { thrownBy } from '../timer/support/errors.ts';
import { TestOperation } from './support/fixture.ts';

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

  test('an object is equal to itself alone', () => {
    const purgatory = new DelayedOperationPurgatory<object>('test');
    const key = { topic: 't' };
    const operation = watch(purgatory, [key, key]);
    expect(purgatory.checkAndComplete({ topic: 't' })).toBe(0);
    expect(purgatory.cancelForKey(key)).toEqual([operation]);
  });

  test('objects that cannot be shown are keys, too', () => {
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

  test.each(['__proto__', 'constructor', 'toString'])('%s is a key like any other', (key) => {
    const purgatory = new DelayedOperationPurgatory<string>('test');
    expect([purgatory.checkAndComplete(key), purgatory.cancelForKey(key)]).toEqual([0, []]);
    const operation = watch(purgatory, [key]);
    expect(purgatory.cancelForKey(key)).toEqual([operation]);
  });
});

describe('keyOf', () => {
  test('makes a structured key something that can be compared', () => {
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

  test('also for cancelForKey and wait', async () => {
    const purgatory = new DelayedOperationPurgatory<Partition>('test', byValue);
    const wait = purgatory.wait([{ topic: 't', index: 0 }], () => undefined, { timeoutMs: Infinity });
    const operation = watch(purgatory, [{ topic: 't', index: 0 }]);
    expect(purgatory.cancelForKey({ topic: 't', index: 0 })).toEqual([operation]);
    await expect(wait).rejects.toHaveProperty('code', 'ERR_OPERATION_CANCELLED');
  });

  test.each([NaN, 0, 7n, Symbol.iterator, ''])('may return %o', (plain) => {
    const purgatory = new DelayedOperationPurgatory<object>('test', { keyOf: () => plain });
    const operation = watch(purgatory, [{}, {}]);
    expect(purgatory.watched).toBe(1);
    expect(purgatory.cancelForKey({})).toEqual([operation]);
  });

  test('is called once for each key, with nothing else', () => {
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

  test('may take undefined for a key', () => {
    const purgatory = new DelayedOperationPurgatory<string | undefined>('test', {
      keyOf: (key) => key ?? '',
    });
    const operation = watch(purgatory, [undefined]);
    expect(purgatory.cancelForKey(undefined)).toEqual([operation]);
  });
});

describe('the keys may be any iterable', () => {
  test('a set, a map of keys, a generator, a typed array', () => {
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

  test('and is read once, before the first try; what is done to it later is not seen', () => {
    const purgatory = new DelayedOperationPurgatory<string>('test');
    const keys = ['x'];
    const operation = new TestOperation('a', { onTry: () => keys.push('y') });
    purgatory.tryCompleteElseWatch(operation, keys);
    expect(purgatory.watched).toBe(1);
  });

  test('an iterator that gives up is closed', () => {
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
});
