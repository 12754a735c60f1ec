/**
 * Where measurements go. The parts of this package call it; nothing here knows Prometheus or OpenTelemetry.
 * Names follow the system each part is modelled on; values are in the unit that the name ends in.
 */
export interface MetricsProvider {
  /** A number that only grows. */
  counter(
    name: string,
    help: string,
    labels?: Record<string, string>,
  ): {
    /** Adds `by`, which defaults to 1. */
    inc(by?: number): void;
  };
  /** A number that is set. */
  gauge(
    name: string,
    help: string,
    labels?: Record<string, string>,
  ): {
    /** Replaces the value. */
    set(value: number): void;
  };
  /** A number that is read when somebody asks for it, at no cost before that. */
  observableGauge(
    name: string,
    help: string,
    read: () => number,
    labels?: Record<string, string>,
  ): {
    /** Stops reading: called when whatever is measured closes. */
    remove(): void;
  };
  /** A distribution; `buckets` are inclusive upper bounds, ascending. */
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

const nothing = (): void => undefined;

/** Measures nothing. The default everywhere. */
export const noopMetrics: MetricsProvider = {
  counter: () => ({ inc: nothing }),
  gauge: () => ({ set: nothing }),
  observableGauge: () => ({ remove: nothing }),
  histogram: () => ({ observe: nothing }),
};
