import { ManualClock, SystemTimer } from 'escapement';
import { checkPurgatory } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { thrownBy } from '../timer/support/errors.ts';
import { Fixture, type Setup, TestOperation } from './support/fixture.ts';

/** An operation without a purgatory, a timer for it, and what happens to it. */
function alone(setup: Setup = {}): {
  operation: TestOperation;
  timer: SystemTimer;
  clock: ManualClock;
  log: string[];
  errors: unknown[];
} {
  const log: string[] = [];
  const errors: unknown[] = [];
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock, onError: (error) => errors.push(error) });
  return { operation: new TestOperation('a', setup, log), timer, clock, log, errors };
}

const fail = (): never => {
  throw new Error('mine');
};

describe('a DelayedOperation without a purgatory', () => {
  test('completes by force, once', () => {
    const { operation, log } = alone();
    expect(operation.isCompleted).toBe(false);
    expect([operation.forceComplete(), operation.forceComplete()]).toEqual([true, false]);
    expect(operation.isCompleted).toBe(true);
    expect(log).toEqual(['a forced']);
  });

  test('completes when a check finds that its condition holds, once', () => {
    const { operation, log } = alone();
    expect(operation.maybeTryComplete()).toBe(false);
    operation.holds = true;
    expect([operation.maybeTryComplete(), operation.maybeTryComplete()]).toEqual([true, false]);
    expect(operation.tries).toBe(2);
    expect(log).toEqual(['a tried']);
  });

  test('knows that it is completed while onComplete runs', () => {
    const { operation } = alone({
      onComplete: (self) => {
        expect([self.isCompleted, self.forceComplete(), self.maybeTryComplete()]).toEqual([
          true,
          false,
          false,
        ]);
      },
    });
    operation.forceComplete();
    expect.assertions(1);
  });

  test('expires in a timer: onComplete, then onExpiration', () => {
    const { operation, timer, clock, log } = alone({ delayMs: 10 });
    timer.add(operation);
    clock.advance(9);
    expect(log).toEqual([]);
    clock.advance(1);
    expect(log).toEqual(['a expired', 'a onExpiration']);
    expect([operation.isCompleted, operation.tries]).toEqual([true, 0]);
  });

  test('leaves the timer when it completes, before onComplete', () => {
    const sizes: number[] = [];
    const { operation, timer, clock, log } = alone({ delayMs: 10, onComplete: () => sizes.push(timer.size) });
    timer.add(operation);
    operation.forceComplete();
    expect(sizes).toEqual([0]);
    clock.advance(100);
    expect(log).toEqual(['a forced']);
  });

  test('is not expired by a run that comes too late', () => {
    const { operation, log } = alone();
    operation.forceComplete();
    operation.run();
    expect(log).toEqual(['a forced']);
  });

  test('can be cancelled in a timer, and completes all the same by force', () => {
    const { operation, timer, clock, log } = alone({ delayMs: 10 });
    timer.add(operation);
    expect([operation.cancel(), operation.cancel()]).toEqual([true, false]);
    clock.advance(100);
    expect([operation.isCancelled, log]).toEqual([true, []]);
    expect(operation.forceComplete()).toBe(true);
  });

  test('cannot be added to a timer when it may wait for ever', () => {
    const { operation, timer } = alone();
    expect(operation.delayMs).toBe(Infinity);
    const error = thrownBy(() => {
      timer.add(operation);
    });
    expect(error).toMatchObject({ name: 'RangeError', code: 'ERR_OUT_OF_RANGE' });
    expect([operation.pending, timer.size]).toEqual([false, 0]);
  });

  test.each([0, -5, 0.25, 2 ** 40, Number.MAX_VALUE])('takes a delay of %d', (delayMs) => {
    expect(new TestOperation('a', { delayMs }).delayMs).toBe(delayMs);
  });
});

describe('maybeTryComplete: a trigger that arrives while a check is running makes that check run once more', () => {
  test('however many came', () => {
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

  test('and the check that runs once more may complete it', () => {
    const { operation, log } = alone({
      onTry: (self) => {
        self.holds = self.tries === 2;
        if (self.tries === 1) self.maybeTryComplete();
      },
    });
    expect(operation.maybeTryComplete()).toBe(true);
    expect(log).toEqual(['a tried']);
  });

  test('but not when the first has completed it', () => {
    const { operation } = alone({ holds: true, onTry: (self) => self.maybeTryComplete() });
    expect(operation.maybeTryComplete()).toBe(true);
    expect(operation.tries).toBe(1);
  });

  test('and one that triggers itself for ever ends with ERR_CHECK_ENDLESS', () => {
    const { operation } = alone({ onTry: (self) => self.maybeTryComplete() });
    const error = thrownBy(() => operation.maybeTryComplete());
    expect(error).toMatchObject({ name: 'EscapementError', code: 'ERR_CHECK_ENDLESS' });
    expect((error as Error).message).toContain('TestOperation');
    operation.holds = true;
    expect(operation.maybeTryComplete()).toBe(true);
  });
});

describe('forceComplete called by a user without a purgatory throws an onComplete error', () => {
  test('and it is completed', () => {
    const { operation } = alone({ onComplete: fail });
    expect(thrownBy(() => operation.forceComplete())).toEqual(new Error('mine'));
    expect([operation.isCompleted, operation.forceComplete()]).toEqual([true, false]);
  });

  test('and so does a check, for both of its callbacks', () => {
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
    'what %s throws at its timeout goes to the timer',
    (method) => {
      const { operation, timer, clock, log, errors } = alone({ delayMs: 5, [method]: fail });
      timer.add(operation);
      clock.advance(5);
      expect(errors).toEqual([new Error('mine')]);
      expect(log).toEqual(['a expired', 'a onExpiration']);
    },
  );
});

test('a tryComplete that says true and forgets to complete is taken at its word', () => {
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
