import type { MetricsProvider } from 'escapement';
import { expect } from 'vitest';

type Labels = Record<string, string>;

/** Remembers everything it is told, by name. */
export class RecordingMetrics implements MetricsProvider {
  readonly counts = new Map<string, number>();
  readonly observed = new Map<string, number[]>();
  readonly buckets = new Map<string, readonly number[]>();
  readonly readers = new Map<string, () => number>();
  readonly labels: Labels[] = [];
  /** Names of which every call throws. */
  readonly broken = new Set<string>();

  counter(name: string, _help: string, labels: Labels = {}): { inc(by?: number): void } {
    this.labels.push(labels);
    this.counts.set(name, 0);
    return {
      inc: (by = 1) => {
        this.#requireWhole(name);
        this.counts.set(name, (this.counts.get(name) ?? 0) + by);
      },
    };
  }

  gauge(): { set(value: number): void } {
    return expect.fail('nothing is set');
  }

  observableGauge(name: string, _help: string, read: () => number, labels: Labels = {}): { remove(): void } {
    this.#requireWhole(name);
    this.labels.push(labels);
    this.readers.set(name, read);
    return { remove: () => this.readers.delete(name) };
  }

  histogram(
    name: string,
    _help: string,
    buckets: readonly number[],
    labels: Labels = {},
  ): { observe(value: number): void } {
    this.labels.push(labels);
    this.buckets.set(name, buckets);
    const values: number[] = [];
    this.observed.set(name, values);
    return {
      observe: (value) => {
        this.#requireWhole(name);
        values.push(value);
      },
    };
  }

  /** The current values of the gauges. */
  gauges(): Record<string, number> {
    return Object.fromEntries(Array.from(this.readers, ([name, read]) => [name, read()]));
  }

  #requireWhole(name: string): void {
    if (this.broken.has(name)) throw new Error(`${name} is broken`);
  }
}
