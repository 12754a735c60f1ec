/** What the harness sends: the options of Kafka's, and the stream of requests that follows from them. */
import { LogNormal } from './lognormal.ts';
import { drawIntervals, drawLatencies } from './sample-pools.ts';
import { SeededRandom } from './seeded-random.ts';

/**
 * How a request completes whose latency is over:
 *
 * - `'force'`: the harness calls `forceComplete`, as Kafka's does. All requests have the same keys.
 * - `'check'`: it calls `checkAndComplete` with the request's first key, as a program would. Every request has keys
 *   of its own, drawn from the key space: with the same ones for all, every check would look at all that wait.
 */
export type CompleteBy = 'force' | 'check';

export interface WorkloadOptions {
  /** Requests. */
  readonly num: number;
  readonly ratePerS: number;
  readonly timeoutMs: number;
  /** Percentiles of the latency. */
  readonly pct50Ms: number;
  readonly pct75Ms: number;
  /** Keys of a request, all different. */
  readonly keys: number;
  /** How many keys there are. */
  readonly keySpaceSize: number;
  readonly completeBy: CompleteBy;
}

export interface Workload {
  readonly options: WorkloadOptions;
  readonly latencies: Float64Array;
  readonly intervals: Float64Array;
  readonly keySpace: readonly string[];
}

const SEED = 20_260_101;
/** Streams that must not follow one another get seeds far apart. */
const LATENCY_SEED = SEED;
const INTERVAL_SEED = SEED + 1_000_003;
const PICK_SEED = SEED + 2_000_003;
const KEY_SEED = SEED + 3_000_017;

export function prepareWorkload(options: WorkloadOptions): Workload {
  return {
    options,
    latencies: drawLatencies(options.pct50Ms, options.pct75Ms, LATENCY_SEED),
    intervals: drawIntervals(options.ratePerS, INTERVAL_SEED),
    keySpace: Array.from({ length: options.keySpaceSize }, (_, index) => `fakeKey${index}`),
  };
}

/** The share of requests that should expire: those whose latency is the timeout or longer. */
export function expiredShareInTheory({ pct50Ms, pct75Ms, timeoutMs }: WorkloadOptions): number {
  return new LogNormal(pct50Ms, pct75Ms).shareFrom(Math.ceil(timeoutMs));
}

/** Half a percentage point. */
const SHARE_TOLERANCE = 0.005;
/** A short run draws few requests: one in sixteen thousand is farther off than that many deviations, by chance. */
const DEVIATIONS = 4;

/** How far the expired share of so many requests may be from theory. */
export function toleratedShare(theory: number, requests: number): number {
  return Math.max(SHARE_TOLERANCE, DEVIATIONS * Math.sqrt((theory * (1 - theory)) / requests));
}

/** The requests in the order they arrive. The same for every contestant. */
export class RequestStream {
  readonly #workload: Workload;
  readonly #picks = new SeededRandom(PICK_SEED);
  readonly #keyPicks = new SeededRandom(KEY_SEED);
  readonly #commonKeys: readonly string[] | undefined;
  #taken = 0;
  #arrivesAtMs = 0;
  #latencyMs = 0;

  constructor(workload: Workload) {
    this.#workload = workload;
    if (workload.options.completeBy === 'force') this.#commonKeys = this.#drawKeys();
    this.#pick();
  }

  /** When the next request arrives, in whole milliseconds from the start; `Infinity` if there is none. */
  get arrivesAtMs(): number {
    return this.#taken === this.#workload.options.num ? Number.POSITIVE_INFINITY : this.#arrivesAtMs;
  }

  /** When the latest of those taken should have arrived; 0 before the first. */
  lastArrivalMs = 0;

  /** Requests taken so far: also the number of the next one. */
  get taken(): number {
    return this.#taken;
  }

  /** The latency of the next request, in whole milliseconds. */
  get latencyMs(): number {
    return this.#latencyMs;
  }

  /** The keys of the next request: call it once for each. */
  takeKeys(): readonly string[] {
    return this.#commonKeys ?? this.#drawKeys();
  }

  /** On to the next. However late it is, none is left out: a slow contestant falls behind. */
  advance(): void {
    this.lastArrivalMs = this.#arrivesAtMs;
    this.#taken++;
    this.#pick();
  }

  #pick(): void {
    const { intervals, latencies } = this.#workload;
    this.#arrivesAtMs += intervals[this.#picks.nextInt(intervals.length)] ?? 0;
    this.#latencyMs = latencies[this.#picks.nextInt(latencies.length)] ?? 0;
  }

  /** All different, where Kafka's may coincide: a watch entry too many would look like a dead one. */
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
