import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { DelayingQueue, ManualClock, type MetricsProvider, WorkQueue } from 'escapement';
import { openTelemetryMetrics } from 'escapement/metrics/otel';
import { prometheusMetrics } from 'escapement/metrics/prometheus';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { takeNow } from './support/take.ts';

/** A queue in which a and b are done, c is held and was added again, d is held, e ready, and f waits. */
async function measured(metrics: MetricsProvider): Promise<void> {
  const clock = new ManualClock();
  const queue = new DelayingQueue<string>({ name: 'pods', metrics, clock });
  for (const item of 'abcde') queue.add(item);
  clock.advance(50);
  for (let i = 0; i < 2; i++) queue.done(await takeNow(queue));
  await takeNow(queue);
  clock.advance(2_000);
  await takeNow(queue);
  clock.advance(1_000);
  queue.add('c');
  queue.addAfter('f', 1e6);
}

const SAMPLES = [
  'workqueue_depth{name="pods"} 2',
  'workqueue_adds_total{name="pods"} 6',
  'workqueue_retries_total{name="pods"} 1',
  'workqueue_unfinished_work_seconds{name="pods"} 4',
  'workqueue_longest_running_processor_seconds{name="pods"} 3',
  'workqueue_queue_duration_seconds_count{name="pods"} 4',
  'workqueue_work_duration_seconds_count{name="pods"} 2',
  'workqueue_work_duration_seconds_sum{name="pods"} 0',
];

test('the adapter for prom-client exports the metrics', async () => {
  const registry = new Registry();
  await measured(prometheusMetrics({ registry }));
  const lines = (await registry.metrics()).split('\n');
  expect(lines).toEqual(expect.arrayContaining(SAMPLES));
  expect(lines).toEqual(
    expect.arrayContaining([
      '# TYPE workqueue_adds_total counter',
      '# TYPE workqueue_depth gauge',
      '# TYPE workqueue_queue_duration_seconds histogram',
      'workqueue_queue_duration_seconds_bucket{le="0.01",name="pods"} 0',
      'workqueue_queue_duration_seconds_bucket{le="0.1",name="pods"} 3',
      'workqueue_queue_duration_seconds_bucket{le="10",name="pods"} 4',
      'workqueue_work_duration_seconds_bucket{le="1e-8",name="pods"} 2',
    ]),
  );
});

test('the adapter for OpenTelemetry exports the metrics', async () => {
  const exporter = new PrometheusExporter({
    preventServerStart: true,
    withoutScopeInfo: true,
    withoutTargetInfo: true,
  });
  const provider = new MeterProvider({ readers: [exporter] });
  await measured(openTelemetryMetrics({ meter: provider.getMeter('test') }));
  const server = createServer((request, response) =>
    exporter.getMetricsRequestHandler(request, response),
  ).listen(0);
  const { port } = server.address() as AddressInfo;
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  server.close();
  expect(text.split('\n')).toEqual(expect.arrayContaining(SAMPLES));
  await provider.shutdown();
});

test('two queues with one name share their series, and one with another name has its own', async () => {
  const registry = new Registry();
  const metrics = prometheusMetrics({ registry });
  const [first, second, other] = ['pods', 'pods', 'nodes'].map(
    (name) => new WorkQueue<string>({ name, metrics }),
  );
  for (const item of 'ab') first?.add(item);
  second?.add('a');
  other?.add('a');
  const scrape = async (): Promise<string[]> =>
    (await registry.metrics()).split('\n').filter((line) => /^workqueue_(depth|adds_total)/.test(line));
  expect((await scrape()).sort()).toEqual([
    'workqueue_adds_total{name="nodes"} 1',
    'workqueue_adds_total{name="pods"} 3',
    'workqueue_depth{name="nodes"} 1',
    'workqueue_depth{name="pods"} 3',
  ]);
});
