import { describe, expect } from 'vitest';
import { Task, type ServerOptions, type TaskInfo } from '../../../src/tasks.ts';
import { QueueKeys } from '../../../src/tasks/broker/redis/keys.ts';
import { until } from '../../until.ts';
import { describeEachGo, it } from './support/describe-each-go.ts';
import { textOf } from './support/go-driver.ts';
import type { GoTaskInfo } from './support/go-types.ts';

const HOUR_MS = 3_600_000;

const aggregating: Partial<ServerOptions> = {
  groupGracePeriodMs: 1_000,
  groupMaxSize: 3,
  groupAggregator: (group, tasks) => {
    const payloads = tasks.map(({ payload }) => Buffer.from(payload).toString());
    return new Task('aggregated', Buffer.from(`${group}=${payloads.join()}`), { retentionMs: HOUR_MS });
  },
};

describe('a group', () => {
  describeEachGo((world) => {
    const ours = (queue: string, payload: string, options = {}): Promise<TaskInfo> =>
      world().client.enqueue(new Task('t', Buffer.from(payload), { queue, group: 'g' }), options);
    const theirs = (queue: string, payload: string, options = {}): Promise<GoTaskInfo> =>
      world().go.enqueue({ type: 't', payload, queue, group: 'g', ...options });

    it('a group is the same for both', async ({ queue }) => {
      await ours(queue, '1');
      await theirs(queue, '2');
      expect(await world().inspector.groups(queue)).toEqual([{ group: 'g', size: 2 }]);
      expect(await world().go.inspect('Groups', queue)).toEqual([{ Group: 'g', Size: 2 }]);
      expect(await world().go.inspect('ListAggregatingTasks', queue, 'g')).toHaveLength(2);
      expect(await world().inspector.listAggregatingTasks(queue, 'g')).toHaveLength(2);
    });

    it('a group of ours is aggregated by Go', async ({ queue }) => {
      for (const payload of ['1', '2', '3']) await ours(queue, payload);
      await world().serveInGo(queue, { groupGraceMs: 1_000, groupMaxSize: 3 });
      const [done] = await completed(queue);
      expect(done?.type).toBe('aggregated');
      expect(membersOf(done)).toEqual(['1', '2', '3']);
      await nothingElseIn(queue);
    });

    it('a group of Go is aggregated by us', async ({ queue }) => {
      for (const payload of ['1', '2', '3']) await theirs(queue, payload, { uniqueTtlMs: HOUR_MS });
      await world().serveInNode(queue, aggregating);
      const [done] = await completed(queue);
      expect(membersOf(done)).toEqual(['1', '2', '3']);
      await nothingElseIn(queue);
      await theirs(queue, '1', { uniqueTtlMs: HOUR_MS });
    });

    it('a group with tasks of both is aggregated by both, each task once', async ({ queue }) => {
      await world().serveInGo(queue, { groupGraceMs: 1_000, groupMaxSize: 3 });
      await world().serveInNode(queue, aggregating);
      const payloads = Array.from({ length: 20 }, (_, n) => String(n));
      for (const payload of payloads) await (Number(payload) % 2 === 0 ? ours : theirs)(queue, payload);
      const all = (): Promise<string[]> =>
        world()
          .inspector.listCompletedTasks(queue)
          .then((tasks) => tasks.flatMap(membersOf));
      await until('all are aggregated', async () => (await all()).length >= payloads.length);
      expect((await all()).sort()).toEqual([...payloads].sort());
      await nothingElseIn(queue);
    });

    it('a group takes a task for later when it is due: ours, forwarded and aggregated by Go', async () => {
      const queue = world().newQueue();
      await ours(queue, 'later', { processInMs: 1_000 });
      await world().serveInGo(queue, { groupGraceMs: 1_000 });
      expect(membersOf((await completed(queue))[0])).toEqual(['later']);
    });

    it('a group that Go took and did not aggregate goes back by us, and is seen again', async ({ queue }) => {
      await theirs(queue, '1');
      await strand(queue);
      await world().serveInNode(queue, aggregating);
      expect(membersOf((await completed(queue))[0])).toEqual(['1']);
    });

    it('a group that we took and did not aggregate goes back by Go; a new task makes it seen again', async () => {
      const queue = world().newQueue();
      const { redis, broker } = world();
      await ours(queue, '1');
      await broker.takeGroup(queue, 'g', { graceMs: 0, maxDelayMs: 0, maxSize: 1 }, HOUR_MS);
      const keys = new QueueKeys(queue);
      const [set = ''] = await redis.zrange(keys.aggregationSets, '0', '-1');
      // Time alone is faked: the set was held for long enough.
      await redis.zadd(keys.aggregationSets, 'XX', 1, set);
      await world().serveInGo(queue, { groupGraceMs: 1_000 });
      await until('Go has put it back', async () => (await redis.zcard(keys.group('g'))) === 1);
      await ours(queue, '2');
      expect(membersOf((await completed(queue))[0])).toEqual(['1', '2']);
    });

    /** As a Go server leaves a group if it dies between taking and aggregating it, two minutes ago. */
    async function strand(queue: string): Promise<void> {
      const keys = new QueueKeys(queue);
      const set = keys.aggregationSet('g', '5f0c4f2e-0000-4000-8000-000000000000');
      const { redis } = world();
      await redis.rename(keys.group('g'), set);
      await redis.srem(keys.groups, 'g');
      await redis.zadd(keys.aggregationSets, Math.floor(Date.now() / 1_000) - 1, set);
    }

    async function completed(queue: string): Promise<readonly TaskInfo[]> {
      await until('something is aggregated', async () => {
        return (await world().inspector.listCompletedTasks(queue)).length > 0;
      });
      return world().inspector.listCompletedTasks(queue);
    }

    async function nothingElseIn(queue: string): Promise<void> {
      const { completed, size, groups } = await world().inspector.getQueueInfo(queue);
      expect([size - completed, groups]).toEqual([0, 0]);
      expect(await world().redis.keys(`asynq:{${queue}}:unique:*`)).toEqual([]);
      expect(await world().redis.keys(`asynq:{${queue}}:g:*`)).toEqual([]);
      expect(await world().redis.keys(`asynq:{${queue}}:t:*`)).toHaveLength(completed);
    }
  });
});

/** The payloads of what an aggregated task was made of. */
function membersOf(task: TaskInfo | undefined): string[] {
  const [group, payloads = ''] = textOf(Buffer.from(task?.payload ?? []).toString('base64')).split('=');
  expect(group).toBe('g');
  return payloads.split(',').sort(); // by the second when they came, and then by their ids
}
