import { diag, DiagLogLevel, metrics as api, type Meter } from '@opentelemetry/api';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  MetricReader,
  PeriodicExportingMetricReader,
  type MetricData,
} from '@opentelemetry/sdk-metrics';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ManualClock, SystemTimer, type MetricsProvider } from 'escapement';
import { openTelemetryMetrics } from 'escapement/metrics/otel';
import { READS, type SummedReads } from '../../src/metrics/summed-reads.ts';
import { listen } from '../listen.ts';
import { describeAdapter } from './describe-adapter.ts';
import { measured } from './measured.ts';

/** Collects on demand. */
class ManualReader extends MetricReader {
  protected override onForceFlush(): Promise<void> {
    return Promise.resolve();
  }
  protected override onShutdown(): Promise<void> {
    return Promise.resolve();
  }

  /** All metrics by name. */
  async read(): Promise<Map<string, MetricData>> {
    const { resourceMetrics, errors } = await this.collect();
    expect(errors).toEqual([]);
    return new Map(
      resourceMetrics.scopeMetrics.flatMap((scope) =>
        scope.metrics.map((data) => [data.descriptor.name, data]),
      ),
    );
  }

  /** The series of one metric, as `name=a: 1`. */
  async series(name: string): Promise<string[]> {
    const data = (await this.read()).get(name);
    return (data?.dataPoints ?? []).map(({ attributes, value }) => {
      const shown = Object.entries(attributes).map(([key, text]) => `${key}=${String(text)}`);
      return `${shown.join(',')}: ${typeof value === 'number' ? value : JSON.stringify(value)}`;
    });
  }
}

let reader: ManualReader;
let provider: MeterProvider;
let meter: Meter;
let metrics: MetricsProvider;
const warned = vi.fn();

beforeEach(() => {
  diag.setLogger(
    { error: warned, warn: warned, info: vi.fn(), debug: vi.fn(), verbose: vi.fn() },
    DiagLogLevel.WARN,
  );
  reader = new ManualReader();
  provider = new MeterProvider({ readers: [reader] });
  meter = provider.getMeter('test');
  metrics = openTelemetryMetrics({ meter });
});
afterEach(() => {
  api.disable();
  diag.disable();
  expect(warned).not.toHaveBeenCalled();
});

describeAdapter({
  open: (options) => openTelemetryMetrics({ meter, ...options }),
  series: (name) => reader.series(name),
  count: async () => (await reader.read()).size,
  wrongNames: ['', '1st', 'a b', 'a:b', 'ä', 'a\n', 'a'.repeat(256)],
});

it('a reader collects the metrics of a timer and a purgatory', async () => {
  const { close } = measured(metrics);
  expect(await reader.series('timer_size')).toEqual(['timer=requests: 3']);
  expect(await reader.series('timer_tasks_run_total')).toEqual(['timer=requests: 3']);
  expect(await reader.series('purgatory_size')).toEqual(['purgatory=fetch: 3']);
  expect(await reader.series('purgatory_completed_total')).toEqual([
    'purgatory=fetch,reason=tried: 0',
    'purgatory=fetch,reason=forced: 0',
    'purgatory=fetch,reason=expired: 1',
    'purgatory=fetch,reason=closed: 0',
  ]);
  const waits = (await reader.read()).get('purgatory_wait_duration_seconds');
  expect(waits?.descriptor).toMatchObject({
    unit: 's',
    description: 'Time from the addition of an operation to its completion.',
  });
  expect(waits?.dataPoints[0]?.value).toMatchObject({
    count: 1,
    sum: 0.04,
    buckets: {
      boundaries: [0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 60, 300],
      counts: [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
    },
  });
  close();
  expect(await reader.series('purgatory_completed_total')).toContain('purgatory=fetch,reason=closed: 2');
});

it('an exporter that is flushed receives the metrics', async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const provider = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter })] });
  openTelemetryMetrics({ meter: provider.getMeter('test') })
    .counter('jobs_total', 'Jobs.')
    .inc(3);
  await provider.forceFlush();
  const [data] = exporter.getMetrics()[0]?.scopeMetrics[0]?.metrics ?? [];
  expect(data).toMatchObject({
    descriptor: { name: 'jobs_total', description: 'Jobs.', unit: '' },
    dataPointType: DataPointType.SUM,
    isMonotonic: true,
    dataPoints: [{ value: 3 }],
  });
  await provider.shutdown();
});

it('the Prometheus exporter writes the names of prometheusMetrics, with each suffix once', async () => {
  const exporter = new PrometheusExporter({
    preventServerStart: true,
    withoutScopeInfo: true,
    withoutTargetInfo: true,
  });
  const provider = new MeterProvider({ readers: [exporter] });
  measured(openTelemetryMetrics({ meter: provider.getMeter('test') }));
  const port = await listen((request, response) => exporter.getMetricsRequestHandler(request, response));
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  expect(text.split('\n')).toEqual(
    expect.arrayContaining([
      '# TYPE timer_wakeups_total counter',
      'timer_wakeups_total{timer="requests"} 3',
      'timer_size{timer="requests"} 3',
      'purgatory_completed_total{purgatory="fetch",reason="expired"} 1',
      'purgatory_wait_duration_seconds_sum{purgatory="fetch"} 0.04',
      'purgatory_wait_duration_seconds_bucket{purgatory="fetch",le="0.05"} 1',
    ]),
  );
  await provider.shutdown();
});

it('the global meter provider is the default, looked up when an instrument is created', async () => {
  const metrics = openTelemetryMetrics();
  metrics.counter('lost_total', 'Nobody listens yet.').inc();
  api.setGlobalMeterProvider(provider);
  metrics.counter('jobs_total', 'Jobs.').inc();
  const { resourceMetrics } = await reader.collect();
  expect(resourceMetrics.scopeMetrics.map(({ scope }) => scope.name)).toEqual(['escapement']);
  expect([...(await reader.read()).keys()]).toEqual(['jobs_total']);
});

it('gauges can be set, and the unit is the one that the name ends in', async () => {
  const level = metrics.gauge('age_seconds', 'Age.', { name: 'a' });
  level.set(4);
  level.set(-2.5);
  expect(await reader.series('age_seconds')).toEqual(['name=a: -2.5']);
  for (const name of ['spent_seconds_total', 'sent_bytes', 'read_bytes_total', 'seconds', 'jobs_total']) {
    metrics.counter(name, 'Something.');
  }
  const units = [...(await reader.read()).values()].map(({ descriptor }) => descriptor.unit);
  expect(units).toEqual(['s', 's', 'By', 'By', '', '']);
});

it('series of one name can have different labels with any value', async () => {
  metrics.counter('jobs_total', 'Jobs.', { name: 'b"\\\n' }).inc();
  metrics.counter('jobs_total', 'Jobs.', { name: 'a', 'kind.of': '' }).inc(2);
  expect(await reader.series('jobs_total')).toEqual(['name=b"\\\n: 1', 'name=a,kind.of=: 2']);
});

const collectThrice = async (temporality: AggregationTemporality): Promise<string[][]> => {
  const reader = new ManualReader({ aggregationTemporalitySelector: () => temporality });
  const meter = new MeterProvider({ readers: [reader] }).getMeter('test');
  const metrics = openTelemetryMetrics({ meter });
  metrics.observableGauge('depth', 'Depth.', () => 3, { name: 'unseen' }).remove();
  const gauge = metrics.observableGauge('depth', 'Depth.', () => 5, { name: 'a' });
  const seen = [await reader.series('depth')];
  gauge.remove();
  gauge.remove();
  return [...seen, await reader.series('depth'), await reader.series('depth')];
};

it('a removed gauge is 0 once and then missing for a reader of deltas', async () => {
  expect(await collectThrice(AggregationTemporality.DELTA)).toEqual([['name=a: 5'], ['name=a: 0'], []]);
});

it('a removed gauge stays at 0 for a cumulative reader, because the SDK repeats the last value for ever', async () => {
  expect(await collectThrice(AggregationTemporality.CUMULATIVE)).toEqual([
    ['name=a: 5'],
    ['name=a: 0'],
    ['name=a: 0'],
  ]);
});

it('a removed gauge is 0 for every reader', async () => {
  const readers = [new ManualReader(), new ManualReader()];
  const metrics = openTelemetryMetrics({ meter: new MeterProvider({ readers }).getMeter('test') });
  const gauge = metrics.observableGauge('depth', 'Depth.', () => 5);
  for (const reader of readers) expect(await reader.series('depth')).toEqual([': 5']);
  gauge.remove();
  for (const reader of readers) expect(await reader.series('depth')).toEqual([': 0']);
});

it('two parts of one name are added up through two providers on the global meter', async () => {
  api.setGlobalMeterProvider(provider);
  for (const metrics of [openTelemetryMetrics(), openTelemetryMetrics()]) {
    metrics.observableGauge('depth', 'Depth.', () => 2);
  }
  expect(await reader.series('depth')).toEqual([': 4']);
});

it('a closed part is not kept in memory when no SDK collects', () => {
  new SystemTimer({ clock: new ManualClock(), metrics: openTelemetryMetrics() }).close();
  const noop: object = api.getMeter('escapement');
  const gauges = (noop as { [READS]: Map<string, SummedReads> })[READS];
  const observe = vi.fn();
  gauges.get('timer_size')?.report(observe);
  expect([gauges.has('timer_size'), observe.mock.calls]).toEqual([true, []]);
});

it.each([
  [{ meter: {} }, 'options.meter must be a Meter of @opentelemetry/api. Received [object Object]'],
  [{ meter: null }, 'options.meter must be a Meter of @opentelemetry/api. Received null'],
  [{ prefix: '7' }, /^options\.prefix must be a valid name for OpenTelemetry, .* Received '7' \(a string\)$/],
  [null, 'options must be an object. Received null'],
])('options %o throw an error with the value received', (options, message) =>
  expect(() => openTelemetryMetrics(options as never)).toThrow(message),
);
