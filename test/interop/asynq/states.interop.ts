import { describe, expect, it } from 'vitest';
import { Task, type TaskInfo, type TaskOptions, type TaskState } from '../../../src/tasks.ts';
import { describeEachGo } from './support/describe-each-go.ts';
import { GO_STATES, GO_ZERO_TIME, type GoNewTask, type GoTaskInfo } from './support/go-types.ts';
import type { World } from './support/world.ts';

const STATES = ['pending', 'active', 'scheduled', 'retry', 'archived', 'completed', 'aggregating'] as const;
const later = Date.UTC(2100, 0, 1);
const LATER = '2100-01-01T00:00:00Z';

/** How a task comes into a state: what it does when it runs, and its options, which both sides call the same. */
const WAYS: Record<TaskState, { type: string; options: TaskOptions & Partial<GoNewTask>; runs: boolean }> = {
  pending: { type: 'succeed', options: {}, runs: false },
  active: { type: 'hang', options: {}, runs: true },
  scheduled: { type: 'succeed', options: { processInMs: 3_600_000 }, runs: false },
  retry: { type: 'fail', options: {}, runs: true },
  archived: { type: 'fail', options: { maxRetry: 0 }, runs: true },
  completed: { type: 'result', options: { retentionMs: 3_600_000 }, runs: true },
  aggregating: { type: 'succeed', options: { group: 'g' }, runs: false },
};

describe('a task in every state', () => {
  describeEachGo((world) => {
    it.each(STATES)('%s: ours is shown by Go', async (state) => {
      const { queue, id } = await nodeTask(world(), state);
      const info = await world().go.task(queue, id);
      expect(GO_STATES[info.State]).toBe(state);
      expect(info).toMatchObject(shownByGo(state));
      expect((await listInGo(world(), queue, state)).map((one) => [one.ID, GO_STATES[one.State]])).toEqual([
        [id, state],
      ]);
      expect(await world().go.inspect('GetQueueInfo', queue)).toMatchObject(countsInGo(state));
      expect(await world().go.inspect('Queues')).toContain(queue);
    });

    it.each(STATES)('%s: that of Go is shown by us', async (state) => {
      const { queue, id } = await goTask(world(), state);
      const info = await world().inspector.getTaskInfo(queue, id);
      expect(info.state).toBe(state);
      expect(info).toMatchObject(shownByNode(state));
      expect((await listInNode(world(), queue, state)).map((one) => [one.id, one.state])).toEqual([
        [id, state],
      ]);
      const counts = await world().inspector.getQueueInfo(queue);
      expect(counts).toMatchObject({ size: 1, [state]: 1, groups: state === 'aggregating' ? 1 : 0 });
      expect(counts.memoryUsageBytes).toBeGreaterThan(100);
      expect(await world().inspector.queues()).toContain(queue);
    });

    it.each(STATES)('%s: ours is deleted, or not, by Go', async (state) => {
      const { queue, id } = await nodeTask(world(), state);
      const deleted = world().go.inspect('DeleteTask', queue, id);
      if (state === 'active') {
        await expect(deleted).rejects.toThrow('cannot delete task in active state');
        return;
      }
      await deleted;
      expect(await leftOf(world(), queue)).toEqual([]);
    });

    it.each(STATES)('%s: that of Go is deleted, or not, by us', async (state) => {
      const { queue, id } = await goTask(world(), state);
      const deleted = world().inspector.deleteTask(queue, id);
      if (state === 'active') {
        await expect(deleted).rejects.toMatchObject({ code: 'ERR_TASK_STATE' });
        return;
      }
      await deleted;
      expect(await leftOf(world(), queue)).toEqual([]);
    });

    it.each(['scheduled', 'retry', 'archived', 'aggregating'] as const)(
      '%s: is run by the other',
      async (state) => {
        const ours = await nodeTask(world(), state);
        await world().go.inspect('RunTask', ours.queue, ours.id);
        expect(await world().inspector.getTaskInfo(ours.queue, ours.id)).toMatchObject({ state: 'pending' });
        const theirs = await goTask(world(), state);
        await world().inspector.runTask(theirs.queue, theirs.id);
        expect(GO_STATES[(await world().go.task(theirs.queue, theirs.id)).State]).toBe('pending');
      },
    );

    it.each(['pending', 'scheduled', 'retry', 'aggregating'] as const)(
      '%s: is archived by the other',
      async (state) => {
        const ours = await nodeTask(world(), state);
        await world().go.inspect('ArchiveTask', ours.queue, ours.id);
        expect(await world().inspector.getTaskInfo(ours.queue, ours.id)).toMatchObject({ state: 'archived' });
        const theirs = await goTask(world(), state);
        await world().inspector.archiveTask(theirs.queue, theirs.id);
        expect(GO_STATES[(await world().go.task(theirs.queue, theirs.id)).State]).toBe('archived');
      },
    );
  });
});

describe('all tasks of a state', () => {
  describeEachGo((world, version) => {
    it('are run, archived and deleted by Go', async () => {
      const queue = world().newQueue();
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

    it('are run, archived and deleted by us', async () => {
      const queue = world().newQueue();
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

    it.each(['pending', 'scheduled', 'archived', 'aggregating'] as const)(
      '%s: are listed in the same order by both',
      async (state) => {
        const queue = world().newQueue();
        for (const id of ['c', 'a', 'b', 'd']) {
          const task = new Task('t', null, { queue, taskId: id });
          if (state === 'scheduled')
            await world().client.enqueue(task, { processAt: later - id.charCodeAt(0) * 1_000 });
          else await world().client.enqueue(task, state === 'aggregating' ? { group: 'g' } : {});
          if (state === 'archived') await world().inspector.archiveTask(queue, id);
        }
        const ours = (await listInNode(world(), queue, state)).map(({ id }) => id);
        const theirs = (await listInGo(world(), queue, state)).map(({ ID }) => ID);
        expect(ours).toHaveLength(4);
        expect(ours).toEqual(theirs);
        if (state === 'pending') expect(ours.join('')).toBe('cabd');
        if (state === 'scheduled') expect(ours.join('')).toBe('dcba');
      },
    );

    it.skipIf(version === '0.25.1')('a scheduled one gets another payload from the other', async () => {
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
    it('is counted together, whoever has done it', async () => {
      const queue = world().newQueue();
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

    it('waits as long, whoever looks', async () => {
      const queue = world().newQueue();
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

interface Placed {
  readonly queue: string;
  readonly id: string;
}

/** Enqueued, and run, by us. */
async function nodeTask(world: World, state: TaskState): Promise<Placed> {
  const queue = world.newQueue();
  const { type, options, runs } = WAYS[state];
  const { id } = await world.client.enqueue(new Task(type, Buffer.from('p'), { queue }), options);
  if (!runs) return { queue, id };
  const { server } = await world.serveInNode(queue, { retryDelayMs: () => 3_600_000 });
  await world.untilNodeSays(queue, id, state);
  if (state !== 'active') await server.shutdown();
  return { queue, id };
}

/** Enqueued, and run, by Go. */
async function goTask(world: World, state: TaskState): Promise<Placed> {
  const queue = world.newQueue();
  const { type, options, runs } = WAYS[state];
  const { ID: id } = await world.go.enqueue({
    type,
    payload: 'p',
    queue,
    ...(options as Partial<GoNewTask>),
  });
  if (!runs) return { queue, id };
  const server = await world.serveInGo(queue, { retryDelayMs: 3_600_000 });
  await world.untilGoSays(queue, id, state);
  if (state !== 'active') await server.shutdown();
  return { queue, id };
}

function shownByGo(state: TaskState): Partial<Record<keyof GoTaskInfo, unknown>> {
  const isFailed = state === 'retry' || state === 'archived';
  return {
    LastErr: isFailed ? 'boom: ä' : '',
    LastFailedAt: isFailed ? recentText : GO_ZERO_TIME,
    CompletedAt: state === 'completed' ? recentText : GO_ZERO_TIME,
    Retried: state === 'retry' ? 1 : 0,
    Result: state === 'completed' ? Buffer.from('result of p').toString('base64') : null,
    IsOrphaned: false,
  };
}

function shownByNode(state: TaskState): Partial<Record<keyof TaskInfo, unknown>> {
  const isFailed = state === 'retry' || state === 'archived';
  const isLater = state === 'scheduled' || state === 'retry' || state === 'pending';
  return {
    lastError: isFailed ? 'boom: ä' : '',
    lastFailedAt: isFailed ? expect.any(Date) : undefined,
    completedAt: state === 'completed' ? expect.any(Date) : undefined,
    nextProcessAt: isLater ? expect.any(Date) : undefined,
    retried: state === 'retry' ? 1 : 0,
    result: state === 'completed' ? Uint8Array.from(Buffer.from('result of p')) : undefined,
    isOrphaned: false,
  };
}

const recentText: unknown = expect.stringMatching(/^20\d\d-/);

function countsInGo(state: TaskState): Record<string, unknown> {
  return { Size: 1, [capitalized(state)]: 1, Groups: state === 'aggregating' ? 1 : 0, Paused: false };
}

function capitalized(state: TaskState): string {
  return state.charAt(0).toUpperCase() + state.slice(1);
}

function listInGo(world: World, queue: string, state: TaskState): Promise<GoTaskInfo[]> {
  return world.go.inspect(`List${capitalized(state)}Tasks`, queue, ...(state === 'aggregating' ? ['g'] : []));
}

function listInNode({ inspector }: World, queue: string, state: TaskState): Promise<readonly TaskInfo[]> {
  switch (state) {
    case 'pending':
      return inspector.listPendingTasks(queue);
    case 'active':
      return inspector.listActiveTasks(queue);
    case 'scheduled':
      return inspector.listScheduledTasks(queue);
    case 'retry':
      return inspector.listRetryTasks(queue);
    case 'archived':
      return inspector.listArchivedTasks(queue);
    case 'completed':
      return inspector.listCompletedTasks(queue);
    case 'aggregating':
      return inspector.listAggregatingTasks(queue, 'g');
  }
}

/** Keys that have something to do with tasks. */
async function leftOf({ redis }: World, queue: string): Promise<string[]> {
  const keys = await redis.keys(`asynq:{${queue}}:*`);
  return keys.filter((key) => !/:(processed|failed|x:epoch)/.test(key));
}
