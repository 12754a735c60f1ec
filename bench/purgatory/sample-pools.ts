/**
 * The pre-drawn samples of Kafka's harness: a million latencies and a million intervals between arrivals, in whole
 * milliseconds. A request takes a random element of each, which is cheap while the clock runs.
 */
import { quantileOfSorted } from '../lib/statistics.ts';
import { LogNormal } from './lognormal.ts';
import { SeededRandom } from './seeded-random.ts';

/** How many samples Kafka draws of each kind. */
export const POOL_SIZE = 1_000_000;

const MS_PER_S = 1_000;

/** Lognormal, cut down to whole milliseconds. */
export function drawLatencies(pct50: number, pct75: number, seed: number, size = POOL_SIZE): Float64Array {
  const random = new SeededRandom(seed);
  const distribution = new LogNormal(pct50, pct75);
  return Float64Array.from({ length: size }, () => Math.trunc(distribution.draw(random)));
}

/**
 * Exponential. Cutting a tenth of a millisecond down to 0 would lose it: what is cut off is carried to the next
 * sample, so that the mean stays what it was.
 */
export function drawIntervals(ratePerS: number, seed: number, size = POOL_SIZE): Float64Array {
  const random = new SeededRandom(seed);
  const ratePerMs = ratePerS / MS_PER_S;
  let residue = 0;
  return Float64Array.from({ length: size }, () => {
    const interval = -Math.log(1 - random.next()) / ratePerMs + residue;
    const whole = Math.trunc(interval);
    residue = interval - whole;
    return whole;
  });
}

export interface LatencyStatistics {
  readonly pct75: number;
  readonly pct50: number;
  readonly min: number;
  readonly max: number;
}

export function describeLatencies(pool: Float64Array): LatencyStatistics {
  const sorted = pool.toSorted();
  const at = (fraction: number): number => sorted[Math.trunc(sorted.length * fraction)] ?? Number.NaN;
  return {
    pct75: at(0.75),
    pct50: at(0.5),
    min: quantileOfSorted(sorted, 0),
    max: quantileOfSorted(sorted, 1),
  };
}

export interface IntervalStatistics {
  readonly ratePerS: number;
  readonly min: number;
  readonly max: number;
}

export function describeIntervals(pool: Float64Array): IntervalStatistics {
  let sum = 0;
  let min = Number.POSITIVE_INFINITY;
  let max = 0;
  for (const interval of pool) {
    sum += interval;
    min = Math.min(min, interval);
    max = Math.max(max, interval);
  }
  return { ratePerS: (MS_PER_S * pool.length) / sum, min, max };
}
