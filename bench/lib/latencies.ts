/** Latencies: work that arrives at a fixed rate, and the two metrics of its samples. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { quantileOfSorted } from './statistics.ts';

export const P50 = 'p50 latency';
export const P99 = 'p99 latency';

/** Share of the samples that are not counted, because caches are cold. */
export const WARM_UP_SHARE = 0.1;

/** Calls `add` at a fixed rate. The host's timers have a resolution of a millisecond: calls that are due come at once. */
export async function pace(count: number, perMs: number, add: (index: number) => void): Promise<void> {
  const startMs = performance.now();
  for (let added = 0; added < count;) {
    await sleep(1);
    const due = Math.min(Math.floor((performance.now() - startMs) * perMs), count);
    for (; added < due; added++) add(added);
  }
}

/** @param factor - of the unit of the result to the unit of the samples, which are sorted in place. */
export function latencyValues(samples: Float64Array, factor = 1): Record<string, number> {
  const sorted = samples.subarray(Math.ceil(samples.length * WARM_UP_SHARE)).sort();
  return {
    [P50]: quantileOfSorted(sorted, 0.5) * factor,
    [P99]: quantileOfSorted(sorted, 0.99) * factor,
  };
}
