import {
  BucketRateLimiter,
  DelayedOperationPurgatory,
  DelayingQueue,
  type EscapementError,
  ManualClock,
  SystemTimer,
} from 'escapement';
import { expect, it, vi } from 'vitest';
import { type Labels, SummedReads } from '../../src/metrics/summed-reads.ts';
import { TestOperation } from '../purgatory/support/fixture.ts';
import { throwing } from '../timer/support/errors.ts';
import { RecordingMetrics } from './recording-metrics.ts';

it('a provider reads the size of a timer, and counts its wake-ups and tasks by its name', () => {
  const metrics = new RecordingMetrics();
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock, metrics, name: 'requests' });
  for (const delayMs of [10, 10, 20, 30]) timer.schedule(delayMs, () => undefined, 0);
  expect(metrics.read('timer_size')).toBe(4);
  clock.advance(20);
  expect(metrics.read('timer_size')).toBe(1);
  expect(metrics.counts.get('timer_wakeups_total')).toBe(2);
  expect(metrics.counts.get('timer_tasks_run_total')).toBe(3);
  for (const labels of metrics.labels) expect(labels).toEqual({ timer: 'requests' });
});

it('a timer that is closed removes its gauge', () => {
  const metrics = new RecordingMetrics();
  new SystemTimer({ clock: new ManualClock(), metrics }).close();
  expect(metrics.readers.size).toBe(0);
});

/** Virtual time that can be wrong. */
class WrongClock extends ManualClock {
  isWrong = false;

  override now(): number {
    return this.isWrong ? NaN : super.now();
  }
}

const INVALID = expect.objectContaining({ code: 'ERR_CLOCK_INVALID' }) as Error;

it('a purgatory completes its operations and measures nothing', () => {
  const clock = new WrongClock();
  const metrics = new RecordingMetrics();
  const purgatory = new DelayedOperationPurgatory<string>('test', { clock, metrics, timerEnabled: false });
  clock.isWrong = true;
  const operation = new TestOperation('a');
  expect(purgatory.tryCompleteElseWatch(operation, ['x'])).toBe(false);
  operation.holds = true;
  expect([purgatory.checkAndComplete('x'), purgatory.watched]).toEqual([1, 0]);
  expect([...metrics.observed.values()].flat()).toEqual([]);
});

it('a work queue delivers its items and measures nothing; addAfter throws and changes nothing', async () => {
  const clock = new WrongClock();
  const metrics = new RecordingMetrics();
  const queue = new DelayingQueue<string>({ clock, metrics });
  clock.isWrong = true;
  queue.add('a');
  for await (const lease of queue) {
    expect(lease.item).toBe('a');
    lease.done();
    break;
  }
  expect([...metrics.observed.values()].flat()).toEqual([]);
  expect(() => queue.addAfter('b', 10)).toThrow(INVALID);
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
  expect(() => limiter.when('a')).toThrow(INVALID);
  expect(() => new BucketRateLimiter({ ratePerSecond: 10, burst: 1, clock })).toThrow(INVALID);
  clock.isWrong = false;
  expect([limiter.when('a'), limiter.when('a')]).toEqual([0, 100]);
});

const silent = (): void => undefined;

function reader(value: unknown, onError: (error: EscapementError) => void = silent): never {
  return { read: () => value, onError } as never;
}

function report(reads: SummedReads): [Labels, number][] {
  const seen: [Labels, number][] = [];
  reads.report((labels, sum) => seen.push([labels, sum]));
  return seen;
}

it('readers of equal labels are added up, in whatever order the labels are given', () => {
  const reads = new SummedReads('m', false);
  reads.add({ a: '1', b: '2' }, reader(3));
  reads.add({ b: '2', a: '1' }, reader(4));
  reads.add({ a: '1' }, reader(5));
  expect(report(reads)).toEqual([
    [{ a: '1', b: '2' }, 7],
    [{ a: '1' }, 5],
  ]);
});

it('labels are different although a value looks like a separator', () => {
  const reads = new SummedReads('m', false);
  reads.add({ a: 'x","b:y', b: 'z' }, reader(1));
  reads.add({ a: 'x', b: 'y","b:z' }, reader(2));
  expect(report(reads).map(([, sum]) => sum)).toEqual([1, 2]);
});

it('a series is removed with its last reader, and removing twice changes nothing', () => {
  const reads = new SummedReads('m', false);
  const removeFirst = reads.add({}, reader(1));
  const removeSecond = reads.add({}, reader(2));
  removeFirst();
  removeFirst();
  expect(report(reads)).toEqual([[{}, 2]]);
  removeSecond();
  expect(report(reads)).toEqual([]);
  reads.add({}, reader(4));
  removeSecond();
  expect(report(reads)).toEqual([[{}, 4]]);
});

it('with endsAtZero a series without readers is reported once as 0, if it was ever reported', () => {
  const reads = new SummedReads('m', true);
  reads.add({ name: 'unseen' }, reader(1))();
  const remove = reads.add({ name: 'seen' }, reader(1));
  report(reads);
  remove();
  expect(report(reads)).toEqual([[{ name: 'seen' }, 0]]);
  expect(report(reads)).toEqual([]);
});

it('a series that has a reader again is not reported as 0', () => {
  const reads = new SummedReads('m', true);
  const remove = reads.add({}, reader(1));
  report(reads);
  remove();
  reads.add({}, reader(5));
  expect(report(reads)).toEqual([[{}, 5]]);
});

it('a reader can remove itself while it is read', () => {
  const reads = new SummedReads('m', true);
  const remove = reads.add({}, { read: () => (remove(), 3), onError: silent });
  expect([report(reads), report(reads), report(reads)]).toEqual([[[{}, 3]], [[{}, 0]], []]);
});

it('a reader can add series, which are in the next report', () => {
  const reads = new SummedReads('m', false);
  let made = 0;
  const read = (): number => {
    reads.add({ made: String(++made) }, { read, onError: silent });
    return 1;
  };
  reads.add({}, { read, onError: silent });
  expect([report(reads).length, report(reads).length]).toEqual([1, 2]);
});

it('a series whose reader throws is left out and reported to onError, and the others are read', () => {
  const onError = vi.fn<(error: EscapementError) => void>();
  const cause = new Error('gone');
  const reads = new SummedReads('depth', false);
  reads.add({ name: 'a "b"' }, { read: throwing(cause), onError });
  reads.add({ name: 'a "b"' }, reader(1));
  reads.add({ name: 'c' }, reader(2));
  expect(report(reads)).toEqual([[{ name: 'c' }, 2]]);
  expect(onError).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({
      code: 'ERR_METRIC_READ',
      message: 'metric depth{name="a \\"b\\""} cannot be read: gone',
      cause,
    }),
  );
});

it.each([undefined, '7', 7n, null, Promise.resolve(7)])(
  'a reader that returns %s is reported to onError',
  (value) => {
    const onError = vi.fn<(error: EscapementError) => void>();
    const reads = new SummedReads('depth', false);
    reads.add({}, reader(value, onError));
    expect(report(reads)).toEqual([]);
    expect(onError.mock.calls[0]?.[0].message).toMatch(
      /^metric depth\{\} cannot be read: the value is of type/,
    );
  },
);
