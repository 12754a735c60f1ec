import { describe, expect } from 'vitest';
import { Task, type TaskInfo, type TaskOptions } from '../../../src/tasks.ts';
import { describeEachGo, it } from './support/describe-each-go.ts';
import { textOf } from './support/go-driver.ts';
import type { GoTaskInfo } from './support/go-types.ts';

const HOUR_MS = 3_600_000;

describe('a lock', () => {
  describeEachGo((world) => {
    const ours = (queue: string, options: TaskOptions = {}, type = 'succeed'): Promise<TaskInfo> =>
      world().client.enqueue(new Task(type, { user_id: 42 }, { queue, uniqueTtlMs: HOUR_MS }), options);
    const theirs = (queue: string, options = {}, type = 'succeed'): Promise<GoTaskInfo> =>
      world().go.enqueue({ type, payload: '{"user_id":42}', queue, uniqueTtlMs: HOUR_MS, ...options });
    const isTaken = { code: 'ERR_TASK_DUPLICATE' };

    it.each([{}, { processInMs: HOUR_MS }, { group: 'g' }])(
      'a lock of ours keeps out that of Go: %j',
      async (options) => {
        const queue = world().newQueue();
        await ours(queue, options);
        await expect(theirs(queue)).rejects.toThrow('task already exists');
      },
    );

    it.each([{}, { processInMs: HOUR_MS }, { group: 'g' }])(
      'a lock of Go keeps ours out: %j',
      async (options) => {
        const queue = world().newQueue();
        await theirs(queue, options);
        await expect(ours(queue)).rejects.toMatchObject(isTaken);
      },
    );

    it.each([
      ['nothing', undefined, null],
      ['no bytes', Buffer.alloc(0), ''],
      ['some', Buffer.from('p'), 'p'],
    ])('a lock is the same for a payload of %s', async (_, node, go) => {
      const queue = world().newQueue();
      await world().client.enqueue(new Task('t', node, { queue, uniqueTtlMs: HOUR_MS }));
      await expect(
        world().go.enqueue({ type: 't', payload: go, queue, uniqueTtlMs: HOUR_MS }),
      ).rejects.toThrow();
    });

    it('a lock of either lasts as long, also from when the task is due', async ({ queue }) => {
      await ours(queue, { processInMs: HOUR_MS }, 'a');
      await theirs(queue, { processInMs: HOUR_MS }, 'b');
      const keys = await world().redis.keys(`asynq:{${queue}}:unique:*`);
      const ttls = await Promise.all(keys.map((key) => world().redis.ttl(key)));
      expect(ttls).toHaveLength(2);
      for (const ttl of ttls) expect(Math.abs(ttl - 7_200)).toBeLessThan(30);
    });

    it('a lock is let go by the other, when the task is done', async ({ queue }) => {
      const { id } = await ours(queue);
      const server = await world().serveInGo(queue);
      await world().untilGone(queue, id);
      await server.shutdown();
      const { ID } = await theirs(queue);
      const node = await world().serveInNode(queue);
      await world().untilGone(queue, ID);
      await node.server.shutdown();
      await ours(queue);
    });

    it('a lock is let go by the other, when the task is deleted', async ({ queue }) => {
      await world().go.inspect('DeleteTask', queue, (await ours(queue)).id);
      await world().inspector.deleteTask(queue, (await theirs(queue)).ID);
      await ours(queue);
    });

    it('a lock of a task that Go has added to a group is let go by us, when the task is deleted', async () => {
      const queue = world().newQueue();
      await world().inspector.deleteTask(queue, (await theirs(queue, { group: 'g' })).ID);
      await ours(queue, { group: 'g' });
      expect(await world().inspector.deleteAllAggregatingTasks(queue, 'g')).toBe(1);
      await theirs(queue, { group: 'g' });
    });

    it('a lock stays with a task that is tried again by either', async ({ queue }) => {
      const { id } = await ours(queue, {}, 'fail');
      const server = await world().serveInGo(queue, { retryDelayMs: HOUR_MS });
      await world().untilNodeSays(queue, id, 'retry');
      await server.shutdown();
      await expect(ours(queue, {}, 'fail')).rejects.toMatchObject(isTaken);
      await expect(theirs(queue, {}, 'fail')).rejects.toThrow('task already exists');
    });

    it('a lock is let go by us when the task of Go is archived', async ({ queue }) => {
      const { ID } = await theirs(queue, { maxRetry: 0 }, 'fail');
      const { server } = await world().serveInNode(queue);
      await world().untilGoSays(queue, ID, 'archived');
      await server.shutdown();
      await theirs(queue, {}, 'fail');
    });

    it('a key of its own is one lock of one task for Go, however often the task was replaced', async () => {
      const queue = world().newQueue();
      const later = { queue, uniqueKey: 'report', uniqueTtlMs: HOUR_MS, processInMs: HOUR_MS };
      const { id } = await world().client.enqueue(new Task('succeed', { version: 1 }, later));
      const debounced = new Task('succeed', { version: 2 }, { ...later, onDuplicate: 'extend' });
      expect((await world().client.enqueue(debounced)).id).toBe(id);
      await world().untilGoSays(queue, id, 'scheduled');
      const now = { processInMs: 0, onDuplicate: 'replace' } as const;
      await world().client.enqueue(new Task('succeed', { version: 3 }, { ...later, ...now }));
      expect(await world().redis.keys(`asynq:{${queue}}:t:*`)).toHaveLength(1);
      expect(await world().redis.keys(`asynq:{${queue}}:unique:*`)).toHaveLength(1);
      await world().serveInGo(queue);
      expect(textOf((await world().go.heard('started', id)).payload)).toBe('{"version":3}');
      await world().untilGone(queue, id);
      expect(await world().redis.keys(`asynq:{${queue}}:unique:*`)).toEqual([]);
    });

    it('a lock lets ours replace a task of Go while it waits, and not while Go runs it', async ({
      queue,
    }) => {
      const { ID } = await theirs(queue, { processInMs: HOUR_MS }, 'hang');
      const replaced = await ours(queue, { onDuplicate: 'replace' }, 'hang');
      expect(replaced).toMatchObject({ id: ID, state: 'pending' });
      await world().serveInGo(queue);
      await world().go.heard('started', ID);
      await expect(ours(queue, { onDuplicate: 'replace' }, 'hang')).rejects.toMatchObject(isTaken);
      await world().go.inspect('CancelProcessing', ID);
      await world().go.heard('stopped', ID);
    });

    it('a lock that another task has taken is left alone by Go', async ({ queue }) => {
      const { id } = await ours(queue);
      const [lock = ''] = await world().redis.keys(`asynq:{${queue}}:unique:*`);
      await world().redis.set(lock, 'another');
      await world().serveInGo(queue);
      await world().untilGone(queue, id);
      expect(await world().redis.get(lock)).toBe('another');
    });
  });
});

describe('an id', () => {
  describeEachGo((world) => {
    it('an id that one has taken is taken for the other', async ({ queue }) => {
      const { client, go } = world();
      await client.enqueue(new Task('t', null, { queue, taskId: 'ours' }));
      await expect(go.enqueue({ type: 't', queue, taskId: 'ours' })).rejects.toThrow(
        'conflicts with another task',
      );
      await go.enqueue({ type: 't', queue, taskId: 'theirs' });
      const again = client.enqueue(new Task('t', null, { queue, taskId: 'theirs' }));
      await expect(again).rejects.toMatchObject({ code: 'ERR_TASK_ID_CONFLICT' });
    });
  });
});
