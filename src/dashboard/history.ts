import { SAMPLED, type HistoryJson } from './dashboard-json.ts';

export type Sample = Readonly<Record<(typeof SAMPLED)[number], number>>;

/** Name of the series of all queues together: no queue is called so. */
export const ALL_QUEUES = '';

/**
 * The last samples of some queues, in rings of the same length.
 *
 *     times    [ 12 │ 13 │ 14 │ 10 │ 11 ]      next = 3
 *     'mail'   [  …  five numbers a time … ]   NaN where the queue was not sampled
 *
 * A queue takes 20 bytes a sample: 500 queues with 300 + 1 440 samples are 17 MB.
 */
export class History {
  readonly #times: Float64Array;
  readonly #series = new Map<string, Float32Array>();
  readonly #maxQueues: number;
  #next = 0;

  constructor(length: number, maxQueues: number) {
    this.#times = new Float64Array(length);
    this.#maxQueues = maxQueues;
  }

  /**
   * Adds the samples of a time. Those of queues beyond the maximum are left out. A queue that was removed is dropped with its last sample, or
   * when there are as many queues as there may be.
   */
  add(atMs: number, samples: ReadonlyMap<string, Sample>): void {
    const at = this.#next % this.#times.length;
    this.#next++;
    this.#times[at] = atMs;
    const isFull = this.#series.size > this.#maxQueues;
    for (const [queue, values] of this.#series) {
      const sample = samples.get(queue);
      write(values, at, sample);
      if (sample === undefined && (isFull || values.every(Number.isNaN))) this.#series.delete(queue);
    }
    for (const [queue, sample] of samples) {
      if (this.#series.has(queue) || (this.#series.size > this.#maxQueues && queue !== ALL_QUEUES)) continue;
      const values = new Float32Array(this.#times.length * SAMPLED.length).fill(NaN);
      write(values, at, sample);
      this.#series.set(queue, values);
    }
  }

  /** Returns the samples of a queue since a time, the oldest first. After the clock was set back, those of a time that is shown again are left out. */
  read(queue: string, sinceMs: number): HistoryJson {
    const values = this.#series.get(queue) ?? [];
    const places: number[] = [];
    const length = this.#times.length;
    let beforeMs = Infinity;
    for (let nth = this.#next - 1; nth >= Math.max(0, this.#next - length); nth--) {
      const at = nth % length;
      const atMs = this.#times[at] ?? 0;
      const isKept = atMs >= sinceMs && atMs < beforeMs;
      if (!isKept || Number.isNaN(values[at * SAMPLED.length] ?? NaN)) continue;
      beforeMs = atMs;
      places.push(at);
    }
    places.reverse();
    const column = (nth: number): readonly number[] =>
      places.map((at) => rounded(values[at * SAMPLED.length + nth] ?? 0));
    const columns = Object.fromEntries(SAMPLED.map((name, nth) => [name, column(nth)] as const));
    return { ...(columns as Omit<HistoryJson, 'atMs'>), atMs: places.map((at) => this.#times[at] ?? 0) };
  }
}

function write(values: Float32Array, at: number, sample: Sample | undefined): void {
  for (const [nth, column] of SAMPLED.entries()) values[at * SAMPLED.length + nth] = sample?.[column] ?? NaN;
}

/** A float of 32 bits has seven digits; the others are noise. */
function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
