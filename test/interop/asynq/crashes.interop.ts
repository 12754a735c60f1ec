import { describe, expect } from 'vitest';
import { Task, type LeasedTask } from '../../../src/tasks.ts';
import { QueueKeys } from '../../../src/tasks/broker/redis/keys.ts';
import { describeEachGo, it } from './support/describe-each-go.ts';
import type { World } from './support/world.ts';

/*
 * A lease is 30 seconds, clocks may differ by 30 more, and asynq looks after lost tasks when it starts and once a minute. Time alone
 * is faked: the lease of who was killed is put back in Redis, and who recovers starts after that.
 */

describe('a worker that is killed', () => {
  describeEachGo((world) => {
    it('a killed worker of ours leaves a task that Go recovers and runs', async ({ queue }) => {
      const options = { queue, uniqueTtlMs: 3_600_000, maxRetry: 5 };
      const { id } = await world().client.enqueue(new Task('hang', null, options));
      const worker = await world().startNodeWorker(queue);
      await worker.heard('started', id);
      await worker.kill();
      expect((await world().go.task(queue, id)).IsOrphaned).toBe(false);
      await world().endLease(queue, id);
      // Go's TaskInfo does not say so; its list does.
      expect(await world().go.inspect('ListActiveTasks', queue)).toMatchObject([
        { ID: id, IsOrphaned: true },
      ]);
      expect((await world().inspector.getTaskInfo(queue, id)).isOrphaned).toBe(true);

      await world().serveInGo(queue, { retryDelayMs: 100 });
      const again = await world().go.heard('started', id);
      expect(again).toMatchObject({ retried: 1, maxRetry: 5 });
      expect((await world().inspector.getTaskInfo(queue, id)).lastError).toBe('asynq: task lease expired');
      await world().go.inspect('CancelProcessing', id);
      await world().go.heard('stopped', id);
    });

    it('a killed worker of Go leaves a task that we recover and run', async ({ queue }) => {
      const other = world().startGo();
      await other.serve({ queues: { [queue]: 1 } });
      const { ID: id } = await world().go.enqueue({ type: 'hang', queue, maxRetry: 5 });
      await other.heard('started', id);
      await other.kill();
      await world().endLease(queue, id);
      expect((await world().inspector.listActiveTasks(queue)).map((one) => one.isOrphaned)).toEqual([true]);

      const { heard } = await world().serveInNode(queue);
      // That was nobody's failure: it does not count as one of its retries.
      expect(await heard('started', id)).toMatchObject({ retried: 0, maxRetry: 5 });
      expect(await world().redis.hget(new QueueKeys(queue).task(id), 'x:recoveries')).toBe('1');
      expect((await world().go.task(queue, id)).LastErr).toMatch(/lease/);
    });

    it('a task that kills its worker in Go again and again is archived by us', async ({ queue }) => {
      const { ID: id } = await world().go.enqueue({ type: 'crash', queue });
      for (const state of ['retry', 'archived'] as const) {
        const other = world().startGo();
        await other.serve({ queues: { [queue]: 1 } });
        await other.ended();
        await world().endLease(queue, id);
        // It is only recovered here: the next run is Go's again.
        const { server } = await world().serveInNode(queue, {
          maxRecoveries: 1,
          retryDelayMs: () => 3_600_000,
        });
        await world().untilGoSays(queue, id, state);
        await server.shutdown();
        const recoveries = await world().redis.hget(new QueueKeys(queue).task(id), 'x:recoveries');
        expect(recoveries).toBe(state === 'retry' ? '1' : null);
        if (state === 'retry') await world().inspector.runTask(queue, id);
      }
    });
  });
});

describe('a worker of ours that has lost its lease to a Go server', () => {
  describeEachGo((world) => {
    const operations: [string, (leased: LeasedTask) => Promise<unknown>][] = [
      ['complete', (leased) => world().broker.complete(leased)],
      ['retry', (leased) => world().broker.retry(leased, { error: 'x', isFailure: true }, Date.now())],
      ['archive', (leased) => world().broker.archive(leased, { error: 'x', isFailure: true })],
      ['release', (leased) => world().broker.release(leased)],
      ['discard', (leased) => world().broker.discard(leased)],
      ['writeResult', (leased) => world().broker.writeResult(leased, Buffer.from('stale'))],
      ['writeProgress', (leased) => world().broker.writeProgress(leased, '1')],
    ];

    it('a worker of ours that has lost its lease to a Go server can do nothing to the run of that', async () => {
      const queue = world().newQueue();
      const keys = new QueueKeys(queue);
      const { id } = await world().client.enqueue(new Task('hang', null, { queue, uniqueTtlMs: 3_600_000 }));
      const [leased] = await world().broker.dequeue(queue, 1, 1_000);
      if (leased === undefined) throw new Error('nothing was leased');
      await world().endLease(queue, id);
      await world().serveInGo(queue, { retryDelayMs: 0 });
      await world().go.heard('started', id);

      const before = await dump(world(), queue);
      for (const [name, operation] of operations) {
        await expect(operation(leased), name).rejects.toMatchObject({ code: 'ERR_LEASE_LOST' });
      }
      expect(await world().broker.extendLeases([leased], 30_000)).toEqual([leased]);
      // Go's own renewals go on meanwhile.
      expect({ ...(await dump(world(), queue)), [keys.lease]: '' }).toEqual({ ...before, [keys.lease]: '' });
      expect(Number(await world().redis.zscore(keys.lease, id))).toBeGreaterThan(Date.now() / 1_000);
    });

    it('a worker of ours that has lost its lease to a Go server can do nothing to the task when it waits for its next run', async () => {
      const queue = world().newQueue();
      const { id } = await world().client.enqueue(new Task('fail', null, { queue }));
      const [leased] = await world().broker.dequeue(queue, 1, 1_000);
      if (leased === undefined) throw new Error('nothing was leased');
      await world().endLease(queue, id);
      const server = await world().serveInGo(queue, { retryDelayMs: 3_600_000 });
      await world().untilNodeSays(queue, id, 'retry');
      await server.shutdown();
      const before = await dump(world(), queue);
      for (const [name, operation] of operations) {
        await expect(operation(leased), name).rejects.toMatchObject({ code: 'ERR_LEASE_LOST' });
      }
      expect(await dump(world(), queue)).toEqual(before);
    });
  });

  describeEachGo((world) => {
    it('a process of ours that slept loses its lease to a Go server, and ends its run without a trace', async () => {
      const queue = world().newQueue();
      const { id } = await world().client.enqueue(new Task('hang', null, { queue }));
      const worker = await world().startNodeWorker(queue, { leaseMs: 1_000 });
      await worker.heard('started', id);
      worker.freeze();
      await world().endLease(queue, id);
      await world().serveInGo(queue, { retryDelayMs: 0, concurrency: 1 });
      await world().go.heard('started', id);
      worker.thaw();
      await worker.heard('stopped', id);
      // What it might write would be there by its next renewal.
      await new Promise((resolve) => setTimeout(resolve, 500));
      const info = await world().go.task(queue, id);
      expect(info).toMatchObject({ State: 1, Retried: 1, LastErr: 'asynq: task lease expired' });
    });
  });
});

/** All that a queue has, as Redis keeps it. */
async function dump({ redis }: World, queue: string): Promise<Record<string, string>> {
  const values: Record<string, string> = {};
  for (const key of (await redis.keys(`asynq:{${queue}}:*`)).sort()) {
    values[key] = (await redis.dumpBuffer(key)).toString('hex');
  }
  return values;
}
