import { expect, test } from 'vitest';
import {
  describeIntervals,
  describeLatencies,
  drawIntervals,
  drawLatencies,
} from '../../../bench/purgatory/sample-pools.ts';

const SIZE = 200_000;

test('latencies are whole milliseconds with the percentiles asked for', () => {
  const pool = drawLatencies(200, 400, 1, SIZE);
  expect(pool.every((latency) => Number.isInteger(latency) && latency >= 0)).toBe(true);
  const { pct50, pct75, min, max } = describeLatencies(pool);
  expect(pct50 / 200).toBeCloseTo(1, 1);
  expect(pct75 / 400).toBeCloseTo(1, 1);
  expect(min).toBe(Math.min(...pool.slice(0, 1_000), min));
  expect(max).toBeGreaterThan(pct75);
});

test('intervals are whole milliseconds, and what is cut off is carried on: the rate stays', () => {
  const pool = drawIntervals(100_000, 1, SIZE);
  expect(pool.every(Number.isInteger)).toBe(true);
  // Cut off and forgotten, every one of them would be 0.
  const { ratePerS, min, max } = describeIntervals(pool);
  expect(ratePerS / 100_000).toBeCloseTo(1, 1);
  expect({ min, max }).toEqual({ min: 0, max: 1 });
});

test('long intervals are exponential: 1 / e of them are longer than the mean', () => {
  const pool = drawIntervals(1, 1, SIZE);
  const longer = pool.filter((interval) => interval >= 1_000).length / SIZE;
  expect(longer).toBeCloseTo(1 / Math.E, 2);
});
