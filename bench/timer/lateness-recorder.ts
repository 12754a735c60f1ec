/** When each request was due, and how long after that it was called, on the same clock for every contestant. */
import { performance } from 'node:perf_hooks';
import { quantileOfSorted } from '../lib/statistics.ts';

export class LatenessRecorder {
  readonly #dueAtMs: Float64Array;
  readonly #latenessMs: Float64Array;
  readonly #size: number;
  #called = 0;
  #twice = 0;
  #finish: () => void = () => undefined;
  /** Resolves when every request was called. */
  readonly finished: Promise<void>;

  constructor(size: number) {
    this.#size = size;
    this.#dueAtMs = new Float64Array(size);
    this.#latenessMs = new Float64Array(size).fill(Number.NaN);
    this.finished = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  /** Call it before the timer is added: whoever reads the clock later still owes the whole delay. */
  expect(id: number, delayMs: number): void {
    this.#dueAtMs[id] = performance.now() + delayMs;
  }

  called(id: number): void {
    if (!Number.isNaN(this.#latenessMs[id])) this.#twice++;
    this.#latenessMs[id] = performance.now() - (this.#dueAtMs[id] ?? Number.NaN);
    if (++this.#called === this.#size) this.#finish();
  }

  /** @param mayLose - a contestant that is known to lose requests: how many is then a result, not a mistake. */
  check(mayLose: boolean): string | undefined {
    if (this.#twice > 0) return `${this.#twice} requests were called twice`;
    if (this.#called === this.#size || (mayLose && this.#called > 0)) return undefined;
    return `${this.#called} of ${this.#size} requests were called`;
  }

  /** Milliseconds, how many came before their time, and how many never came. */
  summarize(): { p50: number; p99: number; max: number; early: number; lost: number } {
    const sorted = this.#latenessMs.filter((ms) => !Number.isNaN(ms)).sort();
    return {
      p50: quantileOfSorted(sorted, 0.5),
      p99: quantileOfSorted(sorted, 0.99),
      max: quantileOfSorted(sorted, 1),
      early: sorted.filter((ms) => ms < 0).length,
      lost: this.#size - sorted.length,
    };
  }
}
