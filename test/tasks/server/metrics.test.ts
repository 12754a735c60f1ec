import { prometheusMetrics } from 'escapement/metrics/prometheus';
import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { Held, openWorld } from './support/world.ts';

describe('metrics', () => {
  it('the duration of runs is measured by queue, type and outcome', async () => {
    const world = await openWorld();
    const registry = new Registry();
    const held = new Held();
    await world.start(held.handler, { metrics: prometheusMetrics({ registry }) });
    for (const type of ['a', 'a', 'b']) await world.enqueue(type);
    await world.advance(250);
    held.run(0).resolve();
    held.run(1).reject(new Error('boom'));
    await world.advance(750);
    held.run(2).resolve();
    await world.settle();
    const lines = (await registry.metrics()).split('\n').filter((line) => line.includes('_sum'));
    expect(lines.sort()).toEqual([
      'escapement_task_duration_seconds_sum{queue="default",type="a",outcome="completed"} 0.25',
      'escapement_task_duration_seconds_sum{queue="default",type="a",outcome="retried"} 0.25',
      'escapement_task_duration_seconds_sum{queue="default",type="b",outcome="completed"} 1',
    ]);
  });

  it('the tasks in progress of all servers are measured until they shut down', async () => {
    const world = await openWorld();
    const registry = new Registry();
    const metrics = prometheusMetrics({ registry });
    const held = new Held();
    const options = { metrics, concurrency: 1, queues: { default: 1, low: 1 } };
    const server = await world.start(held.handler, options);
    await world.start(held.handler, options);
    await world.enqueue();
    await world.enqueue();
    await world.enqueue();
    const read = async (): Promise<string[]> =>
      (await registry.metrics()).split('\n').filter((line) => line.startsWith('escapement_tasks_in'));
    expect(await read()).toEqual([
      'escapement_tasks_in_progress{queue="default"} 2',
      'escapement_tasks_in_progress{queue="low"} 0',
    ]);
    held.run(0).resolve();
    held.run(1).resolve();
    await world.settle();
    held.run(2).resolve();
    await server.shutdown();
    expect(await read()).toEqual([
      'escapement_tasks_in_progress{queue="default"} 0',
      'escapement_tasks_in_progress{queue="low"} 0',
    ]);
  });
});
