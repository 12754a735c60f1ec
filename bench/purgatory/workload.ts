/**
 * What the harness sends: the options of Kafka's harness, and the arrivals and latencies drawn from them beforehand, in whole
 * milliseconds, the same for every contestant. All requests have the same keys, as in Kafka.
 */
import { MS_PER_S } from '../lib/part.ts';
import { SeededRandom } from '../lib/random.ts';

export interface WorkloadOptions {
  /** Number of requests. */
  readonly num: number;
  readonly ratePerS: number;
  readonly timeoutMs: number;
  /** Percentiles of the latency. */
  readonly pct50Ms: number;
  readonly pct75Ms: number;
  /** Number of keys of a request, all different. */
  readonly keys: number;
  /** Number of distinct keys. */
  readonly keySpaceSize: number;
}

export interface Workload {
  readonly options: WorkloadOptions;
  /** Time of each request from the start, ascending. */
  readonly arrivalsMs: Float64Array;
  readonly latenciesMs: Float64Array;
  readonly keys: readonly string[];
}

export function prepareWorkload(options: WorkloadOptions): Workload {
  const { num, ratePerS, pct50Ms, pct75Ms, keys, keySpaceSize } = options;
  const random = new SeededRandom();
  const latency = new LogNormal(pct50Ms, pct75Ms);
  let sumMs = 0;
  /** Intervals are exponential. Their sum is truncated, not each of them, so that the rate stays. */
  const nextArrivalMs = (): number => {
    sumMs += (-Math.log(1 - random.next()) * MS_PER_S) / ratePerS;
    return Math.trunc(sumMs);
  };
  const chosen = new Set<string>();
  // All different, unlike Kafka's: an entry that is watched twice would look like a dead one.
  while (chosen.size < keys) chosen.add(`fakeKey${random.nextInt(keySpaceSize)}`);
  return {
    options,
    arrivalsMs: Float64Array.from({ length: num }, nextArrivalMs),
    latenciesMs: Float64Array.from({ length: num }, () => Math.trunc(latency.draw(random))),
    keys: [...chosen],
  };
}

/** Returns the share of requests that should expire: those whose latency is the timeout or longer. */
export function expiredShareInTheory({ pct50Ms, pct75Ms, timeoutMs }: WorkloadOptions): number {
  return new LogNormal(pct50Ms, pct75Ms).shareFrom(Math.ceil(timeoutMs));
}

/** The 75th percentile of the standard normal distribution; the digits are Kafka's. */
const NORMAL_75TH = 0.67449;

/** The distribution of latencies, given by two percentiles as Kafka's harness takes them. */
export class LogNormal {
  /** Mean and standard deviation of the logarithm. */
  readonly mu: number;
  readonly sigma: number;

  constructor(pct50: number, pct75: number) {
    this.mu = Math.log(pct50);
    this.sigma = (Math.log(pct75) - this.mu) / NORMAL_75TH;
  }

  draw(random: SeededRandom): number {
    return Math.exp(random.nextGaussian() * this.sigma + this.mu);
  }

  /** Returns the share of values that are `bound` or more. */
  shareFrom(bound: number): number {
    if (bound <= 0) return 1;
    return 1 - normalBelow((Math.log(bound) - this.mu) / this.sigma);
  }
}

/** Share of a standard normal distribution below `x`. Abramowitz and Stegun 26.2.17, with an error of at most 7.5e-8. */
function normalBelow(x: number): number {
  const t = 1 / (1 + 0.2316419 * Math.abs(x));
  const density = Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
  const polynomial =
    t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return x >= 0 ? 1 - density * polynomial : density * polynomial;
}
