import { AsyncDelayedOperation, type CompletionReason } from 'escapement';
import { expect } from 'vitest';
import { runProgram } from '../run-program.ts';
import { throwing } from '../timer/support/errors.ts';
import { Fixture, test } from './support/fixture.ts';

/** A check that is in flight, until the test ends it. */
interface Flight {
  readonly answer: (holds: boolean) => Promise<void>;
  readonly fail: (error: Error) => Promise<void>;
}

/** Longest chain of promise jobs from the end of a check to the start of the next. */
async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await Promise.resolve();
}

/** An operation whose checks the test ends by hand. */
class Remote extends AsyncDelayedOperation {
  /** Every check that was ever started. */
  readonly flights: Flight[] = [];
  readonly log: string[] = [];
  inFlight = 0;
  mostInFlight = 0;
  onCheck: (check: number) => void = () => undefined;

  override tryCompleteAsync(): Promise<boolean> {
    this.mostInFlight = Math.max(this.mostInFlight, ++this.inFlight);
    const promise = new Promise<boolean>((resolve, reject) => {
      const end = (how: () => void): Promise<void> => {
        this.inFlight--;
        how();
        return settle();
      };
      this.flights.push({
        answer: (holds) => end(() => resolve(holds)),
        fail: (error) => end(() => reject(error)),
      });
    });
    this.onCheck(this.flights.length);
    return promise;
  }

  override onComplete(reason: CompletionReason): void {
    this.log.push(reason);
  }

  override onExpiration(): void {
    this.log.push('onExpiration');
  }

  async answer(holds: boolean): Promise<void> {
    await this.flights.at(-1)?.answer(holds);
  }
}

/** A remote operation that is watched under x and y, and whose two first checks have said no. */
async function watched(delayMs = 10): Promise<{ fixture: Fixture; operation: Remote }> {
  const fixture = new Fixture();
  const operation = new Remote(delayMs);
  expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x', 'y'])).toBe(false);
  await operation.answer(false);
  await operation.answer(false);
  expect([operation.flights.length, operation.inFlight]).toEqual([2, 0]);
  return { fixture, operation };
}

test('the second asynchronous try starts when the first one has ended', async ({ fixture }) => {
  const operation = new Remote(10);
  expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x'])).toBe(false);
  expect(operation.flights).toHaveLength(1);
  expect(fixture.gauges()).toEqual([1, 1, 1, 1]);
  await operation.answer(false);
  expect(operation.flights).toHaveLength(2);
  await operation.answer(true);
  expect([operation.log, operation.mostInFlight]).toEqual([['tried'], 1]);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

test('an operation whose first asynchronous try succeeds has no second one', async ({ fixture }) => {
  const operation = new Remote(10);
  fixture.purgatory.tryCompleteElseWatch(operation, ['x']);
  await operation.answer(true);
  expect([operation.flights.length, operation.log]).toEqual([1, ['tried']]);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

test('at most one asynchronous check is in flight, however many triggers there are', async () => {
  const { fixture, operation } = await watched();
  for (let i = 0; i < 5; i++) {
    expect(fixture.purgatory.checkAndComplete('xy'.charAt(i % 2))).toBe(0);
    expect(operation.maybeTryComplete()).toBe(false);
  }
  expect(operation.flights).toHaveLength(3);
  await operation.answer(false);
  expect(operation.flights).toHaveLength(4);
  await operation.answer(false);
  expect([operation.flights.length, operation.mostInFlight]).toEqual([4, 1]);
});

test('a trigger during a check that finds nothing, or rejects, is followed by another check', async () => {
  const { fixture, operation } = await watched();
  fixture.purgatory.checkAndComplete('x');
  fixture.purgatory.checkAndComplete('x');
  await operation.flights[2]?.fail(new Error('mine'));
  expect(operation.flights).toHaveLength(4);
  fixture.purgatory.checkAndComplete('y');
  await operation.answer(false);
  expect(operation.flights).toHaveLength(5);
  await operation.answer(true);
  expect(operation.log).toEqual(['tried']);
});

test('a trigger from inside a check, before it awaits, is followed by another check', async () => {
  const { fixture, operation } = await watched();
  operation.onCheck = (check) => check === 4 && fixture.purgatory.checkAndComplete('x');
  for (let i = 0; i < 2; i++) fixture.purgatory.checkAndComplete('x');
  await operation.answer(false);
  await operation.answer(false);
  expect(operation.flights).toHaveLength(5);
});

test('a trigger from inside a check that then throws is followed by another check', async () => {
  const { fixture, operation } = await watched();
  const mine = new Error('mine');
  operation.onCheck = (check) => {
    if (check !== 4) return;
    operation.inFlight--;
    fixture.purgatory.checkAndComplete('x');
    throw mine;
  };
  for (let i = 0; i < 2; i++) fixture.purgatory.checkAndComplete('x');
  await operation.answer(false);
  await settle();
  expect(fixture.errors).toEqual([[mine, operation]]);
  expect(operation.flights).toHaveLength(5);
});

test('an asynchronous check is over when its error is reported: an operation that onError completes is forced', async () => {
  const fixture = new Fixture({ onError: (_, operation) => operation.forceComplete() });
  const thrower = Object.assign(new Remote(10), { onCheck: throwing(new Error('mine')) });
  fixture.purgatory.tryCompleteElseWatch(thrower, ['x']);
  expect(thrower.log).toEqual(['forced']);
  const rejecting = new Remote(10);
  fixture.purgatory.tryCompleteElseWatch(rejecting, ['x']);
  await rejecting.flights[0]?.fail(new Error('mine'));
  expect(rejecting.log).toEqual(['forced']);
});

test('a check that ends after the timeout is not followed by another', async () => {
  const { fixture, operation } = await watched();
  for (let i = 0; i < 3; i++) fixture.purgatory.checkAndComplete('x');
  fixture.clock.advance(10);
  await operation.answer(false);
  expect([operation.flights.length, operation.log]).toEqual([3, ['expired', 'onExpiration']]);
});

test('a check that rejects or throws is reported, and the timeout remains', async () => {
  const { fixture, operation } = await watched();
  const [rejected, thrown] = [new Error('rejected'), new Error('thrown')];
  fixture.purgatory.checkAndComplete('x');
  await operation.flights[2]?.fail(rejected);
  operation.onCheck = () => {
    operation.inFlight--;
    throw thrown;
  };
  fixture.purgatory.checkAndComplete('x');
  expect(fixture.errors).toEqual([
    [rejected, operation],
    [thrown, operation],
  ]);
  expect(fixture.gauges()).toEqual([2, 1, 2, 1]);
  operation.onCheck = () => undefined;
  fixture.purgatory.checkAndComplete('x');
  expect(operation.flights).toHaveLength(5);
  fixture.clock.advance(10);
  expect(operation.log).toEqual(['expired', 'onExpiration']);
});

test('a check may fail in any way: the next one is not lost', async () => {
  const { fixture, operation } = await watched();
  const mine = new Error('mine');
  Object.defineProperty(operation, 'tryCompleteAsync', {
    configurable: true,
    value: () => Object.defineProperty({}, 'then', { get: throwing(mine) }),
  });
  fixture.purgatory.checkAndComplete('x');
  Reflect.deleteProperty(operation, 'tryCompleteAsync');
  expect(fixture.errors).toEqual([[mine, operation]]);
  fixture.purgatory.checkAndComplete('x');
  expect(operation.flights).toHaveLength(3);
});

test('an error of onComplete after an asynchronous check is reported', async () => {
  const { fixture, operation } = await watched();
  const mine = new Error('mine');
  operation.log.push = throwing(mine);
  fixture.purgatory.checkAndComplete('x');
  await operation.answer(true);
  expect([operation.isCompleted, fixture.errors]).toEqual([true, [[mine, operation]]]);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

test.each([
  ['by the timeout', ['expired', 'onExpiration']],
  ['by force', ['forced']],
  ['by close', ['closed']],
  ['by cancelForKey', []],
  ['by close with drop', []],
] as const)('an operation that ends during its check completes once: %s', async (how, log) => {
  const { fixture, operation } = await watched();
  const { purgatory } = fixture;
  for (const key of 'xy') purgatory.checkAndComplete(key);
  if (how === 'by the timeout') fixture.clock.advance(10);
  else if (how === 'by force') operation.forceComplete();
  else if (how === 'by cancelForKey') expect(purgatory.cancelForKey('x')).toEqual([operation]);
  else purgatory.close({ pending: how === 'by close' ? 'complete' : 'drop' });
  await operation.answer(true);
  expect([operation.log, operation.flights.length]).toEqual([log, 3]);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

test.each(['answers', 'rejects'] as const)(
  'an operation that is watched in another purgatory while a check %s has a check of its own there',
  async (how) => {
    const { fixture, operation } = await watched();
    const other = new Fixture();
    fixture.purgatory.checkAndComplete('x');
    fixture.purgatory.cancelForKey('x');
    other.purgatory.tryCompleteElseWatch(operation, ['z']);
    expect(operation.flights).toHaveLength(3);
    if (how === 'answers') await operation.answer(true);
    else await operation.flights[2]?.fail(new Error('mine'));
    expect([operation.log, other.errors]).toEqual([[], []]);
    expect(operation.flights).toHaveLength(4);
    await operation.answer(true);
    expect([operation.log, operation.mostInFlight]).toEqual([['tried'], 1]);
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
    expect(other.gauges()).toEqual([0, 0, 0, 0]);
  },
);

test('a purgatory that is closed during the first check keeps nothing', async ({ fixture }) => {
  const operation = new Remote(10);
  operation.onCheck = () => fixture.purgatory.close();
  expect(() => fixture.purgatory.tryCompleteElseWatch(operation, ['x'])).toThrow('is closed');
  await operation.answer(true);
  expect([operation.isCompleted, operation.flights.length]).toEqual([false, 1]);
});

test('an AsyncDelayedOperation works without a purgatory', async () => {
  const operation = new Remote(10);
  expect(operation.maybeTryComplete()).toBe(false);
  expect(operation.maybeTryComplete()).toBe(false);
  await operation.answer(false);
  await operation.answer(true);
  expect([operation.log, operation.flights.length]).toEqual([['tried'], 2]);
});

test('an AsyncDelayedOperation whose check returns a value completes at once', ({ fixture }) => {
  const operation = new Remote(10);
  Object.defineProperty(operation, 'tryCompleteAsync', { value: () => true });
  expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x'])).toBe(true);
  expect(operation.log).toEqual(['tried']);
});

test('an AsyncDelayedOperation completes the operations that its completion triggers', async () => {
  const { fixture, operation } = await watched();
  fixture.watch('a', 'z').holds = true;
  operation.onCheck = () => undefined;
  Object.defineProperty(operation, 'onComplete', {
    value: () => expect(fixture.purgatory.checkAndComplete('z')).toBe(1),
  });
  fixture.purgatory.checkAndComplete('x');
  await operation.answer(true);
  expect(fixture.log).toEqual(['a tried']);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

test('an AsyncDelayedOperation whose every check triggers itself does not block the event loop', () => {
  const { stdout, status } = runProgram(`
    import { AsyncDelayedOperation, DelayedOperationPurgatory } from 'escapement';
    const purgatory = new DelayedOperationPurgatory('test', { onError: (error) => console.log(error.code) });
    let checks = 0, isOver = false;
    class Operation extends AsyncDelayedOperation {
      async tryCompleteAsync() {
        if (++checks === 1_000_000) process.exit(3);
        purgatory.checkAndComplete('x');
        return false;
      }
      onComplete(reason) { console.log(reason); }
      onExpiration() {}
    }
    purgatory.tryCompleteElseWatch(new Operation(20), ['x']);
  `);
  expect([status, stdout.trim().split('\n').at(-1)]).toEqual([0, 'expired']);
});
