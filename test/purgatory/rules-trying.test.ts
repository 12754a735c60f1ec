import { describe, expect, test } from 'vitest';
import { Fixture, type TestOperation } from './support/fixture.ts';

describe('tryCompleteElseWatch: try once; register under every key; try again; then start the timeout', () => {
  test('exactly two tries when it is not completable', () => {
    const fixture = new Fixture();
    const operation = fixture.operation('a', { delayMs: 10 });
    expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x', 'y', 'z'])).toBe(false);
    expect(operation.tries).toBe(2);
    expect(fixture.gauges()).toEqual([3, 1, 3, 1]);
  });

  test('one when it is, and nothing is watched', () => {
    const fixture = new Fixture();
    const operation = fixture.operation('a', { delayMs: 10, holds: true });
    expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x', 'y', 'z'])).toBe(true);
    expect(operation.tries).toBe(1);
    expect(fixture.log).toEqual(['a tried']);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  });

  test('the first while nothing is watched, the second while everything is, both without a timeout', () => {
    const fixture = new Fixture();
    const seen: unknown[] = [];
    fixture.watch('a', 'xyz', { delayMs: 10, onTry: () => seen.push(fixture.gauges()) });
    expect(seen).toEqual([
      [0, 0, 0, 0],
      [3, 0, 3, 0],
    ]);
  });

  test('one that the second try completes leaves nothing behind', () => {
    const fixture = new Fixture();
    const operation = fixture.operation('a', {
      delayMs: 10,
      onTry: (self) => {
        self.holds = self.tries === 2;
      },
    });
    expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x', 'y'])).toBe(true);
    expect(fixture.log).toEqual(['a tried']);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  });

  test.each([1, 2])('forced from inside try %d: true, completed, and the timeout never starts', (which) => {
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
  });

  test('cancelled with its key from inside the second try: false, and it waits for nothing', () => {
    const fixture = new Fixture();
    const operation: TestOperation = fixture.operation('a', {
      delayMs: 10,
      onTry: () => {
        fixture.purgatory.cancelForKey('y');
      },
    });
    expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x', 'y'])).toBe(false);
    fixture.clock.advance(100);
    expect([operation.isCompleted, operation.pending, fixture.log]).toEqual([false, false, []]);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  });

  test('a cancel from inside the second try comes before the timeout, which starts', () => {
    const fixture = new Fixture();
    const operation = fixture.watch('a', 'x', {
      delayMs: 10,
      onTry: (self) => {
        expect(self.cancel()).toBe(false);
      },
    });
    expect(operation.pending).toBe(true);
    expect(fixture.gauges()).toEqual([1, 1, 1, 1]);
  });

  test('time that passes inside its tries does not count against its delay', () => {
    const fixture = new Fixture();
    fixture.watch('a', 'x', {
      delayMs: 10,
      onTry: () => {
        fixture.clock.advance(50);
      },
    });
    fixture.clock.advance(9);
    expect(fixture.log).toEqual([]);
    fixture.clock.advance(1);
    expect(fixture.log).toEqual(['a expired', 'a onExpiration']);
  });

  test('an operation that is completed already is left alone', () => {
    const fixture = new Fixture();
    const operation = fixture.operation('a');
    operation.forceComplete();
    expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x'])).toBe(true);
    expect([operation.tries, fixture.log]).toEqual([0, ['a forced']]);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  });

  test('from inside a try or an onComplete of another one', () => {
    const fixture = new Fixture();
    fixture.watch('a', 'x', {
      onTry: (self) => {
        if (self.tries === 1) fixture.watch('b', 'x', { delayMs: 5 });
      },
      onComplete: () => fixture.watch('c', 'x', { delayMs: 5 }),
    });
    expect(fixture.gauges()).toEqual([2, 1, 1, 1]);
    fixture.purgatory.checkAndComplete('x');
    fixture.clock.advance(5);
    expect(fixture.log).toEqual(['b expired', 'b onExpiration']);
  });
});
