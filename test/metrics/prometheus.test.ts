import {
  AggregatorRegistry,
  Counter,
  Gauge,
  openMetricsContentType,
  register,
  Registry,
  Summary,
  type OpenMetricsContentType,
} from 'prom-client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { EscapementError, SystemTimer, type MetricsProvider } from 'escapement';
import { prometheusMetrics } from 'escapement/metrics/prometheus';
import { listen } from '../listen.ts';
import { thrownBy } from '../timer/support/errors.ts';
import { describeAdapter } from './describe-adapter.ts';
import { measured } from './measured.ts';

let registry: Registry;
let metrics: MetricsProvider;

beforeEach(() => {
  registry = new Registry();
  metrics = prometheusMetrics({ registry });
});
afterEach(() => register.clear());

/** The samples of a scrape, without the comments. */
async function scrape(from: Registry | Registry<OpenMetricsContentType> = registry): Promise<string[]> {
  return (await from.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

/** The series of a metric, as `name=a: 1`. */
async function seriesOf(name: string): Promise<string[]> {
  return (await scrape()).flatMap((line) => {
    const [, metric, labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (.*)$/.exec(line) ?? [];
    return metric === name ? [`${labels.replaceAll('"', '')}: ${value}`] : [];
  });
}

async function fetchFrom(from: Registry): Promise<{ text: string; type: string | null }> {
  const port = await listen((_request, response) => {
    void from.metrics().then((text) => response.setHeader('content-type', from.contentType).end(text));
  });
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  return { text: await response.text(), type: response.headers.get('content-type') };
}

const WRONG_NAMES = ['', '1st', 'a-b', 'a b', 'ä', 'a\n', 'a{}'];

describeAdapter({
  open: (options) => prometheusMetrics({ registry, ...options }),
  series: seriesOf,
  count: () => Promise.resolve(registry.getMetricsAsArray().length),
  wrongNames: WRONG_NAMES,
});

it('a scrape over HTTP returns the metrics of a timer and a purgatory', async () => {
  const { close } = measured(metrics);
  const { text, type } = await fetchFrom(registry);
  expect(type).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(text).toContain('# HELP timer_size Pending tasks.\n# TYPE timer_size gauge\n');
  expect(text.split('\n')).toEqual(
    expect.arrayContaining([
      'timer_size{timer="requests"} 3',
      'timer_wakeups_total{timer="requests"} 3',
      'timer_tasks_run_total{timer="requests"} 3',
      'purgatory_size{purgatory="fetch"} 3',
      'purgatory_num_delayed_operations{purgatory="fetch"} 1',
      'purgatory_watched_keys{purgatory="fetch"} 2',
      'purgatory_completed_total{purgatory="fetch",reason="tried"} 0',
      'purgatory_completed_total{purgatory="fetch",reason="expired"} 1',
      'purgatory_check_duration_seconds_bucket{le="0.000001",purgatory="fetch"} 1',
      'purgatory_wait_duration_seconds_bucket{le="0.01",purgatory="fetch"} 0',
      'purgatory_wait_duration_seconds_bucket{le="0.05",purgatory="fetch"} 1',
      'purgatory_wait_duration_seconds_bucket{le="+Inf",purgatory="fetch"} 1',
      'purgatory_wait_duration_seconds_sum{purgatory="fetch"} 0.04',
      'purgatory_wait_duration_seconds_count{purgatory="fetch"} 1',
    ]),
  );
  close();
  expect((await scrape()).filter((line) => /size|keys|delayed/.test(line))).toEqual([]);
  expect(await scrape()).toContain('purgatory_completed_total{purgatory="fetch",reason="closed"} 2');
});

it('the global registry is the default', async () => {
  const metrics = prometheusMetrics();
  metrics.counter('jobs_total', 'Jobs.').inc(2);
  metrics.gauge('level', 'A level.').set(-1.5);
  metrics.histogram('took_seconds', 'Time.', [1, 2]).observe(1);
  expect(await scrape(register)).toEqual([
    'jobs_total 2',
    'level -1.5',
    'took_seconds_bucket{le="1"} 1',
    'took_seconds_bucket{le="2"} 1',
    'took_seconds_bucket{le="+Inf"} 1',
    'took_seconds_sum 1',
    'took_seconds_count 1',
  ]);
});

it('a registry of OpenMetrics is written in its format', async () => {
  const open = new Registry<OpenMetricsContentType>();
  open.setContentType(openMetricsContentType);
  const metrics = prometheusMetrics({ registry: open });
  metrics.counter('jobs_total', 'Jobs.', { name: 'a' }).inc();
  expect(await open.metrics()).toBe(
    '# HELP jobs Jobs.\n# TYPE jobs counter\njobs_total{name="a"} 1\n# EOF\n',
  );
  metrics.counter('jobs_total', 'Jobs.', { name: 'a' }).inc();
  expect(await scrape(open)).toEqual(['jobs_total{name="a"} 2']);
});

it('the series of many parts are separate, and their names are escaped', async () => {
  for (const name of ['a', 'b"\\\n', '\u{1F40C}', '']) metrics.counter('adds_total', 'Adds.', { name }).inc();
  expect(await scrape()).toEqual([
    'adds_total{name="a"} 1',
    'adds_total{name="b\\"\\\\\\n"} 1',
    'adds_total{name="\u{1F40C}"} 1',
    'adds_total{name=""} 1',
  ]);
});

it('gauges are read when the registry is scraped and not before', async () => {
  const read = vi.fn(() => 3);
  metrics.observableGauge('depth', 'Depth.', read, { name: 'a' });
  expect(read).not.toHaveBeenCalled();
  expect(await scrape()).toEqual(['depth{name="a"} 3']);
  read.mockReturnValue(NaN);
  expect(await registry.getSingleMetricAsString('depth')).toContain('depth{name="a"} Nan');
  expect(read).toHaveBeenCalledTimes(2);
});

it('gauges are added up across the workers of a cluster', async () => {
  const results = await Promise.all(
    [1, 2].map(async (size) => {
      const registry = new Registry();
      prometheusMetrics({ registry }).observableGauge('depth', 'Depth.', () => size, { name: 'a' });
      return registry.getMetricsAsJSON();
    }),
  );
  expect(await scrape(AggregatorRegistry.aggregate(results))).toEqual(['depth{name="a"} 3']);
});

it('two providers can share a registry', async () => {
  const other = prometheusMetrics({ registry });
  for (const provider of [metrics, other]) {
    provider.counter('jobs_total', 'Jobs.', { name: 'a' }).inc();
    provider.observableGauge('depth', 'Depth.', () => 2, { name: 'a' });
    provider.gauge('level', 'Level.').set(1);
    provider.histogram('took_seconds', 'Time.', [1]).observe(0.5);
  }
  expect(await scrape()).toEqual(
    expect.arrayContaining(['jobs_total{name="a"} 2', 'depth{name="a"} 4', 'level 1', 'took_seconds_sum 1']),
  );
});

it('the array of buckets is not frozen', () => {
  const buckets = [1, 2];
  metrics.histogram('took_seconds', 'Time.', buckets);
  expect(Object.isFrozen(buckets)).toBe(false);
});

it('a registry that was cleared starts with new metrics', async () => {
  const old = metrics.counter('jobs_total', 'Jobs.');
  registry.clear();
  old.inc();
  metrics.counter('jobs_total', 'Jobs.').inc();
  expect(await scrape()).toEqual(['jobs_total 1']);
});

it('a counter that was reset can be incremented', async () => {
  const counter = metrics.counter('jobs_total', 'Jobs.', { name: 'a' });
  counter.inc(5);
  registry.resetMetrics();
  counter.inc();
  expect(await scrape()).toEqual(['jobs_total{name="a"} 1']);
});

const help = 'Theirs.';
const conflict = (name: string, reason: string): object => ({
  ...{ name: 'EscapementError', code: 'ERR_METRIC_CONFLICT' },
  message: `the registry has a metric ${name} already: ${reason}. Pass another prefix or registry to prometheusMetrics`,
});

it('a registered metric of the same type and labels is used', async () => {
  const theirs = new Counter({ name: 'jobs_total', help, labelNames: ['name'], registers: [registry] });
  theirs.inc({ name: 'a' }, 3);
  metrics.counter('jobs_total', 'Jobs.', { name: 'a' }).inc();
  expect(await scrape()).toEqual(['jobs_total{name="a"} 4']);
});

it('a registered metric of another type throws an error with both types', () => {
  new Summary({ name: 'jobs_total', help, registers: [registry] });
  expect(thrownBy(() => metrics.counter('jobs_total', 'Jobs.'))).toMatchObject(
    conflict('jobs_total', 'it is a summary, not a counter'),
  );
});

it('a registered metric with other labels throws an error with both sets of labels', () => {
  new Gauge({ name: 'timer_size', help, labelNames: ['queue', 'host'], registers: [registry] });
  expect(thrownBy(() => new SystemTimer({ metrics }))).toMatchObject(
    conflict('timer_size', 'its labels are [host, queue], not [timer]'),
  );
});

it.each(['purgatory_size', 'purgatory_watched_keys', 'purgatory_cancelled_total'])(
  'a registered metric %s makes the purgatory throw and leaves none of its gauges',
  async (name) => {
    new Summary({ name, help, registers: [registry], labelNames: ['theirs'] });
    expect(() => measured(metrics)).toThrow(EscapementError);
    const gauges = (await scrape()).filter((line) => /^purgatory_(size|num|watched)/.test(line));
    expect(gauges).toEqual([]);
  },
);

it('a timer that could not be created leaves no gauge', async () => {
  new Summary({ name: 'timer_tasks_run_total', help, registers: [registry], labelNames: ['theirs'] });
  expect(() => new SystemTimer({ metrics })).toThrow(EscapementError);
  expect(await scrape()).toEqual(['timer_wakeups_total{timer="timer"} 0']);
});

it('a metric of another provider with other labels throws an error with both sets of labels', () => {
  metrics.counter('jobs_total', 'Jobs.', { name: 'a', kind: 'b' });
  metrics.counter('jobs_total', 'Jobs.', { kind: 'c', name: 'd' });
  expect(thrownBy(() => metrics.counter('jobs_total', 'Jobs.', { name: 'a' }))).toMatchObject(
    conflict('jobs_total', 'its labels are [kind, name], not [name]'),
  );
});

it('a registered histogram with other buckets throws an error with both sets of buckets', () => {
  metrics.histogram('took_seconds', 'Time.', [1, 2]);
  expect(thrownBy(() => metrics.histogram('took_seconds', 'Time.', [1, 3]))).toMatchObject(
    conflict('took_seconds', 'its buckets are [1, 2], not [1, 3]'),
  );
});

it('a gauge is either set or read', () => {
  metrics.gauge('level', 'Level.');
  expect(thrownBy(() => metrics.observableGauge('level', 'Level.', () => 1))).toMatchObject(
    conflict('level', 'it is set, and not read when scraped'),
  );
  metrics.observableGauge('depth', 'Depth.', () => 1);
  expect(thrownBy(() => metrics.gauge('depth', 'Depth.'))).toMatchObject(
    conflict('depth', 'it is read when scraped, so it cannot be set'),
  );
});

it.each([
  [{ registry: {} }, 'options.registry must be a Registry of prom-client. Received [object Object]'],
  [{ registry: null }, 'options.registry must be a Registry of prom-client. Received null'],
  [
    { prefix: 'my-' },
    "options.prefix must be a valid name for Prometheus, /^[a-zA-Z_:][a-zA-Z0-9_:]*$/. Received 'my-'",
  ],
  [
    { labels: { 'a-b': '' } },
    "options.labels must be a valid name for Prometheus, /^[a-zA-Z_][a-zA-Z0-9_]*$/. Received 'a-b'",
  ],
  [null, 'options must be an object. Received null'],
])('options %o throw an error with the value received', (options, message) =>
  expect(() => prometheusMetrics(options as never)).toThrow(message),
);

it.each(WRONG_NAMES)('the label %j throws a TypeError and registers nothing', (name) => {
  expect(() => metrics.counter('fine', 'help', { [name]: '' })).toThrow(/^label of fine must be/);
  expect(registry.getMetricsAsArray()).toEqual([]);
});

it('the label le of a histogram throws a TypeError and registers nothing', () => {
  expect(() => metrics.histogram('h', 'help', [1], { le: '1' })).toThrow(/^label of h must be/);
  expect(registry.getMetricsAsArray()).toEqual([]);
});
