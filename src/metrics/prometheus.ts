import { Counter, Gauge, Histogram, register, type OpenMetricsContentType, type Registry } from 'prom-client';
import { EscapementError, wrongValue } from '../core/errors.ts';
import { objectWith, readOptions, type OptionTable } from '../core/options.ts';
import {
  ADAPTER_OPTIONS,
  type MetricsAdapterOptions,
  type ResolvedAdapterOptions,
} from './adapter-options.ts';
import type { MetricsProvider } from './provider.ts';
import { READS, SummedReads, type Labels } from './summed-reads.ts';

/** A registry of either format that prom-client writes. */
type AnyRegistry = Registry | Registry<OpenMetricsContentType>;

/** Options of {@link prometheusMetrics}. */
export interface PrometheusMetricsOptions extends MetricsAdapterOptions {
  /**
   * Registry of the metrics. Metrics that are in it already are used, so any number of providers can share one.
   *
   * @default prom-client's global `register`
   */
  readonly registry?: Registry | Registry<OpenMetricsContentType> | undefined;
}

const OPTIONS = {
  ...ADAPTER_OPTIONS,
  registry: [objectWith('a Registry of prom-client', 'getSingleMetric', 'registerMetric'), register],
} satisfies OptionTable<PrometheusMetricsOptions>;

/**
 * Returns a metrics provider for Prometheus, through prom-client: pass it to the `metrics` option of what is to be measured.
 *
 * Observable gauges are read when the registry is scraped, and nothing runs between scrapes. An object that was closed and created
 * again, with the same name, continues its counters.
 *
 * @throws TypeError - an option, the name of a metric or the name of a label is invalid.
 * @throws EscapementError `ERR_METRIC_CONFLICT` - thrown by what is measured, if the registry has a metric of that name with another
 * type, other labels or other buckets.
 */
export function prometheusMetrics(options: PrometheusMetricsOptions = {}): MetricsProvider {
  const { registry, ...resolved } = readOptions('prometheusMetrics', options, OPTIONS);
  if (resolved.prefix !== '') requireMatch('options.prefix', METRIC_NAME, resolved.prefix);
  for (const label of Object.keys(resolved.labels)) requireMatch('options.labels', LABEL_NAME, label);
  return new PrometheusMetrics(registry, { ...resolved, labels: { ...resolved.labels } });
}

const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
/** `le` is the label of a histogram's buckets. prom-client checks for it only when the metric is registered. */
const HISTOGRAM_LABEL_NAME = /^(?!le$)[a-zA-Z_][a-zA-Z0-9_]*$/;

/** Description of a metric to find or create. */
interface Wanted {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly name: string;
  readonly help: string;
  readonly labels: Labels;
  readonly buckets?: readonly number[];
}

/** Properties of prom-client's metrics that its types do not have. */
interface Registered {
  readonly type: string;
  readonly labelNames: readonly string[];
  readonly buckets?: readonly number[];
  readonly [READS]?: SummedReads;
}

class PrometheusMetrics implements MetricsProvider {
  readonly #registry: AnyRegistry;
  readonly #options: ResolvedAdapterOptions;

  constructor(registry: AnyRegistry, options: ResolvedAdapterOptions) {
    this.#registry = registry;
    this.#options = options;
  }

  counter(name: string, help: string, labels?: Labels): { inc(by?: number): void } {
    const wanted = this.#want('counter', name, help, labels);
    const counter = (this.#find(wanted) as Counter | undefined) ?? new Counter(this.#configure(wanted));
    counter.inc(wanted.labels, 0); // or the first increment is invisible to `rate`
    return counter.labels(wanted.labels);
  }

  gauge(name: string, help: string, labels?: Labels): { set(value: number): void } {
    const wanted = this.#want('gauge', name, help, labels);
    const found = this.#find(wanted) as (Gauge & Registered) | undefined;
    if (found?.[READS] !== undefined) throw conflict(wanted, 'it is read when scraped, so it cannot be set');
    return (found ?? new Gauge(this.#configure(wanted))).labels(wanted.labels);
  }

  observableGauge(name: string, help: string, read: () => number, labels?: Labels): { remove(): void } {
    const wanted = this.#want('gauge', name, help, labels);
    const found = this.#find(wanted) as Registered | undefined;
    const reads = found === undefined ? readWhenScraped(this.#configure(wanted)) : found[READS];
    if (reads === undefined) throw conflict(wanted, 'it is set, and not read when scraped');
    return { remove: reads.add(wanted.labels, { read, onError: this.#options.onError }) };
  }

  histogram(
    name: string,
    help: string,
    buckets: readonly number[],
    labels?: Labels,
  ): { observe(value: number): void } {
    const wanted = { ...this.#want('histogram', name, help, labels), buckets };
    const config = { ...this.#configure(wanted), buckets: [...buckets] }; // prom-client freezes what it is given
    const histogram = (this.#find(wanted) as Histogram | undefined) ?? new Histogram(config);
    return histogram.labels(wanted.labels);
  }

  #want(type: Wanted['type'], name: string, help: string, labels?: Labels): Wanted {
    const fullName = this.#options.prefix + name;
    requireMatch('name', METRIC_NAME, fullName);
    const allLabels = { ...this.#options.labels, ...labels };
    const pattern = type === 'histogram' ? HISTOGRAM_LABEL_NAME : LABEL_NAME;
    for (const label of Object.keys(allLabels)) requireMatch(`label of ${fullName}`, pattern, label);
    return { type, name: fullName, help, labels: allLabels };
  }

  #configure({ name, help, labels }: Wanted): Configuration {
    return { name, help, labelNames: Object.keys(labels), registers: [this.#registry] };
  }

  /** Reads the registry each time: it may have been cleared, or filled by another provider. */
  #find(wanted: Wanted): unknown {
    const found = this.#registry.getSingleMetric(wanted.name);
    if (found !== undefined) requireSame(found as unknown as Registered, wanted);
    return found;
  }
}

interface Configuration {
  name: string;
  help: string;
  labelNames: string[];
  registers: AnyRegistry[];
}

function readWhenScraped(configuration: Configuration): SummedReads {
  const reads = new SummedReads(configuration.name, false);
  const gauge = new Gauge({
    ...configuration,
    collect() {
      this.reset();
      this.remove({}); // a reset gauge without labels is 0, although nothing was read
      reads.report((labels, sum) => {
        this.set(labels, sum);
      });
    },
  });
  Object.assign(gauge, { [READS]: reads });
  return reads;
}

function requireSame(found: Registered, wanted: Wanted): void {
  const { type, labels, buckets } = wanted;
  if (found.type !== type) throw conflict(wanted, `it is a ${found.type}, not a ${type}`);
  requireSameList(wanted, 'labels', [...found.labelNames].sort(), Object.keys(labels).sort());
  if (buckets !== undefined) requireSameList(wanted, 'buckets', found.buckets ?? [], buckets);
}

function requireSameList(
  wanted: Wanted,
  what: string,
  has: readonly unknown[],
  wants: readonly unknown[],
): void {
  if (has.join() === wants.join()) return;
  throw conflict(wanted, `its ${what} are [${has.join(', ')}], not [${wants.join(', ')}]`);
}

function conflict({ name }: Wanted, reason: string): EscapementError {
  const advice = 'Pass another prefix or registry to prometheusMetrics';
  const message = `the registry has a metric ${name} already: ${reason}. ${advice}`;
  return new EscapementError('ERR_METRIC_CONFLICT', message, { op: 'prometheusMetrics' });
}

function requireMatch(argument: string, pattern: RegExp, value: unknown): void {
  if (typeof value === 'string' && pattern.test(value)) return;
  throw wrongValue(argument, `a valid name for Prometheus, ${String(pattern)}`, value);
}
