/**
 * Where measurements go. The parts of this package call it; nothing here knows Prometheus or OpenTelemetry.
 * Names follow the system each part is modelled on; values are in the unit that the name ends in.
 */
export interface MetricsProvider {
  /** A number that only grows. */
  counter(name: string, help: string, labels?: Record<string, string>): { inc(by?: number): void };
  /** A number that is set. */
  gauge(name: string, help: string, labels?: Record<string, string>): { set(value: number): void };
  /** A number that is read when somebody asks for it, at no cost before that. */
  observableGauge(
    name: string,
    help: string,
    read: () => number,
    labels?: Record<string, string>,
  ): { remove(): void };
  /** A distribution; `buckets` are inclusive upper bounds, ascending. */
  histogram(
    name: string,
    help: string,
    buckets: readonly number[],
    labels?: Record<string, string>,
  ): { observe(value: number): void };
}

const nothing = (): void => undefined;

/** Measures nothing. The default everywhere. */
export const noopMetrics: MetricsProvider = {
  counter: () => ({ inc: nothing }),
  gauge: () => ({ set: nothing }),
  observableGauge: () => ({ remove: nothing }),
  histogram: () => ({ observe: nothing }),
};
