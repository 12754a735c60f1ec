import { readClock, type Clock } from '../core/clock.ts';
import { reportUncaught } from '../core/report-uncaught.ts';
import type { MetricsProvider } from './provider.ts';

const MS_PER_S = 1_000;

type Labels = Record<string, string>;

/**
 * The metrics of one object, a queue for example. All have its labels, and its gauges are removed when it closes: a provider keeps a
 * gauge, and with it what the gauge reads, until then.
 *
 * A provider is user code. What it throws while a metric is created is thrown to the caller, so create gauges last: if one cannot be
 * created, those before it are removed. What it throws later goes to `onError`, and does not stop what is measured.
 *
 * Functions rather than methods, so that a bundler leaves out those that a program does not use.
 */
export interface MetricGroup {
  readonly provider: MetricsProvider;
  readonly labels: Labels;
  readonly onError: (error: unknown) => void;
  readonly gauges: { remove(): void }[];
}

/** @param onError - by default the error is an uncaught exception. */
export function metricGroup(
  provider: MetricsProvider,
  labels: Labels,
  onError: MetricGroup['onError'] = reportUncaught,
): MetricGroup {
  return { provider, labels, onError, gauges: [] };
}

/** Returns a group with more labels. Its gauges are those of `group`. */
export function labelled(group: MetricGroup, labels: Labels): MetricGroup {
  return { ...group, labels: { ...group.labels, ...labels } };
}

/** Creates a counter. @returns a function that adds to it. */
export function counter(group: MetricGroup, name: string, help: string): (by?: number) => void {
  const made = group.provider.counter(name, help, group.labels);
  return (by = 1) => {
    try {
      made.inc(by);
    } catch (error) {
      group.onError(error);
    }
  };
}

/** Creates a histogram of seconds. @returns a function that observes milliseconds; `NaN` is ignored. */
export function duration(
  group: MetricGroup,
  name: string,
  help: string,
  buckets: readonly number[],
): (durationMs: number) => void {
  const histogram = group.provider.histogram(name, help, buckets, group.labels);
  return (durationMs) => {
    if (Number.isNaN(durationMs)) return;
    try {
      histogram.observe(durationMs / MS_PER_S);
    } catch (error) {
      group.onError(error);
    }
  };
}

/** Creates a gauge that is read when the metrics are collected. */
export function gauge(group: MetricGroup, name: string, help: string, read: () => number): void {
  try {
    group.gauges.push(group.provider.observableGauge(name, help, read, group.labels));
  } catch (error) {
    removeGauges(group);
    throw error;
  }
}

/** Removes the gauges. New ones may be created afterwards. */
export function removeGauges({ gauges, onError }: MetricGroup): void {
  for (const one of gauges.splice(0)) {
    try {
      one.remove();
    } catch (error) {
      onError(error);
    }
  }
}

/** Returns the time for a measurement: `NaN` from an invalid clock, which does not stop what is measured. */
export function measuredNow(clock: Clock): number {
  try {
    return readClock(clock);
  } catch {
    return NaN;
  }
}
