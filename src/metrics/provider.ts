import { requireMethods } from '../core/validate.ts';

/**
 * Receives the measurements of the parts of this package; an adapter passes them on to a metrics library.
 *
 * Names follow the system that each part is modelled on; values are in the unit that the name ends in.
 *
 * `inc`, `set` and `observe` are called in the middle of operations. So they must not call the part that they measure: a work queue would
 * queue an item twice that its counter adds. What is to follow from a measurement belongs in a later turn (`queueMicrotask`).
 */
export interface MetricsProvider {
  /** Creates a number that only grows. */
  counter(
    name: string,
    help: string,
    labels?: Record<string, string>,
  ): {
    /** Adds `by`, which defaults to 1. */
    inc(by?: number): void;
  };
  /** Creates a number that is set. */
  gauge(
    name: string,
    help: string,
    labels?: Record<string, string>,
  ): {
    /** Replaces the value. */
    set(value: number): void;
  };
  /** Creates a number that is read when the metrics are collected, at no cost before that. */
  observableGauge(
    name: string,
    help: string,
    read: () => number,
    labels?: Record<string, string>,
  ): {
    /** Stops reading: called when the object that is measured closes. */
    remove(): void;
  };
  /** Creates a distribution; `buckets` are inclusive upper bounds, ascending. */
  histogram(
    name: string,
    help: string,
    buckets: readonly number[],
    labels?: Record<string, string>,
  ): {
    /** Counts one value. */
    observe(value: number): void;
  };
}

const METHODS: readonly (keyof MetricsProvider)[] = ['counter', 'observableGauge', 'histogram'];

export function requireMetrics(argument: string, value: unknown): void {
  requireMethods(argument, 'a MetricsProvider', METHODS, value);
}
