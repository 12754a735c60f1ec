import { describe, expect } from 'vitest';
import { Task } from '../../../src/tasks.ts';
import { until } from '../../until.ts';
import { describeEachGo, it } from './support/describe-each-go.ts';

describe('a run that the other cancels', () => {
  describeEachGo((world) => {
    it('a run of ours that Go cancels stops, and is tried again', async ({ queue }) => {
      const { id } = await world().client.enqueue(new Task('hang', null, { queue }));
      const { heard } = await world().serveInNode(queue, { retryDelayMs: () => 3_600_000 });
      await heard('started', id);
      await world().go.inspect('CancelProcessing', id);
      await heard('stopped', id);
      await world().untilGoSays(queue, id, 'retry');
      expect((await world().go.task(queue, id)).Retried).toBe(1);
    });

    it('a run in Go that we cancel stops, and is tried again; Go does not answer', async ({ queue }) => {
      const { ID } = await world().go.enqueue({ type: 'hang', queue });
      await world().serveInGo(queue, { retryDelayMs: 3_600_000 });
      await world().go.heard('started', ID);
      const isAnswered = await world().inspector.cancelProcessing(ID, { queue, waitMs: 200 });
      expect(isAnswered).toBe(false);
      await world().go.heard('stopped', ID);
      await world().untilNodeSays(queue, ID, 'retry');
      const { lastError, retried } = await world().inspector.getTaskInfo(queue, ID);
      expect([lastError, retried]).toEqual(['context canceled', 1]);
    });

    it('a run that our inspector cancels is archived or deleted as requested, with a Go server on the same channel', async () => {
      const queue = world().newQueue();
      const other = world().newQueue();
      await world().serveInGo(other);
      const { heard } = await world().serveInNode(queue);
      for (const outcome of ['archive', 'delete'] as const) {
        const { id } = await world().client.enqueue(new Task('hang', null, { queue }));
        await heard('started', id);
        expect(await world().inspector.cancelProcessing(id, { queue, outcome, waitMs: 10_000 })).toBe(true);
        if (outcome === 'archive') await world().untilGoSays(queue, id, 'archived');
        else await world().untilGone(queue, id);
      }
    });

    it('a cancellation does nothing to a task that no server runs', async ({ queue }) => {
      const { id } = await world().client.enqueue(new Task('succeed', null, { queue }));
      await world().go.inspect('CancelProcessing', id);
      const { server } = await world().serveInNode(queue);
      await until('it is done', async () => (await world().inspector.getQueueInfo(queue)).processed === 1);
      await server.shutdown();
    });
  });
});
