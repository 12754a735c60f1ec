/**
 * What the harness sends: the options of Kafka's harness, its pre-drawn samples, and the stream of requests made of them.
 *
 * As in Kafka, a million latencies and a million intervals between arrivals are drawn beforehand, in whole
 * milliseconds. A request takes a random element of each, which is cheap while the clock runs.
 */
import { MS_PER_S } from '../lib/part.ts';
import { SeededRandom } from '../lib/random.ts';

/**
 * How a request completes at the end of its latency:
 *
 * - `'force'`: the harness calls `forceComplete`, as Kafka's does. All requests have the same keys.
 * - `'check'`: it calls `checkAndComplete` with the request's first key, as a program does. Every request has its own
 *   keys, drawn from the key space: with common keys, every check would try all pending requests.
 */
export type CompleteBy = 'force' | 'check';

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
  readonly completeBy: CompleteBy;
}

export interface Workload {
  readonly options: WorkloadOptions;
  readonly latencies: Float64Array;
  readonly intervals: Float64Array;
  readonly keySpace: readonly string[];
}

/** Independent streams have seeds that are far apart. */
const LATENCY_SEED = 20_260_101;
const INTERVAL_SEED = LATENCY_SEED + 1_000_003;
const PICK_SEED = LATENCY_SEED + 2_000_003;
const KEY_SEED = LATENCY_SEED + 3_000_017;

export function prepareWorkload(options: WorkloadOptions): Workload {
  return {
    options,
    latencies: drawLatencies(options.pct50Ms, options.pct75Ms, LATENCY_SEED),
    intervals: drawIntervals(options.ratePerS, INTERVAL_SEED),
    keySpace: Array.from({ length: options.keySpaceSize }, (_, index) => `fakeKey${index}`),
  };
}

/** Returns the share of requests that should expire: those whose latency is the timeout or longer. */
export function expiredShareInTheory({ pct50Ms, pct75Ms, timeoutMs }: WorkloadOptions): number {
  return new LogNormal(pct50Ms, pct75Ms).shareFrom(Math.ceil(timeoutMs));
}

/** Half a percentage point. */
const SHARE_TOLERANCE = 0.005;
/** For short runs: one in sixteen thousand deviates by more standard deviations by chance. */
const DEVIATIONS = 4;

/** Returns the tolerated deviation of the expired share from theory. */
export function toleratedShare(theory: number, requests: number): number {
  return Math.max(SHARE_TOLERANCE, DEVIATIONS * Math.sqrt((theory * (1 - theory)) / requests));
}

/** The requests in order of arrival, the same for every contestant. */
export class RequestStream {
  readonly #workload: Workload;
  readonly #picks = new SeededRandom(PICK_SEED);
  readonly #keyPicks = new SeededRandom(KEY_SEED);
  readonly #commonKeys: readonly string[] | undefined;
  #arrivesAtMs = 0;
  /** Number of requests taken, which is also the number of the next one. */
  taken = 0;
  /** Arrival of the last request taken; 0 before the first. */
  lastArrivalMs = 0;
  /** The latency of the next request, in whole milliseconds. */
  latencyMs = 0;

  constructor(workload: Workload) {
    this.#workload = workload;
    if (workload.options.completeBy === 'force') this.#commonKeys = this.#drawKeys();
    this.#pick();
  }

  /** Arrival of the next request, in whole milliseconds from the start; `Infinity` if there is none. */
  get arrivesAtMs(): number {
    return this.taken === this.#workload.options.num ? Number.POSITIVE_INFINITY : this.#arrivesAtMs;
  }

  /** Returns the keys of the next request. Call it once for each. */
  takeKeys(): readonly string[] {
    return this.#commonKeys ?? this.#drawKeys();
  }

  /** Moves to the next request. None is skipped, however late it is: a slow contestant falls behind. */
  advance(): void {
    this.lastArrivalMs = this.#arrivesAtMs;
    this.taken++;
    this.#pick();
  }

  #pick(): void {
    const { intervals, latencies } = this.#workload;
    this.#arrivesAtMs += intervals[this.#picks.nextInt(intervals.length)] ?? 0;
    this.latencyMs = latencies[this.#picks.nextInt(latencies.length)] ?? 0;
  }

  /** All different, unlike Kafka's: an entry that is watched twice would look like a dead one. */
  #drawKeys(): string[] {
    const { keySpace, options } = this.#workload;
    const keys: string[] = [];
    while (keys.length < options.keys) {
      const key = keySpace[this.#keyPicks.nextInt(keySpace.length)] as string;
      if (!keys.includes(key)) keys.push(key);
    }
    return keys;
  }
}

/** Number of samples of each kind, as in Kafka. */
const POOL_SIZE = 1_000_000;

/** Lognormal, truncated to whole milliseconds. */
export function drawLatencies(pct50: number, pct75: number, seed: number, size = POOL_SIZE): Float64Array {
  const random = new SeededRandom(seed);
  const distribution = new LogNormal(pct50, pct75);
  return Float64Array.from({ length: size }, () => Math.trunc(distribution.draw(random)));
}

/**
 * Exponential. The fraction that truncation cuts off is carried to the next sample, so that the mean does not change.
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

export function describeLatencies(pool: Float64Array): Record<'pct75' | 'pct50' | 'min' | 'max', number> {
  const sorted = pool.toSorted();
  const at = (place: number): number => sorted[Math.trunc(place)] ?? Number.NaN;
  const { length } = sorted;
  return { pct75: at(length * 0.75), pct50: at(length * 0.5), min: at(0), max: at(length - 1) };
}

export function describeIntervals(pool: Float64Array): Record<'ratePerS' | 'min' | 'max', number> {
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
