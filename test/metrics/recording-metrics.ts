import type { MetricsProvider } from 'escapement';

type Labels = Readonly<Record<string, string>>;

/** A provider that keeps everything it receives, by name. A counter of completed operations is `name reason`. */
export class RecordingMetrics implements MetricsProvider {
  /** Sums of counters. */
  readonly counts = new Map<string, number>();
  /** Values of histograms, in their order. */
  readonly observed = new Map<string, number[]>();
  readonly buckets = new Map<string, readonly number[]>();
  /** Functions of the gauges that are not removed. */
  readonly readers = new Map<string, () => number>();
  readonly helps = new Map<string, string>();
  /** Labels of all instruments, in the order in which these were created. */
  readonly labels: Labels[] = [];
  /** Names of instruments of which every call throws. */
  readonly broken = new Set<string>();

  counter(name: string, help: string, labels: Labels = {}): { inc(by?: number): void } {
    this.#register(name, help, labels);
    const key = labels['reason'] === undefined ? name : `${name} ${labels['reason']}`;
    this.counts.set(key, 0);
    return {
      inc: (by = 1) => {
        this.#requireWhole(name);
        this.counts.set(key, (this.counts.get(key) ?? 0) + by);
      },
    };
  }

  gauge(): { set(value: number): void } {
    throw new Error('no part of the library sets a gauge');
  }

  observableGauge(name: string, help: string, read: () => number, labels: Labels = {}): { remove(): void } {
    this.#requireWhole(name);
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
    return {
      observe: (value) => {
        this.#requireWhole(name);
        values.push(value);
      },
    };
  }

  /** Returns the value of a gauge; undefined once it is removed. */
  read(name: string): number | undefined {
    return this.readers.get(name)?.();
  }

  /** Returns the values of all gauges. */
  gauges(): Record<string, number> {
    return Object.fromEntries(Array.from(this.readers, ([name, read]) => [name, read()]));
  }

  #register(name: string, help: string, labels: Labels): void {
    this.helps.set(name, help);
    this.labels.push(labels);
  }

  #requireWhole(name: string): void {
    if (this.broken.has(name)) throw new Error(`${name} is broken`);
  }
}
