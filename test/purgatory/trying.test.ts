import { describe, expect } from 'vitest';
import { Fixture, type TestOperation, test } from './support/fixture.ts';

test('an operation whose condition does not hold is tried exactly twice', ({ fixture }) => {
  const operation = fixture.operation('a', { delayMs: 10 });
  expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x', 'y', 'z'])).toBe(false);
  expect(operation.tries).toBe(2);
  expect(fixture.gauges()).toEqual([3, 1, 3, 1]);
});

test('the first try comes before the operation is watched, the second one after, and both before the timeout', () => {
  const fixture = new Fixture();
  const seen: unknown[] = [];
  fixture.watch('a', 'xyz', { delayMs: 10, onTry: () => seen.push(fixture.gauges()) });
  expect(seen).toEqual([
    [0, 0, 0, 0],
    [3, 0, 3, 0],
  ]);
});

test.each([1, 2])(
  'an operation that is forced from inside try %d has completed, and its timeout never starts',
  (which) => {
    const fixture = new Fixture();
    const operation = fixture.operation('a', {
      delayMs: 10,
      onTry: (self) => {
        if (self.tries === which) expect(self.forceComplete()).toBe(true);
      },
    });
    expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x'])).toBe(true);
    expect([operation.tries, operation.pending]).toEqual([which, false]);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  },
);

test('time that passes during the tries does not count for the delay', ({ fixture }) => {
  fixture.watch('a', 'x', { delayMs: 10, onTry: () => fixture.clock.advance(50) });
  fixture.clock.advance(9);
  expect(fixture.log).toEqual([]);
  fixture.clock.advance(1);
  expect(fixture.log).toEqual(['a expired', 'a onExpiration']);
});

test('tryCompleteElseWatch ignores an operation that has completed', ({ fixture }) => {
  const operation = fixture.operation('a');
  operation.forceComplete();
  expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x'])).toBe(true);
  expect([operation.tries, fixture.log]).toEqual([0, ['a forced']]);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

type Path = (fixture: Fixture, operation: TestOperation) => void;

/** Every way out of a purgatory, and the reason that onComplete is told. */
const PATHS: readonly (readonly [path: string, reason: string, take: Path])[] = [
  [
    'checked',
    'tried',
    ({ purgatory }, operation) => {
      operation.holds = true;
      expect(purgatory.checkAndComplete('y')).toBe(1);
    },
  ],
  [
    'checked by hand',
    'tried',
    (_, operation) => {
      operation.holds = true;
      expect(operation.maybeTryComplete()).toBe(true);
    },
  ],
  ['forced', 'forced', (_, operation) => expect(operation.forceComplete()).toBe(true)],
  ['expired', 'expired', ({ clock }) => clock.advance(10)],
  ['closed', 'closed', ({ purgatory }, operation) => expect(purgatory.close()).toEqual([operation])],
];

describe('completion by any path takes the operation off every key and off the timer before onComplete runs', () => {
  test.each(PATHS)(
    'completion removes an operation from every key and from the timer before onComplete: %s',
    (_, reason, take) => {
      const fixture = new Fixture();
      const seen: unknown[] = [];
      const operation = fixture.watch('a', 'xyz', {
        delayMs: 10,
        onComplete: (self) => seen.push(fixture.gauges(), self.pending, self.isCompleted),
      });
      expect(fixture.gauges()).toEqual([3, 1, 3, 1]);
      take(fixture, operation);
      expect(fixture.take()).toEqual(
        reason === 'expired' ? ['a expired', 'a onExpiration'] : [`a ${reason}`],
      );
      expect(seen).toEqual([[0, 0, 0, 0], false, true]);
      expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
    },
  );

  test.each(PATHS)('an operation that has completed stays completed: %s', (_, __, take) => {
    const fixture = new Fixture();
    const operation = fixture.watch('a', 'xyz', { delayMs: 10 });
    take(fixture, operation);
    fixture.take();
    fixture.clock.advance(100);
    expect(operation.forceComplete() || operation.maybeTryComplete() || operation.cancel()).toBe(false);
    operation.run();
    expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
    expect(fixture.purgatory.cancelForKey('x')).toEqual([]);
    expect(fixture.log).toEqual([]);
  });
});

test('cancelForKey returns the operations of a key in watch order, and leaves the others', ({ fixture }) => {
  const [a, b, c] = ['xy', 'y', 'zx'].map((keys, i) => fixture.watch('abc'.charAt(i), keys, { delayMs: 10 }));
  expect(fixture.purgatory.cancelForKey('x')).toEqual([a, c]);
  expect(fixture.gauges()).toEqual([1, 1, 1, 1]);
  fixture.clock.advance(100);
  expect(fixture.log).toEqual(['b expired', 'b onExpiration']);
  expect([a, b, c].map((operation) => operation?.isCompleted)).toEqual([false, true, false]);
});

test('an operation that cancelForKey returned completes only if it is forced or watched again', () => {
  const [here, elsewhere] = [new Fixture(), new Fixture()];
  const watch = (name: string): TestOperation => here.watch(name, 'xy', { delayMs: 10 });
  const [a, b, c] = [watch('a'), watch('b'), watch('c')];
  here.purgatory.cancelForKey('y');
  expect(a.forceComplete()).toBe(true);
  expect(here.purgatory.tryCompleteElseWatch(b, ['z'])).toBe(false);
  expect(elsewhere.purgatory.tryCompleteElseWatch(c, ['x'])).toBe(false);
  expect(here.gauges()).toEqual([1, 1, 1, 1]);
  expect(elsewhere.gauges()).toEqual([1, 1, 1, 1]);
  here.clock.advance(10);
  expect(here.take()).toEqual(['a forced', 'b expired', 'b onExpiration']);
});

test('operations of a key are checked in watch order, each once', ({ fixture }) => {
  const tried: string[] = [];
  const onTry = ({ name }: { name: string }): unknown => tried.push(name);
  for (const name of ['a', 'b', 'c', 'd']) fixture.watch(name, name === 'c' ? 'yx' : 'xy', { onTry });
  fixture.watch('other', 'z', { onTry });
  tried.length = 0;
  expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
  expect(tried).toEqual(['a', 'b', 'c', 'd']);
});

test('a key given twice is one watch entry, and one try for each trigger', ({ fixture }) => {
  const operation = fixture.watch('a', 'xyxxy', { delayMs: 10 });
  expect(fixture.gauges()).toEqual([2, 1, 2, 1]);
  fixture.purgatory.checkAndComplete('x');
  expect(operation.tries).toBe(3);
  expect(fixture.purgatory.cancelForKey('y')).toEqual([operation]);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});
