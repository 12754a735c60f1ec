import { readClock, type Clock } from '../core/clock.ts';
import { reportUncaught } from '../core/report-uncaught.ts';
import { SECOND_MS } from '../core/units.ts';
import type { MetricsProvider } from './provider.ts';

/*
 * How the parts of this package create their metrics. A provider is user code: what it throws while a metric is created is thrown to
 * the caller. What it throws later goes to `onError`, by default an uncaught exception, and does not stop what is measured. Create
 * gauges last: a provider keeps a gauge, and with it the object that the gauge reads, until the gauge is removed.
 */

type Labels = Record<string, string>;
/** Name, help, the function that reads the value, and labels. */
export type Gauge = Parameters<MetricsProvider['observableGauge']>;

/** Creates a counter. @returns a function that adds to it. */
export function counter(
  provider: MetricsProvider,
  name: string,
  help: string,
  labels: Labels,
  onError = reportUncaught,
): (by?: number) => void {
  const made = provider.counter(name, help, labels);
  return (by = 1) => {
    try {
      made.inc(by);
    } catch (error) {
      onError(error);
    }
  };
}

/** Creates a histogram of seconds. @returns a function that observes milliseconds; `NaN` is ignored. */
export function duration(
  provider: MetricsProvider,
  name: string,
  help: string,
  buckets: readonly number[],
  labels: Labels,
): (durationMs: number) => void {
  const histogram = provider.histogram(name, help, buckets, labels);
  return (durationMs) => {
    if (Number.isNaN(durationMs)) return;
    try {
      histogram.observe(durationMs / SECOND_MS);
    } catch (error) {
      reportUncaught(error);
    }
  };
}

/** Creates all of these gauges, or none if one cannot be created. @returns a function that removes them. */
export function gauges(
  provider: MetricsProvider,
  wanted: readonly Gauge[],
  onError = reportUncaught,
): () => void {
  const made: { remove(): void }[] = [];
  const removeAll = (): void => {
    for (const gauge of made.splice(0)) {
      try {
        gauge.remove();
      } catch (error) {
        onError(error);
      }
    }
  };
  try {
    for (const gauge of wanted) made.push(provider.observableGauge(...gauge));
  } catch (error) {
    removeAll();
    throw error;
  }
  return removeAll;
}

/** Returns the time for a measurement: `NaN` from an invalid clock, which does not stop what is measured. */
export function measuredNow(clock: Clock): number {
  try {
    return readClock(clock);
  } catch {
    return NaN;
  }
}
