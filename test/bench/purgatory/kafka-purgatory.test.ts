import { expect, test } from 'vitest';
import { ManualClock, SystemTimer } from '../../../src/index.ts';
import { KafkaOperation, KafkaPurgatory } from '../../../bench/purgatory/kafka-purgatory.ts';

class Operation extends KafkaOperation {
  holds = false;
  tries = 0;
  completions = 0;
  expirations = 0;

  tryComplete(): boolean {
    this.tries++;
    return this.holds && this.forceComplete();
  }

  onComplete(): void {
    this.completions++;
  }

  onExpiration(): void {
    this.expirations++;
  }
}

function setUp(purgeInterval?: number): {
  purgatory: KafkaPurgatory;
  advanceTo: (timeMs: number) => void;
} {
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock, autoStart: false });
  const purgatory = new KafkaPurgatory({ timer, ...(purgeInterval === undefined ? {} : { purgeInterval }) });
  const advanceTo = (timeMs: number): void => {
    clock.advance(timeMs - clock.now());
    timer.poll();
    purgatory.afterAdvance();
  };
  return { purgatory, advanceTo };
}

test('a new operation is tried twice, or once if it completes at once', () => {
  const { purgatory } = setUp();
  const waits = new Operation(10);
  expect(purgatory.tryCompleteElseWatch(waits, ['a', 'b'])).toBe(false);
  const done = new Operation(10);
  done.holds = true;
  expect(purgatory.tryCompleteElseWatch(done, ['a', 'b'])).toBe(true);
  expect([waits.tries, done.tries, purgatory.watched, purgatory.numDelayed]).toEqual([2, 1, 2, 1]);
});

test('an operation that is completed by one key stays listed under the others', () => {
  const { purgatory } = setUp();
  const operation = new Operation(10);
  purgatory.tryCompleteElseWatch(operation, ['a', 'b']);
  operation.holds = true;
  expect(purgatory.checkAndComplete('a')).toBe(1);
  expect([operation.completions, purgatory.watched, purgatory.numDelayed]).toEqual([1, 1, 0]);
  // The check of the other key neither tries nor counts a completed operation.
  const { tries } = operation;
  expect(purgatory.checkAndComplete('b')).toBe(0);
  expect([operation.tries - tries, operation.completions, purgatory.watched]).toEqual([0, 1, 0]);
});

test('a forced operation completes once and stays listed', () => {
  const { purgatory } = setUp();
  const operation = new Operation(10);
  purgatory.tryCompleteElseWatch(operation, ['a']);
  expect([operation.forceComplete(), operation.forceComplete()]).toEqual([true, false]);
  expect([operation.completions, purgatory.watched, purgatory.numDelayed]).toEqual([1, 1, 0]);
});

test('purges run late, by an estimate of the number of dead operations', () => {
  const { purgatory, advanceTo } = setUp(3);
  const operations = [10, 11, 12, 13, 14, 15].map((delayMs) => new Operation(delayMs));
  for (const operation of operations) purgatory.tryCompleteElseWatch(operation, ['A', 'B']);
  const seen = [10, 11, 12, 13, 14, 15].map((timeMs) => {
    advanceTo(timeMs);
    return [purgatory.numDelayed, purgatory.watched, purgatory.purges];
  });
  expect(seen).toEqual([
    [5, 12, 0],
    [4, 12, 0],
    [3, 12, 0],
    [2, 4, 1],
    [1, 4, 1],
    [0, 4, 1],
  ]);
  expect(operations.every(({ completions, expirations }) => completions === 1 && expirations === 1)).toBe(
    true,
  );
});
