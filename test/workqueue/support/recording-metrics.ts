import type { MetricsProvider } from 'escapement';

type Labels = Record<string, string>;

/** Remembers everything it is told, by name. */
export class RecordingMetrics implements MetricsProvider {
  readonly counts = new Map<string, number>();
  readonly observed = new Map<string, number[]>();
  readonly buckets = new Map<string, readonly number[]>();
  readonly readers = new Map<string, () => number>();
  readonly helps = new Map<string, string>();
  readonly labels: Labels[] = [];

  counter(name: string, help: string, labels: Labels = {}): { inc(by?: number): void } {
    this.#register(name, help, labels);
    this.counts.set(name, 0);
    return { inc: (by = 1) => this.counts.set(name, (this.counts.get(name) ?? 0) + by) };
  }

  gauge(): { set(value: number): void } {
    throw new Error('nothing is set');
  }

  observableGauge(name: string, help: string, read: () => number, labels: Labels = {}): { remove(): void } {
    this.#register(name, help, labels);
    this.readers.set(name, read);
    return { remove: () => this.readers.delete(name) };
  }

  histogram(
    name: string,
    help: string,
    buckets: readonly number[],
    labels: Labels = {},
  ): { observe(value: number): void } {
    this.#register(name, help, labels);
    const values: number[] = [];
    this.observed.set(name, values);
    this.buckets.set(name, buckets);
    return { observe: (value) => values.push(value) };
  }

  /** A gauge as somebody who scrapes sees it; undefined once it is gone. */
  read(name: string): number | undefined {
    return this.readers.get(name)?.();
  }

  #register(name: string, help: string, labels: Labels): void {
    this.helps.set(name, help);
    this.labels.push(labels);
  }
}
