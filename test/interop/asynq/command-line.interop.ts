import { hostname } from 'node:os';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Scheduler, Task, type TaskOptions } from '../../../src/tasks.ts';
import { until } from '../../until.ts';
import { findCommandLine } from './support/command-line.ts';
import { World } from './support/world.ts';

const cli = await findCommandLine();

describe.skipIf(cli === undefined)("asynq's command line", () => {
  let world: World;
  beforeAll(async () => {
    world = await World.start('0.25.1');
  });
  afterEach(() => world.endTest());
  afterAll(async () => {
    await world.stop();
    cli?.remove();
  });

  const asynq = (...args: string[]): Promise<string> =>
    cli?.run(...args, '-u', world.url.replace('redis://', '')) ??
    Promise.reject(new Error('it is not there'));

  const add = async (queue: string, type: string, options: TaskOptions = {}): Promise<string> =>
    (await world.client.enqueue(new Task(type, 'p', { queue }), options)).id;

  it("asynq's command line lists our queues, and what is in them, in every state", async () => {
    const queue = world.newQueue();
    const ids = {
      completed: await add(queue, 'result', { retentionMs: 3_600_000 }),
      archived: await add(queue, 'fail', { maxRetry: 0 }),
      retry: await add(queue, 'fail'),
      active: await add(queue, 'hang'),
    };
    await world.serveInNode(queue, { retryDelayMs: () => 3_600_000 });
    for (const [state, id] of Object.entries(ids)) {
      await world.untilNodeSays(queue, id, state as keyof typeof ids);
      expect(await asynq('task', 'ls', '--queue', queue, '--state', state)).toContain(id);
      expect(await asynq('task', 'inspect', '--queue', queue, '--id', id)).toContain(id);
    }
    await world.inspector.pauseQueue(queue);
    const scheduled = await add(queue, 'succeed', { processInMs: 3_600_000 });
    const pending = await add(queue, 'succeed');
    const aggregating = await add(queue, 'succeed', { group: 'g' });
    expect(await asynq('task', 'ls', '--queue', queue, '--state', 'scheduled')).toContain(scheduled);
    expect(await asynq('task', 'ls', '--queue', queue, '--state', 'pending')).toContain(pending);
    const group = ['--state', 'aggregating', '--group', 'g'];
    expect(await asynq('task', 'ls', '--queue', queue, ...group)).toContain(aggregating);
    expect(await asynq('group', 'ls', '--queue', queue)).toContain('g');
    expect(await asynq('queue', 'ls')).toContain(queue);
    expect(await asynq('queue', 'inspect', queue)).toContain(queue);
    expect(await asynq('queue', 'history', queue)).toContain(new Date().toISOString().slice(0, 10));
    expect(await asynq('stats')).toContain(queue);
  });

  it("asynq's command line lists our servers and schedules", async () => {
    const queue = world.newQueue();
    await world.serveInNode(queue);
    const scheduler = new Scheduler({ broker: world.broker });
    scheduler.register('@every 1h', new Task('tick', 'p'), { queue, maxRetry: 5, group: 'g', taskId: 'id' });
    await scheduler.start();
    world.atEndOfTest(() => scheduler.shutdown());
    await until('our server is there', async () => (await asynq('server', 'ls')).includes(queue));
    expect(await asynq('server', 'ls')).toContain(hostname().slice(0, 8));
    const entries = await asynq('cron', 'ls');
    for (const text of ['@every 1h', 'tick', 'MaxRetry(5)', 'N/A']) expect(entries).toContain(text);
  });

  it("asynq's command line changes our tasks", async () => {
    const queue = world.newQueue();
    const id = await add(queue, 'succeed', { processInMs: 3_600_000 });
    await asynq('task', 'run', '--queue', queue, '--id', id);
    await world.untilNodeSays(queue, id, 'pending');
    await asynq('task', 'archive', '--queue', queue, '--id', id);
    await world.untilNodeSays(queue, id, 'archived');
    await asynq('task', 'delete', '--queue', queue, '--id', id);
    await world.untilGone(queue, id);
  });

  it("asynq's command line shows a pending task with a key by its id, and neither lists, counts nor deletes it", async () => {
    const queue = world.newQueue();
    const keyed = await add(queue, 'succeed', { key: 'a' });
    const other = await add(queue, 'succeed');
    const listed = await asynq('task', 'ls', '--queue', queue, '--state', 'pending');
    expect(listed).toContain(other);
    expect(listed).not.toContain(keyed);
    expect(await asynq('queue', 'inspect', queue)).toMatch(/Size: +1\n/);
    const target = ['--queue', queue, '--id', keyed];
    expect(await asynq('task', 'inspect', ...target)).toMatch(/State: +pending\n/);
    for (const verb of ['archive', 'delete']) await expect(asynq('task', verb, ...target)).rejects.toThrow();
    await world.untilNodeSays(queue, keyed, 'pending');
  });
});
