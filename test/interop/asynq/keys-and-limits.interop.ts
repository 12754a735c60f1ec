import { describe, expect } from 'vitest';
import { Task } from '../../../src/tasks.ts';
import { QueueKeys } from '../../../src/tasks/broker/redis/keys.ts';
import { until } from '../../until.ts';
import { describeEachGo, it } from './support/describe-each-go.ts';

describe('a queue of ours with keys and limits', () => {
  describeEachGo((world, version) => {
    it('a Go server runs the tasks without key, and leaves those with keys to our servers', async () => {
      const queue = world().newQueue();
      const keyed = await world().client.enqueue(new Task('succeed', null, { queue, key: 'a' }));
      const { id } = await world().client.enqueue(new Task('succeed', null, { queue }));
      await world().serveInGo(queue);
      await world().untilGone(queue, id);
      await world().untilNodeSays(queue, keyed.id, 'pending');
      await expect(world().go.inspect('DeleteTask', queue, keyed.id)).rejects.toThrow();
      await expect(world().go.inspect('ArchiveTask', queue, keyed.id)).rejects.toThrow();
      const { heard } = await world().serveInNode(queue);
      await heard('started', keyed.id);
      await world().untilGone(queue, keyed.id);
    });

    it('the key of a task reaches a Go server as a header, after a Go server has recovered it', async () => {
      const queue = world().newQueue();
      const { id } = await world().client.enqueue(new Task('hang', null, { queue, key: 'a', maxRetry: 5 }));
      const [leased] = await world().broker.dequeue(queue, 1, 1_000);
      expect(leased?.message.key).toBe('a');
      await world().endLease(queue, id);
      const server = await world().serveInGo(queue, { retryDelayMs: 100 });
      const again = await world().go.heard('started', id);
      expect(again.retried).toBe(1);
      if (version.startsWith('0.26')) expect(again.headers).toEqual({ 'escapement-key': 'a' });
      await world().go.inspect('CancelProcessing', id);
      await world().go.heard('stopped', id);
      await server.shutdown();
    });

    it('tasks of a Go client run within our limits, in their turn with those of keys', async ({ queue }) => {
      await world().inspector.setLimits(queue, { concurrency: 1 });
      const ids: string[] = [];
      for (let i = 0; i < 6; i++) ids.push((await world().go.enqueue({ type: 'succeed', queue })).ID);
      const { id } = await world().client.enqueue(new Task('succeed', null, { queue, key: 'a' }));
      const active = new Set<number>();
      const { events } = await world().serveInNode(queue);
      await until('all have run', async () => {
        active.add(await world().redis.llen(new QueueKeys(queue).active));
        return events.filter(({ event }) => event === 'started').length === 7;
      });
      expect(Math.max(...active)).toBeLessThanOrEqual(1);
      const order = events.filter(({ event }) => event === 'started').map(({ task }) => task);
      expect(order.indexOf(id)).toBeLessThanOrEqual(2);
      expect(order.filter((task) => task !== id)).toEqual(ids);
    });

    it('a run of a Go server takes a place of the queue until it ends', async ({ queue }) => {
      await world().inspector.setLimits(queue, { concurrency: 1 });
      const { ID } = await world().go.enqueue({ type: 'hang', queue, maxRetry: 0 });
      await world().serveInGo(queue);
      await world().go.heard('started', ID);
      const { id } = await world().client.enqueue(new Task('succeed', null, { queue, key: 'a' }));
      expect(await world().broker.dequeue(queue, 1, 30_000)).toEqual([]);
      await world().go.inspect('CancelProcessing', ID);
      await world().go.heard('stopped', ID);
      await world().untilGoSays(queue, ID, 'archived');
      const [leased] = await world().broker.dequeue(queue, 1, 30_000);
      expect(leased?.message.id).toBe(id);
    });
  });
});
