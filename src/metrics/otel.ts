import { metrics, type Meter } from '@opentelemetry/api';
import { wrongValue } from '../core/errors.ts';
import { requireMethods, type OptionNames } from '../core/validate.ts';
import {
  ADAPTER_OPTIONS,
  resolveAdapterOptions,
  type MetricsAdapterOptions,
  type ResolvedAdapterOptions,
} from './adapter-options.ts';
import type { MetricsProvider } from './provider.ts';
import { READS, SummedReads, type Labels } from './summed-reads.ts';

/** Options of {@link openTelemetryMetrics}. */
export interface OpenTelemetryMetricsOptions extends MetricsAdapterOptions {
  /**
   * What makes the instruments.
   *
   * @default the global meter provider's meter `escapement`, looked up whenever something is to be measured
   */
  readonly meter?: Meter;
}

const OPTIONS: OptionNames<OpenTelemetryMetricsOptions> = { ...ADAPTER_OPTIONS, meter: true };

/**
 * Metrics for OpenTelemetry, through its API: give the result to the `metrics` option of whatever is to be measured.
 * Labels become attributes. Names and units are those of Prometheus, so that one dashboard fits both adapters.
 *
 * Gauges that can be read are read when a reader collects. Making what was closed again, under the same name,
 * continues its counters.
 *
 * @throws TypeError if an option or the name of a metric is invalid
 */
export function openTelemetryMetrics(options: OpenTelemetryMetricsOptions = {}): MetricsProvider {
  const resolved = resolveAdapterOptions('openTelemetryMetrics', options, OPTIONS);
  const { meter } = options;
  if (meter !== undefined) requireMethods('meter', 'a Meter of @opentelemetry/api', METER_METHODS, meter);
  if (resolved.prefix !== '') requireName('prefix', resolved.prefix);
  return new OpenTelemetryMetrics(meter, resolved);
}

const METER_METHODS: readonly (keyof Meter)[] = [
  'createCounter',
  'createGauge',
  'createObservableGauge',
  'createHistogram',
];
const METER_NAME = 'escapement';
/** The SDK only warns of other names, and then nobody sees the metric. */
const METRIC_NAME = /^[a-z][a-z0-9_.\-/]{0,254}$/i;

/** What an instrument is made from. */
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
 * The callback stays with the instrument for good, and holds nothing when nothing is measured: the SDK must not lose
 * a callback while it goes through them. Gauges end at 0 because a cumulative reader of the SDK repeats the last value
 * of attributes that are no longer observed, for ever.
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

/** The gauges of a meter by name. Kept on the meter, since two callbacks for one series overwrite each other. */
function readsOf(meter: Meter & { [READS]?: Map<string, SummedReads> }): Map<string, SummedReads> {
  const found = meter[READS];
  if (found !== undefined) return found;
  const reads = new Map<string, SummedReads>();
  Object.defineProperty(meter, READS, { value: reads });
  return reads;
}

/** OpenTelemetry wants the unit beside the name. */
function unitOf(name: string): string {
  if (/_seconds(_total)?$/.test(name)) return 's';
  return /_bytes(_total)?$/.test(name) ? 'By' : '';
}

function requireName(argument: string, value: unknown): void {
  if (typeof value === 'string' && METRIC_NAME.test(value)) return;
  throw wrongValue(argument, `a name that OpenTelemetry takes, ${String(METRIC_NAME)}`, value);
}
