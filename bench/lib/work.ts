/** How contestants get their work: at a fixed rate, from callers, in batches; the latencies of it, and what must be done once. */
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

/** Calls `call` for the numbers `from` up to `to`, by callers that wait for each call before their next one. */
export async function callBy(
  callers: number,
  from: number,
  to: number,
  call: (number: number) => Promise<unknown>,
): Promise<void> {
  let next = from;
  const callAll = async (): Promise<void> => {
    while (next < to) await call(next++);
  };
  await Promise.all(Array.from({ length: callers }, callAll));
}

/** The numbers from 0 up to `count`, at most `size` together. */
export function* batches(count: number, size = 1_000): Generator<number[]> {
  for (let from = 0; from < count; from += size) {
    yield Array.from({ length: Math.min(size, count - from) }, (_, index) => from + index);
  }
}

/** Clock and timer count in milliseconds, and one of them rounds up. */
const SPARE_MS = 2;

/** Holds the event loop until timers with that delay, which were added just before, are due. */
export function blockUntilDue(delayMs: number): void {
  const endMs = performance.now() + delayMs + SPARE_MS;
  while (performance.now() < endMs);
}

/** @param factor - of the unit of the result to the unit of the samples, which are sorted in place. */
export function latencyValues(samples: Float64Array, factor = 1): Record<string, number> {
  const sorted = samples.subarray(Math.ceil(samples.length * WARM_UP_SHARE)).sort();
  return {
    [P50]: quantileOfSorted(sorted, 0.5) * factor,
    [P99]: quantileOfSorted(sorted, 0.99) * factor,
  };
}

/** Counts completions of numbered requests: each must complete once. */
export class Tally {
  readonly #completions: Uint8Array;
  completed = 0;
  /** Resolves when the last request completes, or when `finish` is called. */
  readonly finished: Promise<void>;
  finish: () => void = () => undefined;

  constructor(size: number) {
    this.#completions = new Uint8Array(size);
    this.finished = new Promise((resolve) => {
      this.finish = resolve;
    });
  }

  complete(id: number): void {
    this.#completions[id] = (this.#completions[id] ?? 0) + 1;
    if (++this.completed === this.#completions.length) this.finish();
  }

  check(): string | undefined {
    const wrong = this.#completions.findIndex((completions) => completions !== 1);
    return wrong === -1 ? undefined : `request ${wrong} completed ${this.#completions[wrong] ?? 0} times`;
  }
}
