import { describe, expect } from 'vitest';
import { Task, type TaskInfo, type TaskOptions } from '../../../src/tasks.ts';
import { describeEachGo, it } from './support/describe-each-go.ts';

const later = Date.UTC(2100, 0, 1);
const LATER = '2100-01-01T00:00:00Z';

describe('all tasks of a state', () => {
  describeEachGo((world, version) => {
    it('all tasks of a state are run, archived and deleted by Go', async ({ queue }) => {
      const add = (options: TaskOptions): Promise<TaskInfo> =>
        world().client.enqueue(new Task('t', null, { queue }), options);
      for (let i = 0; i < 3; i++) {
        await add({ processAt: later });
        await add({ group: 'g' });
        await add({});
      }
      expect(await world().go.inspect('RunAllScheduledTasks', queue)).toBe(3);
      expect(await world().go.inspect('ArchiveAllAggregatingTasks', queue, 'g')).toBe(3);
      expect(await world().go.inspect('ArchiveAllPendingTasks', queue)).toBe(6);
      expect(await world().inspector.getQueueInfo(queue)).toMatchObject({ size: 9, archived: 9, groups: 0 });
      expect(await world().go.inspect('RunAllArchivedTasks', queue)).toBe(9);
      expect(await world().go.inspect('DeleteAllPendingTasks', queue)).toBe(9);
      await world().go.inspect('DeleteQueue', queue, false);
      expect(await world().inspector.queues()).not.toContain(queue);
    });

    it('all tasks of a state are run, archived and deleted by us', async ({ queue }) => {
      for (let i = 0; i < 3; i++) {
        await world().go.enqueue({ type: 't', queue, processAtMs: later });
        await world().go.enqueue({ type: 't', queue, group: 'g' });
        await world().go.enqueue({ type: 't', queue });
      }
      const { inspector } = world();
      expect(await inspector.runAllScheduledTasks(queue)).toBe(3);
      expect(await inspector.archiveAllAggregatingTasks(queue, 'g')).toBe(3);
      expect(await inspector.archiveAllPendingTasks(queue)).toBe(6);
      expect(await world().go.inspect('GetQueueInfo', queue)).toMatchObject({
        Size: 9,
        Archived: 9,
        Groups: 0,
      });
      expect(await inspector.runAllArchivedTasks(queue)).toBe(9);
      expect(await inspector.deleteAllPendingTasks(queue)).toBe(9);
      await inspector.deleteQueue(queue);
      expect(await world().go.inspect('Queues')).not.toContain(queue);
      expect(await world().redis.keys(`asynq:{${queue}}:*`)).toEqual([]);
    });

    it.skipIf(version === '0.25.1')('a scheduled task gets another payload from the other', async () => {
      const queue = world().newQueue();
      const options = { processAt: later, headers: { a: 'b' }, retentionMs: 1_000 };
      const { id } = await world().client.enqueue(new Task('t', 1, { queue }), options);
      const payload = Buffer.from('2').toString('base64');
      await world().go.inspect('UpdateTaskPayload', queue, id, payload);
      const changed = await world().inspector.getTaskInfo(queue, id);
      expect(Buffer.from(changed.payload).toString()).toBe('2');
      expect(changed).toMatchObject({ state: 'scheduled', headers: { a: 'b' }, retentionMs: 1_000 });
      const { ID } = await world().go.enqueue({
        type: 't',
        payload: '1',
        queue,
        processAtMs: later,
        headers: { c: 'd' },
      });
      await world().inspector.updateTaskPayload(queue, ID, 2);
      expect(await world().go.task(queue, ID)).toMatchObject({
        Payload: payload,
        Headers: { c: 'd' },
        NextProcessAt: LATER,
      });
    });
  });
});

describe('what a queue has done', () => {
  describeEachGo((world) => {
    it('what a queue has done is counted together, whichever server has done it', async ({ queue }) => {
      const { server } = await world().serveInNode(queue);
      const add = (type: string): Promise<TaskInfo> =>
        world().client.enqueue(new Task(type, null, { queue, maxRetry: 0 }));
      for (const id of [(await add('succeed')).id, (await add('revoke')).id])
        await world().untilGone(queue, id);
      await world().untilNodeSays(queue, (await add('fail')).id, 'archived');
      await server.shutdown();
      await world().serveInGo(queue);
      await world().untilGone(queue, (await add('succeed')).id);
      await world().untilGoSays(queue, (await add('skip')).id, 'archived');

      const [today] = await world().inspector.history(queue, 1);
      expect(today).toMatchObject({ processed: 5, failed: 2 });
      expect(await world().inspector.getQueueInfo(queue)).toMatchObject({
        ...{ processed: 5, failed: 2, processedTotal: 5, failedTotal: 2, archived: 2, latencyMs: 0 },
      });
      const counts = { Processed: 5, Failed: 2 };
      expect(await world().go.inspect('GetQueueInfo', queue)).toMatchObject({
        ...{ ...counts, ProcessedTotal: 5, FailedTotal: 2, Archived: 2, Paused: false },
      });
      expect(await world().go.inspect('History', queue, 2)).toMatchObject([
        counts,
        { Processed: 0, Failed: 0 },
      ]);
    });

    it('a queue has the same latency for both', async ({ queue }) => {
      const { id } = await world().client.enqueue(new Task('t', null, { queue }));
      const key = `asynq:{${queue}}:t:${id}`;
      await world().redis.hset(key, 'pending_since', `${Date.now() - 60_000}000000`);
      const { Latency } = await world().go.inspect<{ Latency: number }>('GetQueueInfo', queue);
      const { latencyMs } = await world().inspector.getQueueInfo(queue);
      for (const ms of [Latency / 1_000_000, latencyMs]) {
        expect(ms).toBeGreaterThanOrEqual(59_999);
        expect(ms).toBeLessThan(80_000);
      }
    });
  });
});
