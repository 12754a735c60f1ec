import type { HistoryJson } from './dashboard-json.ts';

/** What is kept of a queue at one time. */
export type Sample = { readonly [Column in keyof Omit<HistoryJson, 'atMs'>]: number };

const COLUMNS = [
  'processedPerS',
  'failedPerS',
  'pending',
  'active',
  'latencyMs',
] as const satisfies readonly (keyof Sample)[];

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
      const values = new Float32Array(this.#times.length * COLUMNS.length).fill(NaN);
      write(values, at, sample);
      this.#series.set(queue, values);
    }
  }

  /** Returns the samples of a queue since a time, the oldest first. After the clock was set back, those of a time that is shown again are left out. */
  read(queue: string, sinceMs: number): HistoryJson {
    const values = this.#series.get(queue) ?? [];
    const columns: Record<(typeof COLUMNS)[number] | 'atMs', number[]> = {
      ...{ atMs: [], processedPerS: [], failedPerS: [], pending: [], active: [], latencyMs: [] },
    };
    const length = this.#times.length;
    let beforeMs = Infinity;
    for (let nth = this.#next - 1; nth >= Math.max(0, this.#next - length); nth--) {
      const at = nth % length;
      const atMs = this.#times[at] ?? 0;
      const isKept = atMs >= sinceMs && atMs < beforeMs;
      if (!isKept || Number.isNaN(values[at * COLUMNS.length] ?? NaN)) continue;
      beforeMs = atMs;
      columns.atMs.push(atMs);
      for (const [column, name] of COLUMNS.entries()) {
        columns[name].push(rounded(values[at * COLUMNS.length + column] ?? 0));
      }
    }
    for (const column of Object.values(columns)) column.reverse();
    return columns;
  }
}

function write(values: Float32Array, at: number, sample: Sample | undefined): void {
  for (const [nth, column] of COLUMNS.entries()) values[at * COLUMNS.length + nth] = sample?.[column] ?? NaN;
}

/** A float of 32 bits has seven digits; the others are noise. */
function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
