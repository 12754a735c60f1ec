import { describe, expect, it } from 'vitest';
import {
  BucketRateLimiter,
  DelayedOperationPurgatory,
  DelayingQueue,
  ManualClock,
  type DelayedOperation,
  type MetricsProvider,
} from 'escapement';
import { noopMetrics } from './measured.ts';
import { TestOperation } from '../purgatory/support/fixture.ts';

/** Virtual time that can be wrong. */
class WrongClock extends ManualClock {
  isWrong = false;

  override now(): number {
    return this.isWrong ? NaN : super.now();
  }
}

function observing(observed: number[]): MetricsProvider {
  return { ...noopMetrics, histogram: () => ({ observe: (value) => observed.push(value) }) };
}

const INVALID = expect.objectContaining({ code: 'ERR_CLOCK_INVALID' }) as Error;

describe('while the clock is wrong', () => {
  it('a purgatory completes its operations and measures nothing', () => {
    const clock = new WrongClock();
    const observed: number[] = [];
    const purgatory = new DelayedOperationPurgatory<string, DelayedOperation>('test', {
      ...{ clock, metrics: observing(observed), timerEnabled: false },
    });
    clock.isWrong = true;
    const operation = new TestOperation('a');
    expect(purgatory.tryCompleteElseWatch(operation, ['x'])).toBe(false);
    operation.holds = true;
    expect([purgatory.checkAndComplete('x'), purgatory.watched]).toEqual([1, 0]);
    expect(observed).toEqual([]);
  });

  it('a work queue hands out its items and measures nothing; addAfter throws and changes nothing', async () => {
    const clock = new WrongClock();
    const observed: number[] = [];
    const queue = new DelayingQueue<string>({ clock, metrics: observing(observed) });
    clock.isWrong = true;
    queue.add('a');
    for await (const lease of queue) {
      expect(lease.item).toBe('a');
      lease.done();
      break;
    }
    expect(observed).toEqual([]);
    expect(() => {
      queue.addAfter('b', 10);
    }).toThrow(INVALID);
    expect([queue.length, queue.waiting]).toEqual([0, 0]);
    clock.isWrong = false;
    queue.addAfter('b', 10);
    clock.advance(10);
    expect(queue.length).toBe(1);
  });

  it('a token bucket throws and keeps its tokens', () => {
    const clock = new WrongClock();
    const limiter = new BucketRateLimiter({ ratePerSecond: 10, burst: 1, clock });
    clock.isWrong = true;
    expect(() => limiter.when()).toThrow(INVALID);
    expect(() => new BucketRateLimiter({ ratePerSecond: 10, burst: 1, clock })).toThrow(INVALID);
    clock.isWrong = false;
    expect([limiter.when(), limiter.when()]).toEqual([0, 100]);
  });
});
