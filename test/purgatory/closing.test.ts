import { DelayedOperationPurgatory, SystemTimer } from 'escapement';
import { checkPurgatory } from 'escapement/testing';
import { expect, vi } from 'vitest';
import { thrownBy } from '../timer/support/errors.ts';
import { Fixture, type TestOperation, test } from './support/fixture.ts';

const MODES = ['complete', 'drop'] as const;

/** Three operations under keys in no particular order, one of them without a timeout. */
function waiting(fixture: Fixture): TestOperation[] {
  return [
    fixture.watch('a', 'zx', { delayMs: 30 }),
    fixture.watch('b', 'y', { delayMs: 10 }),
    fixture.watch('c', 'xyz'),
    fixture.watch('d', 'x', { delayMs: 20 }),
  ];
}

test('close completes pending operations with the reason closed by default, and returns them in watch order', () => {
  const fixture = new Fixture();
  const operations = waiting(fixture);
  expect(fixture.purgatory.close()).toEqual(operations);
  expect(fixture.log).toEqual(['a closed', 'b closed', 'c closed', 'd closed']);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
});

test('close with drop returns pending operations, which complete only if they are forced or watched again', () => {
  const [fixture, other] = [new Fixture(), new Fixture()];
  const operations = waiting(fixture);
  expect(fixture.purgatory.close({ pending: 'drop' })).toEqual(operations);
  fixture.clock.advance(100);
  expect(fixture.log).toEqual([]);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  for (const operation of operations) {
    expect([operation.isCompleted, operation.pending]).toEqual([false, false]);
    expect(other.purgatory.tryCompleteElseWatch(operation, ['x'])).toBe(false);
  }
  expect(operations[0]?.forceComplete()).toBe(true);
});

test.each(MODES)('close is idempotent: %s', (pending) => {
  const fixture = new Fixture();
  waiting(fixture);
  expect(fixture.purgatory.close({ pending })).toHaveLength(4);
  for (const again of MODES) expect(fixture.purgatory.close({ pending: again })).toEqual([]);
  expect(fixture.log).toHaveLength(pending === 'drop' ? 0 : 4);
});

test('Symbol.dispose closes a purgatory', ({ fixture }) => {
  waiting(fixture);
  fixture.purgatory[Symbol.dispose]();
  expect(fixture.log).toHaveLength(4);
  expect(fixture.purgatory.close()).toEqual([]);
});

test.each(MODES)(
  'after close with %s tryCompleteElseWatch and wait fail with ERR_PURGATORY_CLOSED',
  async (pending) => {
    const fixture = new Fixture();
    fixture.purgatory.close({ pending });
    const operation = fixture.operation('a', { holds: true, delayMs: 5 });
    const error = thrownBy(() => fixture.purgatory.tryCompleteElseWatch(operation, ['x']));
    expect(error).toMatchObject({
      ...{ name: 'EscapementError', code: 'ERR_PURGATORY_CLOSED' },
      op: 'DelayedOperationPurgatory.tryCompleteElseWatch',
    });
    expect((error as Error).message).toContain("'test'");
    const wait = fixture.purgatory.wait(['x'], () => expect.fail(), { timeoutMs: 5 });
    await expect(wait).rejects.toMatchObject({
      code: 'ERR_PURGATORY_CLOSED',
      op: 'DelayedOperationPurgatory.wait',
    });
    expect([operation.tries, fixture.gauges()]).toEqual([0, [0, 0, 0, 0]]);
  },
);

test.each(MODES)(
  'after close with %s checkAndComplete returns 0, and cancelForKey an empty array',
  (pending) => {
    const fixture = new Fixture();
    const operations = waiting(fixture);
    fixture.purgatory.close({ pending });
    for (const operation of operations) operation.holds = true;
    expect(fixture.purgatory.checkAndComplete('x')).toBe(0);
    expect(fixture.purgatory.cancelForKey('x')).toEqual([]);
    expect(operations.map(({ tries }) => tries)).toEqual([2, 2, 2, 2]);
  },
);

test.each(MODES)(
  'a purgatory that is closed from inside a tryComplete, %s, checks no other operation and no queued key',
  (pending) => {
    const fixture = new Fixture();
    let returned: unknown;
    const closer = fixture.watch('closer', 'x', {
      onTry: (self) => {
        if (self.tries !== 3) return;
        fixture.purgatory.checkAndComplete('y');
        returned = fixture.purgatory.close({ pending });
        self.holds = true;
      },
    });
    const [sibling, inLine] = [fixture.watch('sibling', 'x'), fixture.watch('inLine', 'y')];
    const completed = fixture.purgatory.checkAndComplete('x');
    expect(returned).toEqual([closer, sibling, inLine]);
    expect([sibling.tries, inLine.tries]).toEqual([2, 2]);
    expect(fixture.log).toEqual(
      pending === 'drop' ? ['closer tried'] : ['closer closed', 'sibling closed', 'inLine closed'],
    );
    expect([completed, fixture.gauges()]).toEqual([pending === 'drop' ? 1 : 0, [0, 0, 0, 0]]);
  },
);

test('a purgatory that is closed from inside the first try throws ERR_PURGATORY_CLOSED and does not complete the operation', () => {
  const fixture = new Fixture();
  const operation = fixture.operation('a', { delayMs: 5, onTry: () => fixture.purgatory.close() });
  const error = thrownBy(() => fixture.purgatory.tryCompleteElseWatch(operation, ['x']));
  expect(error).toHaveProperty('code', 'ERR_PURGATORY_CLOSED');
  expect([operation.tries, operation.isCompleted, operation.pending]).toEqual([1, false, false]);
  expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  expect(new Fixture().purgatory.tryCompleteElseWatch(operation, ['x'])).toBe(false);
});

test('a purgatory that is closed by the iterable of the keys throws ERR_PURGATORY_CLOSED and does not try the operation', () => {
  const fixture = new Fixture();
  function* keys(): Generator<string> {
    fixture.purgatory.close();
    yield 'x';
  }
  const operation = fixture.operation('a', { holds: true });
  const error = thrownBy(() => fixture.purgatory.tryCompleteElseWatch(operation, keys()));
  expect(error).toHaveProperty('code', 'ERR_PURGATORY_CLOSED');
  expect([operation.tries, operation.isCompleted]).toEqual([0, false]);
});

test('a purgatory may be closed from inside an onComplete: of a check, of a timeout, of close itself', () => {
  for (const how of ['check', 'timeout', 'close']) {
    const fixture = new Fixture();
    const returned: unknown[] = [];
    const a = fixture.watch('a', 'x', {
      delayMs: 10,
      onComplete: () => returned.push(fixture.purgatory.close()),
    });
    const b = fixture.watch('b', 'x', { delayMs: 10 });
    a.holds = true;
    if (how === 'check') expect(fixture.purgatory.checkAndComplete('x')).toBe(1);
    else if (how === 'timeout') fixture.clock.advance(10);
    else expect(fixture.purgatory.close()).toEqual([a, b]);
    expect(returned).toEqual([how === 'close' ? [] : [b]]);
    expect(fixture.log).toContain('b closed');
    expect(fixture.gauges()).toEqual([0, 0, 0, 0]);
  }
});

test('an onComplete that close runs finds the purgatory consistent, with the later operations in it', () => {
  const fixture = new Fixture();
  const seen: number[] = [];
  for (const name of ['a', 'b', 'c']) {
    fixture.watch(name, 'xy', {
      onComplete: () => {
        checkPurgatory(fixture.purgatory);
        seen.push(fixture.purgatory.watched);
      },
    });
  }
  fixture.purgatory.close();
  expect(seen).toEqual([4, 2, 0]);
});

test('an onComplete that close runs may force the next operation', ({ fixture }) => {
  const b = fixture.operation('b');
  const a = fixture.watch('a', 'x', { onComplete: () => b.forceComplete() });
  fixture.purgatory.tryCompleteElseWatch(b, ['x']);
  expect(fixture.purgatory.close()).toEqual([a, b]);
  expect(fixture.log).toEqual(['a closed', 'b forced']);
});

test('an onComplete that close runs can neither check nor cancel the next operation', ({ fixture }) => {
  const { purgatory } = fixture;
  const returned: unknown[] = [];
  const b = fixture.operation('b');
  fixture.watch('a', 'x', {
    onComplete: () => {
      b.holds = true;
      returned.push(purgatory.checkAndComplete('x'), purgatory.cancelForKey('x'), purgatory.cancel(b));
    },
  });
  purgatory.tryCompleteElseWatch(b, ['x']);
  purgatory.close();
  expect(returned).toEqual([0, [], false]);
  expect(fixture.log).toEqual(['a closed', 'b closed']);
});

test('close closes the timer of the purgatory itself', () => {
  const close = vi.spyOn(SystemTimer.prototype, 'close');
  new DelayedOperationPurgatory('test').close();
  expect(close).toHaveBeenCalledOnce();
  close.mockRestore();
});
