import { expect } from 'vitest';
import { runProgram } from '../run-program.ts';
import { throwing, thrownBy } from '../timer/support/errors.ts';
import { Fixture, TestOperation, test } from './support/fixture.ts';

const mine = new Error('mine');
const fail = throwing(mine);

test('an error of tryComplete is reported, and the other operations are checked', ({ fixture }) => {
  fixture.watch('a', 'x').holds = true;
  const thrower = fixture.watch('b', 'x', { delayMs: 10, onTry: ({ tries }) => tries === 3 && fail() });
  fixture.watch('c', 'x').holds = true;
  expect(fixture.purgatory.checkAndComplete('x')).toBe(2);
  expect(fixture.errors).toEqual([[mine, thrower]]);
  expect(fixture.take()).toEqual(['a tried', 'c tried']);
  thrower.holds = true;
  expect(fixture.purgatory.checkAndComplete('x')).toBe(1);
});

test('an error of onComplete is reported, and the operation has completed and counts', ({ fixture }) => {
  const thrower = fixture.watch('a', 'xy', { delayMs: 10, onComplete: fail });
  thrower.holds = true;
  fixture.watch('b', 'x').holds = true;
  expect(fixture.purgatory.checkAndComplete('x')).toBe(2);
  expect(fixture.errors).toEqual([[mine, thrower]]);
  expect([thrower.isCompleted, fixture.log]).toEqual([true, ['a tried', 'b tried']]);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

test('a promise of tryComplete is an error, and completes nothing', ({ fixture }) => {
  const operation = fixture.watch('a', 'x');
  operation.tryComplete = () => Promise.resolve(true) as never;
  expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
  expect(fixture.errors).toMatchObject([[{ code: 'ERR_INVALID_ARG_TYPE' }, operation]]);
  expect(String(fixture.errors[0]?.[0])).toMatch(/tryComplete\(\) must be a boolean.*\[object Promise\]/);
  expect(operation.isCompleted).toBe(false);
});

test('an error of tryComplete after completion is reported', ({ fixture }) => {
  const thrower = fixture.watch('a', 'x', {
    onTry: (self) => {
      if (self.tries !== 3) return;
      self.forceComplete();
      fail();
    },
  });
  expect(fixture.purgatory.checkAndComplete('x')).toBe(1);
  expect(fixture.errors).toEqual([[mine, thrower]]);
  expect(fixture.log).toEqual(['a tried']);
});

test('errors of callbacks at a timeout are reported: onExpiration runs, and so do other due operations', () => {
  const fixture = new Fixture();
  const a = fixture.watch('a', 'x', { delayMs: 10, onComplete: fail, onExpiration: fail });
  fixture.watch('b', 'x', { delayMs: 10 });
  fixture.clock.advance(10);
  expect(fixture.errors).toEqual([
    [mine, a],
    [mine, a],
  ]);
  expect(fixture.log).toEqual(['a expired', 'a onExpiration', 'b expired', 'b onExpiration']);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

test('an error of onComplete at close is reported, and the other operations are closed', ({ fixture }) => {
  const a = fixture.watch('a', 'x', { onComplete: fail });
  const b = fixture.watch('b', 'x');
  expect(fixture.purgatory.close()).toEqual([a, b]);
  expect(fixture.errors).toEqual([[mine, a]]);
  expect(fixture.log).toEqual(['a closed', 'b closed']);
});

test('a check is over when its error is reported: an operation that onError completes is forced', () => {
  const fixture = new Fixture({ onError: (_, operation) => operation.forceComplete() });
  fixture.watch('a', 'x', { onTry: fail });
  fixture.watch('b', 'x', { onTry: ({ tries }) => tries === 3 && fail() });
  const triggered = fixture.watch('c', 'x', {
    onTry: (self) => {
      if (self.tries < 3) return;
      self.maybeTryComplete();
      fail();
    },
  });
  expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
  expect(fixture.log).toEqual(['a forced', 'b forced', 'c forced']);
  expect(triggered.tries).toBe(3);
});

test('a trigger by onError is followed by a check in which completion is tried', () => {
  const fixture = new Fixture({ onError: (_, operation) => operation.maybeTryComplete() });
  const operation = fixture.watch('a', 'x', {
    onTry: (self) => {
      self.holds = self.tries > 2;
      if (self.tries === 3) fail();
    },
  });
  expect(fixture.purgatory.checkAndComplete('x')).toBe(1);
  expect([operation.tries, fixture.log]).toEqual([4, ['a tried']]);
});

test('a check that triggers itself without an end is over when it is reported', () => {
  const fixture = new Fixture({ onError: (_, operation) => operation.forceComplete() });
  fixture.watch('a', 'x', { onTry: (self) => self.tries > 2 && self.maybeTryComplete() });
  fixture.purgatory.checkAndComplete('x');
  expect(fixture.log).toEqual(['a forced']);
});

test('an operation may throw any value', ({ fixture }) => {
  const operation = fixture.watch('a', 'x', { onTry: throwing(undefined) });
  expect(fixture.errors).toEqual([
    [undefined, operation],
    [undefined, operation],
  ]);
});

test.each([
  ['also when it was the last thing to do', '', 'mine'],
  ['and so is what onError throws', '{ onError: () => { throw new Error("handler"); } }', 'handler'],
])('without onError an error is uncaught: %s', (_, options, message) => {
  const { stdout, status } = runProgram(`
      import { DelayedOperation, DelayedOperationPurgatory } from 'escapement';
      class Operation extends DelayedOperation {
        tryComplete() { throw new Error('mine'); }
        onComplete(reason) { console.log(reason); throw new Error('mine'); }
        onExpiration() { console.log('onExpiration'); throw new Error('mine'); }
      }
      process.on('uncaughtException', (error) => console.log('uncaught', error.message));
      const purgatory = new DelayedOperationPurgatory('test', ${options});
      purgatory.tryCompleteElseWatch(new Operation(5), ['x']);
      console.log('watched', purgatory.watched);
    `);
  const uncaught = `uncaught ${message}`;
  expect(stdout.trim().split('\n')).toEqual([
    ...['watched 1', uncaught, uncaught],
    ...['expired', 'onExpiration', uncaught, uncaught],
  ]);
  expect(status).toBe(0);
});

test.each([[[1]], [[2]], [[1, 2]], [[3]]])(
  'an operation whose tries throw is watched and keeps its timeout: tries %j',
  (throwing) => {
    const fixture = new Fixture();
    const operation = fixture.operation('a', {
      delayMs: 10,
      onTry: ({ tries }) => throwing.includes(tries) && fail(),
    });
    expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x', 'y'])).toBe(false);
    expect(operation.tries).toBe(2);
    fixture.purgatory.checkAndComplete('x');
    expect(fixture.errors).toEqual(throwing.map(() => [mine, operation]));
    expect(fixture.gauges()).toEqual([2, 1, 2, 1]);
    fixture.clock.advance(10);
    expect(fixture.log).toEqual(['a expired', 'a onExpiration']);
  },
);

test('a check that throws and was triggered meanwhile runs once more', ({ fixture }) => {
  const operation = fixture.watch('a', 'x', {
    onTry: (self) => {
      if (self.tries !== 3) return;
      self.maybeTryComplete();
      fail();
    },
  });
  fixture.purgatory.checkAndComplete('x');
  expect(operation.tries).toBe(4);
});

test('forceComplete of a watched operation returns true and reports an error of onComplete', () => {
  const fixture = new Fixture();
  const operation = fixture.watch('a', 'x', { onComplete: fail });
  expect([operation.forceComplete(), operation.forceComplete()]).toEqual([true, false]);
  expect(fixture.errors).toEqual([[mine, operation]]);
});

test('forceComplete without a purgatory throws an error of onComplete, also after cancelForKey', () => {
  const fixture = new Fixture();
  const operation = fixture.watch('a', 'x', { onComplete: fail });
  fixture.purgatory.cancelForKey('x');
  expect(thrownBy(() => operation.forceComplete())).toBe(mine);
  expect(fixture.errors).toEqual([]);
});

function* failingKeys(): Generator<string> {
  yield 'x';
  fail();
}

test('an error of the key iterable is thrown to the caller, and nothing is watched', ({ fixture }) => {
  const operation = fixture.operation('a', { delayMs: 10 });
  expect(thrownBy(() => fixture.purgatory.tryCompleteElseWatch(operation, failingKeys()))).toBe(mine);
  expect([operation.tries, operation.pending]).toEqual([0, false]);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  expect(fixture.purgatory.tryCompleteElseWatch(operation, ['x'])).toBe(false);
});

test('an error of keyOf is thrown to the caller, and nothing is watched', () => {
  const keyOf = (key: string): string => (key === 'bad' ? fail() : key);
  const fixture = new Fixture({ keyOf });
  const operation = fixture.watch('a', 'x', { delayMs: 10 });
  const other = new TestOperation('b', { delayMs: 10 });
  for (const action of [
    () => fixture.purgatory.tryCompleteElseWatch(other, ['x', 'bad']),
    () => fixture.purgatory.checkAndComplete('bad'),
    () => fixture.purgatory.cancelForKey('bad'),
  ]) {
    expect(thrownBy(action)).toBe(mine);
  }
  expect([other.tries, operation.tries]).toEqual([0, 2]);
  expect(fixture.errors).toEqual([]);
  expect(fixture.gauges()).toEqual([1, 1, 1, 1]);
});
