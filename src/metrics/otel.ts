import { metrics, type Meter } from '@opentelemetry/api';
import { wrongValue } from '../core/errors.ts';
import { objectWith, readOptions, type OptionTable } from '../core/options.ts';
import {
  ADAPTER_OPTIONS,
  type MetricsAdapterOptions,
  type ResolvedAdapterOptions,
} from './adapter-options.ts';
import type { MetricsProvider } from './provider.ts';
import { READS, SummedReads, type Labels } from './summed-reads.ts';

/** Options of {@link openTelemetryMetrics}. */
export interface OpenTelemetryMetricsOptions extends MetricsAdapterOptions {
  /**
   * Creates the instruments.
   *
   * @default the global meter provider's meter `escapement`, looked up whenever an instrument is created
   */
  readonly meter?: Meter | undefined;
}

const isMeter = objectWith(
  'a Meter of @opentelemetry/api',
  ...['createCounter', 'createGauge', 'createObservableGauge', 'createHistogram'],
);

const OPTIONS = {
  ...ADAPTER_OPTIONS,
  meter: [isMeter, undefined],
} satisfies OptionTable<OpenTelemetryMetricsOptions>;

/**
 * Returns a metrics provider for OpenTelemetry, through its API: pass it to the `metrics` option of what is to be measured. Labels
 * become attributes. Names and units are those of Prometheus, so that one dashboard fits both adapters.
 *
 * Observable gauges are read when a reader collects. An object that was closed and created again, with the same name, continues its
 * counters.
 *
 * @throws TypeError - an option or the name of a metric is invalid.
 */
export function openTelemetryMetrics(options: OpenTelemetryMetricsOptions = {}): MetricsProvider {
  const { meter, ...resolved } = readOptions('openTelemetryMetrics', options, OPTIONS);
  if (resolved.prefix !== '') requireName('options.prefix', resolved.prefix);
  return new OpenTelemetryMetrics(meter, { ...resolved, labels: { ...resolved.labels } });
}

const METER_NAME = 'escapement';
/** For other names the SDK only logs a warning, and does not export the metric. */
const METRIC_NAME = /^[a-z][a-z0-9_.\-/]{0,254}$/i;

/** Arguments for an instrument. */
interface Wanted {
  readonly meter: Meter;
  readonly name: string;
  readonly options: { readonly description: string; readonly unit: string };
  readonly labels: Labels;
}

class OpenTelemetryMetrics implements MetricsProvider {
  readonly #meter: Meter | undefined;
  readonly #options: ResolvedAdapterOptions;

  constructor(meter: Meter | undefined, options: ResolvedAdapterOptions) {
    this.#meter = meter;
    this.#options = options;
  }

  counter(name: string, help: string, labels?: Labels): { inc(by?: number): void } {
    const wanted = this.#want(name, help, labels);
    const counter = wanted.meter.createCounter(wanted.name, wanted.options);
    counter.add(0, wanted.labels); // or the first increment is invisible to `rate`
    return {
      inc: (by = 1) => {
        counter.add(by, wanted.labels);
      },
    };
  }

  gauge(name: string, help: string, labels?: Labels): { set(value: number): void } {
    const wanted = this.#want(name, help, labels);
    const gauge = wanted.meter.createGauge(wanted.name, wanted.options);
    return {
      set: (value) => {
        gauge.record(value, wanted.labels);
      },
    };
  }

  observableGauge(name: string, help: string, read: () => number, labels?: Labels): { remove(): void } {
    const wanted = this.#want(name, help, labels);
    const reads = readsOf(wanted.meter);
    const found = reads.get(wanted.name) ?? readWhenCollected(wanted);
    reads.set(wanted.name, found);
    return { remove: found.add(wanted.labels, { read, onError: this.#options.onError }) };
  }

  histogram(
    name: string,
    help: string,
    buckets: readonly number[],
    labels?: Labels,
  ): { observe(value: number): void } {
    const { meter, options, ...wanted } = this.#want(name, help, labels);
    const advice = { explicitBucketBoundaries: [...buckets] };
    const histogram = meter.createHistogram(wanted.name, { ...options, advice });
    return {
      observe: (value) => {
        histogram.record(value, wanted.labels);
      },
    };
  }

  #want(name: string, help: string, labels?: Labels): Wanted {
    const fullName = this.#options.prefix + name;
    requireName('name', fullName);
    return {
      meter: this.#meter ?? metrics.getMeter(METER_NAME),
      name: fullName,
      options: { description: help, unit: unitOf(fullName) },
      labels: { ...this.#options.labels, ...labels },
    };
  }
}

/**
 * The callback is never removed from the instrument, and keeps nothing in memory when nothing is measured: the SDK must not lose a
 * callback while it iterates over them. Gauges end at 0 because a cumulative reader of the SDK repeats the last value of attributes
 * that are no longer observed, for ever.
 */
function readWhenCollected({ meter, name, options }: Wanted): SummedReads {
  const reads = new SummedReads(name, true);
  meter.createObservableGauge(name, options).addCallback((result) => {
    reads.report((labels, sum) => {
      result.observe(sum, labels);
    });
  });
  return reads;
}

/** Returns the gauges of a meter by name. They are kept on the meter, since two callbacks for one series overwrite each other. */
function readsOf(meter: Meter & { [READS]?: Map<string, SummedReads> }): Map<string, SummedReads> {
  const found = meter[READS];
  if (found !== undefined) return found;
  const reads = new Map<string, SummedReads>();
  Object.defineProperty(meter, READS, { value: reads });
  return reads;
}

/** OpenTelemetry has the unit beside the name. */
function unitOf(name: string): string {
  if (/_seconds(_total)?$/.test(name)) return 's';
  return /_bytes(_total)?$/.test(name) ? 'By' : '';
}

function requireName(argument: string, value: unknown): void {
  if (typeof value === 'string' && METRIC_NAME.test(value)) return;
  throw wrongValue(argument, `a valid name for OpenTelemetry, ${String(METRIC_NAME)}`, value);
}
