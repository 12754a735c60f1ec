import { Counter, Gauge, Histogram, register, type OpenMetricsContentType, type Registry } from 'prom-client';
import { EscapementError, wrongValue } from '../core/errors.ts';
import { requireMethods, type OptionNames } from '../core/validate.ts';
import {
  ADAPTER_OPTIONS,
  resolveAdapterOptions,
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
   * Where the metrics are registered. Metrics that are in it already are used, so any number of providers share one.
   *
   * @default prom-client's global `register`
   */
  readonly registry?: Registry | Registry<OpenMetricsContentType>;
}

const OPTIONS: OptionNames<PrometheusMetricsOptions> = { ...ADAPTER_OPTIONS, registry: true };

/**
 * Metrics for Prometheus, through prom-client: give the result to the `metrics` option of whatever is to be measured.
 *
 * Gauges that can be read are read when the registry is scraped, and nothing runs between scrapes. Making what was
 * closed again, under the same name, continues its counters.
 *
 * @throws TypeError if an option, the name of a metric or of a label is invalid
 * @throws EscapementError `ERR_METRIC_CONFLICT`, from whatever is measured, if the registry has a metric of that name
 *   with another type, other labels or other buckets
 */
export function prometheusMetrics(options: PrometheusMetricsOptions = {}): MetricsProvider {
  const resolved = resolveAdapterOptions('prometheusMetrics', options, OPTIONS);
  const { registry = register } = options;
  requireMethods('registry', 'a Registry of prom-client', ['getSingleMetric', 'registerMetric'], registry);
  if (resolved.prefix !== '') requireMatch('prefix', METRIC_NAME, resolved.prefix);
  for (const label of Object.keys(resolved.labels)) requireMatch('labels', LABEL_NAME, label);
  return new PrometheusMetrics(registry, resolved);
}

const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
/** A histogram says `le` of its buckets. prom-client looks for it when the metric is registered already. */
const HISTOGRAM_LABEL_NAME = /^(?!le$)[a-zA-Z_][a-zA-Z0-9_]*$/;

/** What a metric is to be. */
interface Wanted {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly name: string;
  readonly help: string;
  readonly labels: Labels;
  readonly buckets?: readonly number[];
}

/** What prom-client's metrics have and its types do not tell. */
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
    if (found?.[READS] !== undefined) throw conflict(wanted, 'it is read when scraped, and cannot be set');
    return (found ?? new Gauge(this.#configure(wanted))).labels(wanted.labels);
  }

  observableGauge(name: string, help: string, read: () => number, labels?: Labels): { remove(): void } {
    const wanted = this.#want('gauge', name, help, labels);
    const found = this.#find(wanted) as Registered | undefined;
    const reads = found === undefined ? readWhenScraped(this.#configure(wanted)) : found[READS];
    if (reads === undefined) throw conflict(wanted, 'it is set by somebody, and not read when scraped');
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

  /** The registry is asked each time: it may have been cleared, or filled by another provider. */
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
      this.remove({}); // a reset gauge without labels is 0, which nobody has read
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
  if (found.type !== type) throw conflict(wanted, `it is a ${found.type}, and a ${type} is wanted`);
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
  throw conflict(wanted, `it has the ${what} [${has.join(', ')}], and [${wants.join(', ')}] are wanted`);
}

function conflict({ name }: Wanted, reason: string): EscapementError {
  const advice = 'Give prometheusMetrics another prefix or registry';
  const message = `The registry has a metric ${name} already: ${reason}. ${advice}`;
  return new EscapementError('ERR_METRIC_CONFLICT', message, { op: 'prometheusMetrics' });
}

function requireMatch(argument: string, pattern: RegExp, value: unknown): void {
  if (typeof value === 'string' && pattern.test(value)) return;
  throw wrongValue(argument, `a name that Prometheus takes, ${String(pattern)}`, value);
}
