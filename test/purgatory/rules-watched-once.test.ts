import { SystemTimer } from 'escapement';
import { checkPurgatory } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { thrownBy } from '../timer/support/errors.ts';
import { Fixture } from './support/fixture.ts';

const ALREADY_WATCHED = { name: 'EscapementError', code: 'ERR_ALREADY_WATCHED' };

describe('a pending operation may be watched once: watching it again, here or elsewhere, is ERR_ALREADY_WATCHED', () => {
  test.each(['here', 'elsewhere'])('%s: nothing changes', (where) => {
    const [fixture, other] = [new Fixture(), new Fixture()];
    const operation = fixture.watch('a', 'xy', { delayMs: 10 });
    const { purgatory } = where === 'here' ? fixture : other;
    expect(thrownBy(() => purgatory.tryCompleteElseWatch(operation, ['y', 'z']))).toMatchObject(
      ALREADY_WATCHED,
    );
    expect([operation.tries, operation.pending]).toEqual([2, true]);
    expect([fixture.gauges(), other.gauges()]).toEqual([
      [2, 1, 2, 1],
      [0, 0, 0, 0],
    ]);
    fixture.clock.advance(10);
    expect(fixture.log).toEqual(['a expired', 'a onExpiration']);
  });

  test.each([1, 2])('also from inside its own try %d', (which) => {
    const [fixture, other] = [new Fixture(), new Fixture()];
    const operation = fixture.operation('a', {
      onTry: (self) => {
        if (self.tries !== which) return;
        for (const { purgatory } of [fixture, other]) {
          expect(thrownBy(() => purgatory.tryCompleteElseWatch(self, ['x']))).toMatchObject(ALREADY_WATCHED);
        }
      },
    });
    fixture.purgatory.tryCompleteElseWatch(operation, ['x']);
    expect([operation.tries, fixture.gauges(), other.gauges()]).toEqual([2, [1, 0, 1, 0], [0, 0, 0, 0]]);
  });

  test('also from inside the iterator of its keys', () => {
    const fixture = new Fixture();
    const operation = fixture.operation('a', { delayMs: 10 });
    function* keys(): Generator<string> {
      yield 'x';
      fixture.purgatory.tryCompleteElseWatch(operation, ['y']);
    }
    const error = thrownBy(() => fixture.purgatory.tryCompleteElseWatch(operation, keys()));
    expect(error).toMatchObject(ALREADY_WATCHED);
    expect(fixture.gauges()).toEqual([1, 1, 1, 1]);
  });

  test.each([1, 2, 3])(
    'an operation that its own try %d puts under other keys of the same purgatory',
    (tries) => {
      const fixture = new Fixture();
      const operation = fixture.watch('a', 'x', {
        delayMs: 100,
        onTry: (self) => {
          if (self.tries !== tries) return;
          expect(fixture.purgatory.cancel(self)).toBe(true);
          expect(fixture.purgatory.tryCompleteElseWatch(self, ['y', 'z'])).toBe(false);
        },
      });
      if (tries === 3) fixture.purgatory.checkAndComplete('x');
      checkPurgatory(fixture.purgatory);
      expect([...fixture.gauges()]).toEqual([2, 1, 2, 1]);
      expect(fixture.purgatory.cancelForKey('y')).toEqual([operation]);
      expect([...fixture.gauges()]).toEqual([0, 0, 0, 0]);
    },
  );

  test('an operation that moves in its own check is checked where it is now', () => {
    const [from, to] = [new Fixture(), new Fixture()];
    const operation = from.watch('a', 'x', {
      onTry: (self) => {
        if (self.tries !== 3) return;
        from.purgatory.cancelForKey('x');
        expect(to.purgatory.tryCompleteElseWatch(self, ['y'])).toBe(false);
      },
    });
    from.purgatory.checkAndComplete('x');
    expect(operation.tries).toBeGreaterThan(3);
    expect([from.gauges(), to.gauges()]).toEqual([
      [0, 0, 0, 0],
      [1, 0, 1, 0],
    ]);
  });
});

describe('cancel() on it cancels only its timeout', () => {
  test('it stays under its keys, and numDelayed is exact', () => {
    const fixture = new Fixture();
    const operation = fixture.watch('a', 'xy', { delayMs: 10 });
    expect([operation.cancel(), operation.cancel()]).toEqual([true, false]);
    expect([operation.isCancelled, operation.pending, operation.isCompleted]).toEqual([true, false, false]);
    expect(fixture.gauges()).toEqual([2, 0, 2, 0]);
    fixture.clock.advance(100);
    expect(fixture.log).toEqual([]);
    operation.holds = true;
    expect(fixture.purgatory.checkAndComplete('y')).toBe(1);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  });

  test('false if it waits for ever, or waits no more', () => {
    const fixture = new Fixture();
    const operation = fixture.watch('a', 'x');
    expect(operation.cancel()).toBe(false);
    expect(fixture.gauges()).toEqual([1, 0, 1, 0]);
    operation.forceComplete();
    expect(operation.cancel()).toBe(false);
  });

  test('another timer may take the timeout over', () => {
    const fixture = new Fixture();
    const other = new SystemTimer({ clock: fixture.clock });
    const operation = fixture.watch('a', 'x', { delayMs: 10 });
    fixture.clock.advance(5);
    other.add(operation);
    expect(fixture.gauges()).toEqual([1, 1, 1, 0]);
    fixture.clock.advance(9);
    expect(fixture.log).toEqual([]);
    fixture.clock.advance(1);
    expect(fixture.log).toEqual(['a expired', 'a onExpiration']);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  });
});
