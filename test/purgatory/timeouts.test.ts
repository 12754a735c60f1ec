import { DelayedOperationPurgatory, ManualClock, SystemTimer, type Timer, type TimerTask } from 'escapement';
import { checkPurgatory } from 'escapement/testing';
import { expect } from 'vitest';
import { throwing, thrownBy } from '../timer/support/errors.ts';
import { Fixture, TestOperation, test } from './support/fixture.ts';

/** A timer that knows nothing of tasks but what everybody does: `add` is up to the test, nothing can be taken out. */
function makeTimer(add: (task: TimerTask) => void): Timer {
  return { add, advanceClock: () => Promise.resolve(false), size: 0, close: () => [] };
}

test('a timeout completes an operation although its condition holds, if there was no trigger', () => {
  const fixture = new Fixture();
  const operation = fixture.watch('a', 'x', { delayMs: 10 });
  operation.holds = true;
  fixture.clock.advance(10);
  expect([operation.tries, fixture.log]).toEqual([2, ['a expired', 'a onExpiration']]);
});

test('a trigger just before the timeout completes an operation, and one just after it does not', () => {
  const fixture = new Fixture();
  const [early, late] = [fixture.watch('a', 'x', { delayMs: 10 }), fixture.watch('b', 'y', { delayMs: 10 })];
  early.holds = late.holds = true;
  fixture.clock.advance(9.5);
  expect(fixture.purgatory.checkAndComplete('x')).toBe(1);
  fixture.clock.advance(0.5);
  expect(fixture.purgatory.checkAndComplete('y')).toBe(0);
  expect(fixture.log).toEqual(['a tried', 'b expired', 'b onExpiration']);
});

test.each([0, -1, -1e9])(
  'an operation with a delay of %d expires at once, but not inside the call',
  (delayMs) => {
    const fixture = new Fixture();
    const operation = fixture.operation('a', { delayMs });
    expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x'])).toBe(false);
    expect(fixture.gauges()).toEqual([1, 1, 1, 1]);
    fixture.clock.advance(0);
    expect(fixture.log).toEqual(['a expired', 'a onExpiration']);
  },
);

test('a timeout in the middle of a check completes the operation as expired, and the check does not count it', () => {
  const fixture = new Fixture();
  fixture.watch('a', 'x', {
    delayMs: 10,
    onTry: (self) => {
      if (self.tries !== 3) return;
      fixture.clock.advance(10);
      self.holds = true;
    },
  });
  expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
  expect(fixture.log).toEqual(['a expired', 'a onExpiration']);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

test('an operation with a delay of Infinity has no entry in the timer', ({ fixture }) => {
  const operation = fixture.watch('a', 'x', { delayMs: Infinity });
  expect(fixture.gauges()).toEqual([1, 0, 1, 0]);
  fixture.clock.advance(1e12);
  operation.holds = true;
  expect(fixture.purgatory.checkAndComplete('x')).toBe(1);
});

test.each([true, false])(
  'with timerEnabled false no operation times out, with a timer of another: %s',
  (hasTimer) => {
    const timer = new SystemTimer({ clock: new ManualClock() });
    const purgatory = new DelayedOperationPurgatory('test', {
      timerEnabled: false,
      ...(hasTimer && { timer }),
    });
    const operation = new TestOperation('a', { delayMs: 1 });
    expect(purgatory.tryCompleteElseWatch(operation, ['x'])).toBe(false);
    expect([purgatory.numDelayed, purgatory.watched, timer.size]).toEqual([0, 1, 0]);
    expect(operation.pending).toBe(false);
    checkPurgatory(purgatory);
    expect(purgatory.close()).toEqual([operation]);
  },
);

test('the timer of a purgatory uses its clock', () => {
  const clock = new ManualClock();
  const purgatory = new DelayedOperationPurgatory('test', { clock });
  const log: string[] = [];
  purgatory.tryCompleteElseWatch(new TestOperation('a', { delayMs: 10 }, log), ['x']);
  purgatory.tryCompleteElseWatch(new TestOperation('b', { delayMs: 20 }, log), ['x']);
  clock.advance(10);
  expect(log).toEqual(['a expired', 'a onExpiration']);
  expect(clock.pendingWakeups).toBe(1);
  purgatory.close({ pending: 'drop' });
  expect(clock.pendingWakeups).toBe(0);
});

test('a shared timer is not closed, and numDelayed counts one purgatory', ({ fixture }) => {
  const { clock, timer } = fixture;
  const other = new Fixture({ timer });
  const task = new TestOperation('task', { delayMs: 50 });
  timer.add(task);
  fixture.watch('a', 'x', { delayMs: 10 });
  other.watch('b', 'x', { delayMs: 10 });
  other.watch('c', 'x', { delayMs: 20 });
  expect([timer.size, fixture.purgatory.numDelayed, other.purgatory.numDelayed]).toEqual([4, 1, 2]);
  fixture.purgatory.close();
  clock.advance(10);
  expect([timer.size, other.purgatory.numDelayed]).toEqual([2, 1]);
  expect([fixture.log, other.log]).toEqual([['a closed'], ['b expired', 'b onExpiration']]);
  checkPurgatory(other.purgatory);
});

test('operations in a timer that was closed complete only when their condition holds', ({ fixture }) => {
  const operation = fixture.watch('a', 'x', { delayMs: 10 });
  expect(fixture.timer.close()).toEqual([operation]);
  expect(fixture.gauges()).toEqual([1, 0, 1, 0]);
  operation.holds = true;
  expect(fixture.purgatory.checkAndComplete('x')).toBe(1);
});

test('operations in a timer that was closed with "run" expire', ({ fixture }) => {
  fixture.watch('a', 'x', { delayMs: 10 });
  fixture.timer.close({ pending: 'run' });
  expect(fixture.log).toEqual(['a expired', 'a onExpiration']);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

test('an operation for a closed timer is refused with ERR_TIMER_CLOSED and not watched, unless it has no timeout', async () => {
  const fixture = new Fixture();
  fixture.timer.close();
  const operation = fixture.operation('a', { delayMs: 10 });
  const error = thrownBy(() => fixture.purgatory.tryCompleteElseWatch(operation, ['x']));
  expect(error).toHaveProperty('code', 'ERR_TIMER_CLOSED');
  expect(operation.isCompleted).toBe(false);
  const wait = fixture.purgatory.wait(['x'], () => undefined, { timeoutMs: 10 });
  await expect(wait).rejects.toHaveProperty('code', 'ERR_TIMER_CLOSED');
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  fixture.watch('b', 'x', { holds: true, delayMs: 10 });
  fixture.watch('c', 'x');
  expect(fixture.gauges()).toEqual([1, 0, 1, 0]);
});

test('an operation that a closed timer has refused expires in another purgatory', () => {
  const [fixture, other] = [new Fixture(), new Fixture()];
  fixture.timer.close();
  const operation = fixture.operation('a', { delayMs: 10 });
  thrownBy(() => fixture.purgatory.tryCompleteElseWatch(operation, ['x']));
  expect(other.purgatory.tryCompleteElseWatch(operation, ['x'])).toBe(false);
  other.clock.advance(10);
  expect(fixture.log).toEqual(['a expired', 'a onExpiration']);
});

test('an operation whose cancel was called before it is watched expires all the same', ({ fixture }) => {
  const operation = fixture.operation('a', { delayMs: 10 });
  expect(operation.cancel()).toBe(false);
  fixture.purgatory.tryCompleteElseWatch(operation, ['x']);
  fixture.clock.advance(10);
  expect(fixture.log).toEqual(['a expired', 'a onExpiration']);
});

test('a timer of another class may run what is due inside add, and tryCompleteElseWatch returns true', () => {
  const fixture = new Fixture({ timer: makeTimer((task) => task.run()) });
  const operation = fixture.operation('a', { delayMs: 0 });
  const returned = fixture.purgatory.tryCompleteElseWatch(operation, ['x', 'y']);
  expect(fixture.log).toEqual(['a expired', 'a onExpiration']);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  expect(returned).toBe(true);
});

test('a timer of another class may throw, and nothing is watched', () => {
  const mine = new Error('mine');
  const fixture = new Fixture({ timer: makeTimer(throwing(mine)) });
  const operation = fixture.operation('a', { delayMs: 5 });
  expect(thrownBy(() => fixture.purgatory.tryCompleteElseWatch(operation, ['x']))).toBe(mine);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

test.each<[how: string, log: string[], end: (fixture: Fixture, operation: TestOperation) => unknown]>([
  ['forceComplete', ['a forced'], (_, operation) => operation.forceComplete()],
  ['cancelForKey', [], ({ purgatory }) => purgatory.cancelForKey('x')],
  ['close with drop', [], ({ purgatory }) => purgatory.close({ pending: 'drop' })],
  ['cancel', [], (_, operation) => operation.cancel()],
])('a timer of another class that cannot cancel does not expire an operation after %s', (_, log, end) => {
  const tasks: TimerTask[] = [];
  const fixture = new Fixture({ timer: makeTimer((task) => tasks.push(task)) });
  const operation = fixture.watch('a', 'x', { delayMs: 5 });
  expect(fixture.purgatory.numDelayed).toBe(1);
  end(fixture, operation);
  expect(fixture.purgatory.numDelayed).toBe(0);
  for (const task of tasks) task.run();
  expect(fixture.log).toEqual(log);
});
