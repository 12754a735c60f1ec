import { describe, expect } from 'vitest';
import { Task } from '../../../src/tasks.ts';
import { QueueKeys } from '../../../src/tasks/broker/redis/keys.ts';
import { describeEachGo, it } from './support/describe-each-go.ts';
import { textOf } from './support/go-driver.ts';
import { GO_STATES } from './support/go-types.ts';

describe('a task that the other runs', () => {
  describeEachGo((world) => {
    it('a task that the other runs is seen as it was enqueued', async ({ queue }) => {
      const task = new Task('succeed', { user_id: 42 }, { queue, maxRetry: 7, timeoutMs: 90_000 });
      const { id } = await world().client.enqueue(task);
      const server = await world().serveInGo(queue);
      const inGo = await world().go.heard('started', id);
      expect(inGo).toMatchObject({ type: 'succeed', queue, retried: 0, maxRetry: 7 });
      expect(textOf(inGo.payload)).toBe('{"user_id":42}');
      expect(Math.abs(Date.parse(String(inGo.deadline)) - Date.now() - 90_000)).toBeLessThan(20_000);
      await world().untilGone(queue, id);
      await server.shutdown();

      const options = { type: 'succeed', payload: 'p', queue, maxRetry: 7, timeoutMs: 90_000 };
      const { ID } = await world().go.enqueue(options);
      const { heard } = await world().serveInNode(queue);
      const inNode = await heard('started', ID);
      expect(inNode).toMatchObject({ type: 'succeed', queue, payload: 'p', retried: 0, maxRetry: 7 });
      expect(Math.abs(inNode.deadlineMs - Date.now() - 90_000)).toBeLessThan(20_000);
      await world().untilGone(queue, ID);
    });

    it('a task that the other runs out of time is archived with an error that names the deadline', async () => {
      const queue = world().newQueue();
      const { id } = await world().client.enqueue(
        new Task('hang', null, { queue, timeoutMs: 1_000, maxRetry: 0 }),
      );
      const server = await world().serveInGo(queue);
      await world().untilNodeSays(queue, id, 'archived');
      expect((await world().inspector.getTaskInfo(queue, id)).lastError).toBe('context deadline exceeded');
      await server.shutdown();
      const { ID } = await world().go.enqueue({ type: 'hang', queue, timeoutMs: 1_000, maxRetry: 0 });
      await world().serveInNode(queue);
      await world().untilGoSays(queue, ID, 'archived');
      expect((await world().go.task(queue, ID)).LastErr).toMatch(/tim/);
    });

    it.each(['skip', 'revoke'])('a task that the other runs is not tried again: %s', async (type) => {
      const queue = world().newQueue();
      const { id } = await world().client.enqueue(new Task(type, null, { queue }));
      const server = await world().serveInGo(queue);
      await settled(id);
      await server.shutdown();
      const { ID } = await world().go.enqueue({ type, queue });
      await world().serveInNode(queue);
      await settled(ID);

      async function settled(task: string): Promise<void> {
        if (type === 'revoke') await world().untilGone(queue, task);
        else await world().untilNodeSays(queue, task, 'archived');
      }
    });

    it('a task that the other runs was given back by a server that shuts down: it goes on with the other', async () => {
      const queue = world().newQueue();
      const { id } = await world().client.enqueue(new Task('hang', null, { queue, maxRetry: 3 }));
      const node = await world().serveInNode(queue, { shutdownTimeoutMs: 0 });
      await node.heard('started', id);
      await node.server.shutdown();
      const server = await world().serveInGo(queue, { shutdownMs: 1 });
      expect(await world().go.heard('started', id)).toMatchObject({ retried: 0, maxRetry: 3 });
      await server.shutdown();
      expect(GO_STATES[(await world().go.task(queue, id)).State]).toBe('pending');
      const again = await world().serveInNode(queue);
      expect(await again.heard('started', id)).toMatchObject({ retried: 0, maxRetry: 3 });
    });

    it('a task comes in its turn, whichever client has enqueued it', async ({ queue }) => {
      const ids: string[] = [];
      for (let i = 0; i < 3; i++) {
        ids.push((await world().client.enqueue(new Task('succeed', null, { queue }))).id);
        ids.push((await world().go.enqueue({ type: 'succeed', queue })).ID);
      }
      const server = await world().serveInGo(queue, { concurrency: 1 });
      await world().go.heard('started', ids[2] ?? '');
      await server.shutdown();
      const seen = world()
        .go.events.filter((one) => one.queue === queue)
        .map(({ task }) => task);
      const { events, heard } = await world().serveInNode(queue, { concurrency: 1 });
      const last = await world().client.enqueue(new Task('succeed', null, { queue }));
      await heard('started', last.id);
      expect([...seen, ...events.map(({ task }) => task)]).toEqual([...ids, last.id]);
    });

    it('a task that the other runs leaves a result for the other', async ({ queue }) => {
      const options = { queue, retentionMs: 60_000 };
      const { id } = await world().client.enqueue(new Task('result', Buffer.from('ours'), options));
      const server = await world().serveInGo(queue);
      const done = await world().inspector.waitFor(id, { queue });
      expect(Buffer.from(done.result ?? []).toString()).toBe('result of ours');
      await server.shutdown();

      const { ID } = await world().go.enqueue({ type: 'result', payload: 'theirs', ...options });
      await world().serveInNode(queue);
      await world().untilGoSays(queue, ID, 'completed');
      expect(textOf((await world().go.task(queue, ID)).Result)).toBe('result of theirs');
    });

    it('a task is removed by either when its retention is over', async ({ queue }) => {
      const { id } = await world().client.enqueue(new Task('succeed', null, { queue, retentionMs: 1_000 }));
      const { server } = await world().serveInNode(queue);
      await world().untilNodeSays(queue, id, 'completed');
      await server.shutdown();
      const go = await world().serveInGo(queue);
      await world().untilGone(queue, id);
      const { ID } = await world().go.enqueue({ type: 'succeed', queue, retentionMs: 1_000 });
      await world().untilGoSays(queue, ID, 'completed');
      await go.shutdown();
      await world().serveInNode(queue, { janitorIntervalMs: 100 });
      await world().untilGone(queue, ID);
    });
  });
});

describe('a task that fails in one language and goes on in the other', () => {
  describeEachGo((world) => {
    it('a task that fails in one language and goes on in the other keeps count: first with us, then in Go', async () => {
      const queue = world().newQueue();
      const { id } = await world().client.enqueue(new Task('fail', null, { queue, maxRetry: 2 }));
      const { server } = await world().serveInNode(queue, { retryDelayMs: () => 3_600_000 });
      await world().untilGoSays(queue, id, 'retry');
      await server.shutdown();
      const first = await world().go.task(queue, id);
      expect(first).toMatchObject({ Retried: 1, MaxRetry: 2, LastErr: 'boom: ä' });
      expect(Math.abs(Date.parse(first.LastFailedAt) - Date.now())).toBeLessThan(30_000);
      expect(Date.parse(first.NextProcessAt) - Date.now()).toBeGreaterThan(3_000_000);

      await world().go.inspect('RunTask', queue, id);
      await world().serveInGo(queue, { retryDelayMs: 100 });
      await world().untilNodeSays(queue, id, 'archived');
      expect(
        world()
          .go.events.filter(({ task }) => task === id)
          .map(({ retried }) => retried),
      ).toEqual([1, 2]);
      const last = await world().inspector.getTaskInfo(queue, id);
      expect(last).toMatchObject({ retried: 2, maxRetry: 2, lastError: 'boom: ä' });
    });

    it('a task that fails in one language and goes on in the other keeps count: first in Go, then with us', async () => {
      const queue = world().newQueue();
      const { ID: id } = await world().go.enqueue({ type: 'fail', queue, maxRetry: 2 });
      const server = await world().serveInGo(queue, { retryDelayMs: 3_600_000 });
      await world().untilNodeSays(queue, id, 'retry');
      await server.shutdown();
      const first = await world().inspector.getTaskInfo(queue, id);
      expect(first).toMatchObject({ retried: 1, maxRetry: 2, lastError: 'boom: ä' });
      expect(Math.abs(Number(first.lastFailedAt) - Date.now())).toBeLessThan(30_000);
      expect(Number(first.nextProcessAt) - Date.now()).toBeGreaterThan(3_000_000);

      await world().inspector.runTask(queue, id);
      const { events } = await world().serveInNode(queue);
      await world().untilGoSays(queue, id, 'archived');
      expect(events.map(({ retried }) => retried)).toEqual([1, 2]);
      expect(await world().go.task(queue, id)).toMatchObject({ Retried: 2, MaxRetry: 2, LastErr: 'boom: ä' });
    });

    it('a task that fails in one language and goes on in the other is forwarded by the other when it is due', async () => {
      const queue = world().newQueue();
      const { id } = await world().client.enqueue(new Task('fail-once', null, { queue }));
      const { server, heard } = await world().serveInNode(queue, { retryDelayMs: () => 1_000 });
      await heard('started', id);
      await world().untilGoSays(queue, id, 'retry');
      await server.shutdown();
      const go = await world().serveInGo(queue);
      expect(await world().go.heard('started', id)).toMatchObject({ retried: 1 });
      await world().untilGone(queue, id);
      const { ID } = await world().go.enqueue({ type: 'fail-once', queue });
      await world().untilNodeSays(queue, ID, 'retry');
      await go.shutdown();
      const again = await world().serveInNode(queue);
      expect(await again.heard('started', ID)).toMatchObject({ retried: 1 });
      await world().untilGone(queue, ID);
    });

    it('a task that fails in one language and goes on in the other is scheduled by one and run by the other', async () => {
      const queue = world().newQueue();
      const { id } = await world().client.enqueue(new Task('succeed', null, { queue, processInMs: 1_000 }));
      const go = await world().serveInGo(queue);
      await world().go.heard('started', id);
      await go.shutdown();
      const { ID } = await world().go.enqueue({ type: 'succeed', queue, processInMs: 1_000 });
      await (await world().serveInNode(queue)).heard('started', ID);
    });

    it('a task that fails in one language and goes on in the other keeps what we have added, which Go leaves alone', async () => {
      const queue = world().newQueue();
      const keys = new QueueKeys(queue);
      const { id } = await world().client.enqueue(new Task('progress', null, { queue, maxRetry: 1 }));
      const { server } = await world().serveInNode(queue);
      await world().untilNodeSays(queue, id, 'retry');
      await server.shutdown();
      await world().redis.hset(keys.task(id), 'x:recoveries', 2);
      const epoch = await world().redis.get(keys.epoch);
      await world().go.inspect('RunTask', queue, id);
      // In Go the handler has nothing to say of this type, and is content: it must fail for the task to stay.
      await world().go.inspect('ArchiveTask', queue, id);
      await world().go.inspect('RunTask', queue, id);
      expect(GO_STATES[(await world().go.task(queue, id)).State]).toBe('pending');
      expect((await world().inspector.getTaskInfo(queue, id)).progress).toEqual({ percent: 50 });
      const [leased] = await world().broker.dequeue(queue, 1, 30_000);
      expect(leased).toMatchObject({ recoveries: 2, message: { id, retried: 1 } });
      expect(leased?.epoch).toBeGreaterThan(Number(epoch));
    });

    it('a task that fails in one language and goes on in the other keeps what we have added also where Go writes all of it anew', async () => {
      const queue = world().newQueue();
      const keys = new QueueKeys(queue);
      const { id } = await world().client.enqueue(new Task('fail', null, { queue, maxRetry: 1 }));
      await world().redis.hset(keys.task(id), { 'x:recoveries': 1, 'x:progress': '"half"' });
      const server = await world().serveInGo(queue, { retryDelayMs: 3_600_000 });
      await world().untilNodeSays(queue, id, 'retry');
      await server.shutdown();
      expect(await world().redis.hmget(keys.task(id), 'x:recoveries', 'x:progress')).toEqual(['1', '"half"']);
    });
  });
});

describe('a queue that one has paused', () => {
  describeEachGo((world) => {
    it('a queue that one has paused is paused for the other, until either ends it', async ({ queue }) => {
      const { events, heard } = await world().serveInNode(queue);
      await heard('started', (await world().client.enqueue(new Task('succeed', null, { queue }))).id);
      await world().serveInGo(queue);
      await world().inspector.pauseQueue(queue);
      const { ID } = await world().go.enqueue({ type: 'succeed', queue });
      await expect(world().go.inspect('PauseQueue', queue)).rejects.toThrow('already paused');
      expect(await world().go.inspect('GetQueueInfo', queue)).toMatchObject({ Paused: true, Pending: 1 });
      await world().go.inspect('UnpauseQueue', queue);
      await world().untilGone(queue, ID);

      await world().go.inspect('PauseQueue', queue);
      await expect(world().inspector.pauseQueue(queue)).rejects.toMatchObject({ code: 'ERR_QUEUE_STATE' });
      const [before, goBefore] = [events.length, world().go.events.length];
      const { id } = await world().client.enqueue(new Task('succeed', null, { queue }));
      // Several of their polls: 50 ms each.
      await new Promise((resolve) => setTimeout(resolve, 500));
      expect([events.length, world().go.events.length]).toEqual([before, goBefore]);
      await world().inspector.unpauseQueue(queue);
      await world().untilGone(queue, id);
    });
  });
});
