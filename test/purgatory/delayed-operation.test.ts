import { ManualClock, SystemTimer } from 'escapement';
import { checkPurgatory } from 'escapement/testing';
import { expect } from 'vitest';
import { throwing, thrownBy } from '../timer/support/errors.ts';
import { Fixture, type Setup, TestOperation, test } from './support/fixture.ts';

/** An operation without a purgatory, a timer for it, and what happens to it. */
function alone(setup: Setup = {}) {
  const log: string[] = [];
  const errors: unknown[] = [];
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock, onError: (error) => errors.push(error) });
  return { operation: new TestOperation('a', setup, log), timer, clock, log, errors };
}

const fail = throwing(new Error('mine'));

test('forceComplete completes an operation without a purgatory once', () => {
  const { operation, log } = alone();
  expect(operation.isCompleted).toBe(false);
  expect([operation.forceComplete(), operation.forceComplete()]).toEqual([true, false]);
  expect(operation.isCompleted).toBe(true);
  expect(log).toEqual(['a forced']);
});

test('maybeTryComplete completes an operation without a purgatory once when its condition holds', () => {
  const { operation, log } = alone();
  expect(operation.maybeTryComplete()).toBe(false);
  operation.holds = true;
  expect([operation.maybeTryComplete(), operation.maybeTryComplete()]).toEqual([true, false]);
  expect(operation.tries).toBe(2);
  expect(log).toEqual(['a tried']);
});

test('isCompleted is true while onComplete runs', () => {
  const { operation } = alone({
    onComplete: (self) =>
      expect([self.isCompleted, self.forceComplete(), self.maybeTryComplete()]).toEqual([true, false, false]),
  });
  operation.forceComplete();
  expect.assertions(1);
});

test('an operation that expires in a timer runs onComplete, then onExpiration', () => {
  const { operation, timer, clock, log } = alone({ delayMs: 10 });
  timer.add(operation);
  clock.advance(9);
  expect(log).toEqual([]);
  clock.advance(1);
  expect(log).toEqual(['a expired', 'a onExpiration']);
  expect([operation.isCompleted, operation.tries]).toEqual([true, 0]);
});

test('an operation that has completed does not expire when its timer runs it late', () => {
  const { operation, log } = alone();
  operation.forceComplete();
  operation.run();
  expect(log).toEqual(['a forced']);
});

test('an operation that was cancelled in its timer can still be forced', () => {
  const { operation, timer, clock, log } = alone({ delayMs: 10 });
  timer.add(operation);
  expect([operation.cancel(), operation.cancel()]).toEqual([true, false]);
  clock.advance(100);
  expect([operation.isCancelled, log]).toEqual([true, []]);
  expect(operation.forceComplete()).toBe(true);
});

test('a timer refuses an operation without a timeout', () => {
  const { operation, timer } = alone();
  expect(operation.delayMs).toBe(Infinity);
  const error = thrownBy(() => timer.add(operation));
  expect(error).toMatchObject({ name: 'RangeError', code: 'ERR_OUT_OF_RANGE' });
  expect([operation.pending, timer.size]).toEqual([false, 0]);
});

test.each([0, -5, 0.25, 2 ** 40, Number.MAX_VALUE])('an operation may have a delay of %d', (delayMs) =>
  expect(new TestOperation('a', { delayMs }).delayMs).toBe(delayMs),
);

test('triggers during a check make it run once more, however many they are', () => {
  const { operation } = alone({
    onTry: (self) => {
      if (self.tries > 1) return;
      expect([self.maybeTryComplete(), self.maybeTryComplete()]).toEqual([false, false]);
      expect(self.tries).toBe(1);
    },
  });
  expect(operation.maybeTryComplete()).toBe(false);
  expect(operation.tries).toBe(2);
});

test('a check that is repeated may complete the operation', () => {
  const { operation, log } = alone({
    onTry: (self) => {
      self.holds = self.tries === 2;
      if (self.tries === 1) self.maybeTryComplete();
    },
  });
  expect(operation.maybeTryComplete()).toBe(true);
  expect(log).toEqual(['a tried']);
});

test('a check that has completed the operation is not repeated', () => {
  const { operation } = alone({ holds: true, onTry: (self) => self.maybeTryComplete() });
  expect(operation.maybeTryComplete()).toBe(true);
  expect(operation.tries).toBe(1);
});

test('a check that triggers itself for ever ends with ERR_CHECK_ENDLESS', () => {
  const { operation } = alone({ onTry: (self) => self.maybeTryComplete() });
  const error = thrownBy(() => operation.maybeTryComplete());
  expect(error).toMatchObject({ name: 'EscapementError', code: 'ERR_CHECK_ENDLESS' });
  expect((error as Error).message).toContain('TestOperation');
  operation.holds = true;
  expect(operation.maybeTryComplete()).toBe(true);
});

test('a check without a purgatory throws an error of its callbacks', () => {
  const tried = alone({ onTry: fail }).operation;
  expect(thrownBy(() => tried.maybeTryComplete())).toEqual(new Error('mine'));
  expect(tried.isCompleted).toBe(false);
  expect(thrownBy(() => tried.maybeTryComplete())).toEqual(new Error('mine'));
  expect(tried.tries).toBe(2);
  const completed = alone({ holds: true, onComplete: fail }).operation;
  expect(thrownBy(() => completed.maybeTryComplete())).toEqual(new Error('mine'));
  expect(completed.isCompleted).toBe(true);
});

test.each(['onComplete', 'onExpiration'] as const)(
  'an error of %s at a timeout without a purgatory goes to the timer',
  (method) => {
    const { operation, timer, clock, log, errors } = alone({ delayMs: 5, [method]: fail });
    timer.add(operation);
    clock.advance(5);
    expect(errors).toEqual([new Error('mine')]);
    expect(log).toEqual(['a expired', 'a onExpiration']);
  },
);

test('an operation whose tryComplete returns true without completing it is completed', () => {
  class Forgetful extends TestOperation {
    override tryComplete(): boolean {
      return true;
    }
  }
  const log: string[] = [];
  const operation = new Forgetful('a', {}, log);
  expect(operation.maybeTryComplete()).toBe(true);
  expect(log).toEqual(['a tried']);
});

const ALREADY_WATCHED = { name: 'EscapementError', code: 'ERR_ALREADY_WATCHED' };

test.each(['here', 'elsewhere'])(
  'watching a pending operation again is ERR_ALREADY_WATCHED and changes nothing: %s',
  (where) => {
    const [fixture, other] = [new Fixture(), new Fixture()];
    const operation = fixture.watch('a', 'xy', { delayMs: 10 });
    const { purgatory } = where === 'here' ? fixture : other;
    expect(thrownBy(() => purgatory.tryCompleteElseWatch(operation, ['y', 'z']))).toMatchObject(
      ALREADY_WATCHED,
    );
    expect([operation.tries, operation.pending]).toEqual([2, true]);
    expect(fixture.gauges()).toEqual([2, 1, 2, 1]);
    expect(other.gauges()).toEqual([0, 0, 0, 0]);
    fixture.clock.advance(10);
    expect(fixture.log).toEqual(['a expired', 'a onExpiration']);
  },
);

test.each([1, 2])('watching an operation from inside its own try %d is ERR_ALREADY_WATCHED', (which) => {
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

test('watching an operation from inside the iterable of its keys is ERR_ALREADY_WATCHED', ({ fixture }) => {
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
  'an operation may be watched under other keys of the same purgatory from inside its own try %d',
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

test('an operation that moves to another purgatory in its own check is checked there', () => {
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
  expect(from.gauges()).toEqual([0, 0, 0, 0]);
  expect(to.gauges()).toEqual([1, 0, 1, 0]);
});

test('an operation that is cancelled in its own check is neither completed nor checked again', ({
  fixture,
}) => {
  class Cancelled extends TestOperation {
    override tryComplete(): boolean {
      return super.tryComplete() || this.tries === 3;
    }
  }
  const onTry = (self: TestOperation): void => {
    if (self.tries !== 3) return;
    self.maybeTryComplete();
    fixture.purgatory.cancel(self);
  };
  const operation = new Cancelled('a', { onTry });
  fixture.purgatory.tryCompleteElseWatch(operation, ['x']);
  expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
  expect([operation.tries, operation.isCompleted]).toEqual([3, false]);
});

test('a purgatory cancels no operation of another one', () => {
  const [fixture, other] = [new Fixture(), new Fixture()];
  const operation = other.watch('a', 'x');
  expect(fixture.purgatory.cancel(operation)).toBe(false);
  expect(other.gauges()).toEqual([1, 0, 1, 0]);
});

test('cancel of a watched operation leaves it under its keys, and numDelayed is exact', ({ fixture }) => {
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

test('cancel returns false for an operation without a pending timeout', ({ fixture }) => {
  const operation = fixture.watch('a', 'x');
  expect(operation.cancel()).toBe(false);
  expect(fixture.gauges()).toEqual([1, 0, 1, 0]);
  operation.forceComplete();
  expect(operation.cancel()).toBe(false);
});

test('another timer may run the timeout of an operation', ({ fixture }) => {
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
