import type { MetricsProvider } from 'escapement';
import { prometheusMetrics } from 'escapement/metrics/prometheus';
import { taskQueueMetrics, type TaskQueueMetricsOptions } from 'escapement/tasks';
import { Registry } from 'prom-client';
import { describe, expect, test, vi } from 'vitest';
import { uncaughtErrors } from '../uncaught-errors.ts';
import { settled } from '../workqueue/support/outcome.ts';
import { type Bench, openBench, unavailable } from './support/bench.ts';

interface Measured extends Bench {
  readonly metrics: MetricsProvider;
  /** The samples of a scrape that match, without the name of the metric's queue if it is `default`. */
  readonly scrape: (pattern: RegExp) => Promise<string[]>;
}

async function withRegistry(): Promise<Measured> {
  const registry = new Registry();
  return {
    ...(await openBench()),
    metrics: prometheusMetrics({ registry }),
    scrape: async (pattern) =>
      (await registry.metrics()).split('\n').filter((line) => !line.startsWith('#') && pattern.test(line)),
  };
}

describe('metrics of queues', () => {
  test('the metrics of queues are those of asynq, for all states', async () => {
    const { add, broker, clock, inspector, lease, metrics, scrape } = await withRegistry();
    await add('a');
    await add('b');
    await add('c');
    await add('g', { group: 'g' });
    await add('s', { processInMs: 5_000 });
    await broker.complete(await lease());
    await broker.archive(await lease(), { error: 'boom', isFailure: true });
    await inspector.pauseQueue('default');
    clock.advance(1_500);
    const sampler = taskQueueMetrics({ broker, metrics });
    await sampler.sample();
    expect(await scrape(/asynq_(?!queue_memory)/)).toEqual([
      'asynq_tasks_processed_total{queue="default"} 2',
      'asynq_tasks_failed_total{queue="default"} 1',
      'asynq_queue_size{queue="default"} 4',
      'asynq_queue_latency_seconds{queue="default"} 1.5',
      'asynq_queue_paused_total{queue="default"} 1',
      'asynq_tasks_enqueued_total{queue="default",state="active"} 0',
      'asynq_tasks_enqueued_total{queue="default",state="pending"} 1',
      'asynq_tasks_enqueued_total{queue="default",state="scheduled"} 1',
      'asynq_tasks_enqueued_total{queue="default",state="retry"} 0',
      'asynq_tasks_enqueued_total{queue="default",state="archived"} 1',
      'asynq_tasks_enqueued_total{queue="default",state="completed"} 0',
      'asynq_tasks_enqueued_total{queue="default",state="aggregating"} 1',
    ]);
    expect(await scrape(/^asynq_queue_memory_usage_approx_bytes{queue="default"} [1-9]/)).toHaveLength(1);
  });

  test('a sample that is requested while another one runs shows what was enqueued before it', async () => {
    const { add, broker, metrics, scrape } = await withRegistry();
    await add('a');
    const read = broker.queueStats.bind(broker);
    let answer: () => void = () => undefined;
    vi.spyOn(broker, 'queueStats').mockImplementationOnce(async (queue) => {
      const stats = await read(queue);
      await new Promise<void>((resolve) => (answer = resolve));
      return stats;
    });
    const queueMetrics = taskQueueMetrics({ broker, metrics });
    await settled();
    await add('b');
    const sampled = queueMetrics.sample();
    answer();
    await sampled;
    expect(await scrape(/^asynq_queue_size/)).toEqual(['asynq_queue_size{queue="default"} 2']);
    queueMetrics.close();
  });

  test('the metrics of queues count what limits hold back, and for how long what could run has waited', async () => {
    const { add, broker, clock, inspector, lease, metrics, scrape } = await withRegistry();
    await inspector.setLimits('default', { perKey: { concurrency: 1 } });
    for (const [id, key] of Object.entries({ a: 'x', b: 'x', c: 'x' })) await add(id, { key });
    await lease();
    clock.advance(500);
    await add('d', { key: 'y' });
    clock.advance(1_500);
    await taskQueueMetrics({ broker, metrics }).sample();
    expect(await scrape(/^escapement_tasks/)).toEqual([
      'escapement_tasks_oldest_runnable_seconds{queue="default"} 1.5',
      'escapement_tasks_held{queue="default",reason="concurrency"} 2',
      'escapement_tasks_held{queue="default",reason="rate"} 0',
    ]);
  });

  test('queues are sampled at once and at intervals, also those that are created or removed', async () => {
    const { add, broker, clock, inspector, metrics, scrape } = await withRegistry();
    await add('a');
    taskQueueMetrics({ broker, metrics, intervalMs: 1_000 });
    await settled();
    expect(await scrape(/asynq_queue_size/)).toEqual(['asynq_queue_size{queue="default"} 1']);
    await add('b');
    await add('c', { queue: 'low' });
    await clock.advanceAsync(999);
    expect(await scrape(/asynq_queue_size/)).toEqual(['asynq_queue_size{queue="default"} 1']);
    await clock.advanceAsync(1);
    await settled();
    expect(await scrape(/asynq_queue_size/)).toEqual([
      'asynq_queue_size{queue="default"} 2',
      'asynq_queue_size{queue="low"} 1',
    ]);
    await inspector.deleteQueue('default', { force: true });
    await clock.advanceAsync(1_000);
    await settled();
    expect(await scrape(/asynq_(queue|tasks_enqueued)_.*default/)).toEqual([]);
    expect(await scrape(/asynq_queue_size/)).toEqual(['asynq_queue_size{queue="low"} 1']);
  });

  test('counters go on if a queue is created again', async () => {
    const { add, broker, inspector, lease, metrics, scrape } = await withRegistry();
    const sampler = taskQueueMetrics({ broker, metrics });
    await sampler.sample();
    const run = async (id: string): Promise<void> => {
      await add(id);
      await broker.complete(await lease());
      await sampler.sample();
    };
    await run('a');
    await run('b');
    expect(await scrape(/processed/)).toEqual(['asynq_tasks_processed_total{queue="default"} 2']);
    await inspector.deleteQueue('default');
    await run('c');
    expect(await scrape(/processed/)).toEqual(['asynq_tasks_processed_total{queue="default"} 3']);
  });

  test('a queue that cannot be read does not remove the gauges of the others', async () => {
    const { add, broker, metrics, scrape } = await withRegistry();
    await add('a');
    await add('b', { queue: 'low' });
    const told: unknown[] = [];
    const onError = (error: unknown, queue: string | undefined): void => void told.push([error, queue]);
    const error = unavailable();
    const stats = broker.queueStats.bind(broker);
    const spy = vi.spyOn(broker, 'queueStats');
    const fail = (): void => {
      spy.mockImplementation((queue) => (queue === 'low' ? Promise.reject(error) : stats(queue)));
    };
    fail();
    const sampler = taskQueueMetrics({ broker, metrics, onError });
    await settled();
    expect(told).toEqual([[error, 'low']]);
    expect(await scrape(/asynq_queue_size/)).toEqual(['asynq_queue_size{queue="default"} 1']);
    spy.mockImplementation(stats);
    await sampler.sample();
    expect(await scrape(/asynq_queue_size/)).toHaveLength(2);
    fail();
    await sampler.sample();
    expect(told).toEqual(Array(2).fill([error, 'low']));
    expect(await scrape(/asynq_queue_size/)).toEqual(['asynq_queue_size{queue="default"} 1']);
    vi.spyOn(broker, 'queues').mockRejectedValueOnce(error);
    await sampler.sample();
    expect(told[2]).toEqual([error, undefined]);
    expect(await scrape(/asynq_queue_size/)).toEqual([]);
  });

  test('a queue that is removed while it is read is not an error', async () => {
    const { add, broker, inspector, metrics, scrape } = await withRegistry();
    await add('a');
    const stats = broker.queueStats.bind(broker);
    vi.spyOn(broker, 'queueStats').mockImplementation(async (queue) => {
      await inspector.deleteQueue(queue, { force: true });
      return stats(queue);
    });
    const onError = vi.fn();
    await taskQueueMetrics({ broker, metrics, onError }).sample();
    expect(onError).not.toHaveBeenCalled();
    expect(await scrape(/asynq/)).toEqual([]);
  });

  test('without onError an error is an uncaught exception, except that of an unavailable broker', async () => {
    const uncaught = uncaughtErrors();
    const { broker, metrics } = await withRegistry();
    const error = new Error('boom');
    vi.spyOn(broker, 'queues').mockRejectedValueOnce(unavailable()).mockRejectedValueOnce(error);
    await taskQueueMetrics({ broker, metrics }).sample();
    await expect.poll(() => uncaught).toEqual([error]);
  });

  test('close leaves no gauge and no timer', async () => {
    const { add, broker, clock, metrics, scrape } = await withRegistry();
    await add('a');
    const sampler = taskQueueMetrics({ broker, metrics });
    await sampler.sample();
    expect(clock.pendingWakeups).toBe(1);
    sampler.close();
    sampler.close();
    expect(clock.pendingWakeups).toBe(0);
    expect(await scrape(/asynq_(queue|tasks_enqueued)/)).toEqual([]);
  });

  test('close during a sample leaves no gauge and no timer', async () => {
    const { add, broker, clock, metrics, scrape } = await withRegistry();
    await add('a');
    const onError = vi.fn();
    taskQueueMetrics({ broker, metrics, onError }).close();
    vi.spyOn(broker, 'queues').mockRejectedValueOnce(unavailable());
    taskQueueMetrics({ broker, metrics, onError }).close();
    await settled();
    expect(onError).not.toHaveBeenCalled();
    expect(clock.pendingWakeups).toBe(0);
    expect(await scrape(/asynq/)).toEqual([]);
  });

  test('sampling ends when the broker is closed', async () => {
    const { add, broker, clock, metrics, scrape } = await withRegistry();
    await add('a');
    const sampler = taskQueueMetrics({ broker, metrics });
    await sampler.sample();
    await broker.close();
    await sampler.sample();
    expect(clock.pendingWakeups).toBe(0);
    expect(await scrape(/asynq_queue_size/)).toEqual([]);
  });

  test.each<[Partial<Record<keyof TaskQueueMetricsOptions, unknown>>, typeof Error]>([
    [{ broker: {} }, TypeError],
    [{ metrics: undefined }, TypeError],
    [{ metrics: {} }, TypeError],
    [{ intervalMs: 99 }, RangeError],
    [{ intervalMs: Infinity }, RangeError],
    [{ onError: 1 }, TypeError],
  ])('the options %j throw an error', async (options, error) => {
    const { broker, metrics } = await withRegistry();
    const wrong = { broker: broker, metrics, ...options } as TaskQueueMetricsOptions;
    expect(() => taskQueueMetrics(wrong)).toThrow(error);
  });
});
