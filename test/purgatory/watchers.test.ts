import { expect, test } from 'vitest';
import { Watchers } from '../../src/purgatory/watchers.ts';
import { TestOperation } from './support/fixture.ts';

/** Watchers of a under x and y, of b under y, of c under y and x. */
function makeWatchers(): { watchers: Watchers; a: TestOperation; b: TestOperation; c: TestOperation } {
  const watchers = new Watchers();
  const [a, b, c] = [new TestOperation('a'), new TestOperation('b'), new TestOperation('c')];
  watchers.add(a, ['x', 'y']);
  watchers.add(b, ['y']);
  watchers.add(c, ['y', 'x']);
  return { watchers, a, b, c };
}

/** The names of the operations that a walk comes to; `during` is called at each. */
function walk(watchers: Watchers, key: string, during: (name: string) => void = () => undefined): string {
  let names = '';
  watchers.startWalk(key);
  for (let operation = watchers.walk(); operation !== undefined; operation = watchers.walk()) {
    if (!(operation instanceof TestOperation)) continue;
    names += operation.name;
    during(operation.name);
  }
  return names;
}

test('entries and keys are counted, and a key without entries is gone', () => {
  const { watchers, a, b, c } = makeWatchers();
  expect([watchers.size, watchers.keys]).toEqual([5, 2]);
  watchers.remove(a);
  watchers.remove(c);
  expect([watchers.size, watchers.keys, watchers.under('x')]).toEqual([1, 1, []]);
  watchers.remove(b);
  expect([watchers.size, watchers.keys]).toEqual([0, 0]);
});

test('what is there no more may be removed again', () => {
  const { watchers, a } = makeWatchers();
  watchers.remove(a);
  watchers.remove(a);
  expect([watchers.size, watchers.keys]).toEqual([3, 2]);
});

test('all lists every operation once, in the order they came', () => {
  const { watchers, a, b, c } = makeWatchers();
  expect(watchers.all()).toEqual([a, b, c]);
  watchers.remove(a);
  watchers.add(a, ['w']);
  expect(watchers.all()).toEqual([b, c, a]);
});

test('a walk comes to what was there when it began', () => {
  const { watchers } = makeWatchers();
  expect([walk(watchers, 'y'), walk(watchers, 'x'), walk(watchers, 'z')]).toEqual(['abc', 'ac', '']);
  const late = new TestOperation('late');
  const names = walk(watchers, 'x', (name) => {
    if (name === 'a') watchers.add(late, ['x']);
  });
  expect([names, walk(watchers, 'x')]).toEqual(['ac', 'ac' + 'late']);
});

test('a walk goes on wherever it is, when operations go: the one it is at, the next, the last, all', () => {
  for (const [gone, expected] of [
    ['a', 'abc'],
    ['b', 'ac'],
    ['c', 'ab'],
    ['bc', 'a'],
    ['cb', 'a'],
    ['abc', 'a'],
    ['cab', 'a'],
  ] as const) {
    const { watchers, ...operations } = makeWatchers();
    const names = walk(watchers, 'y', (name) => {
      if (name !== 'a') return;
      for (const each of gone.split('')) watchers.remove(operations[each as 'a' | 'b' | 'c']);
    });
    expect([gone, names]).toEqual([gone, expected]);
  }
});

test('a walk does not come to what left and came back', () => {
  const { watchers, b } = makeWatchers();
  const names = walk(watchers, 'y', (name) => {
    if (name !== 'a') return;
    watchers.remove(b);
    watchers.add(b, ['y']);
  });
  expect(names).toBe('ac');
});

test('one key and 100 000 watchers: taking one out does not look at the others', () => {
  const watchers = new Watchers();
  const operations = Array.from({ length: 100_000 }, (_, i) => new TestOperation(`${i}`));
  for (const operation of operations) watchers.add(operation, ['x']);
  for (const operation of operations.reverse()) watchers.remove(operation);
  expect([watchers.size, watchers.keys]).toEqual([0, 0]);
});
