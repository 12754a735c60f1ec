import { describe, expect, it } from 'vitest';
import { Task, type TaskInfo, type TaskOptions, type TaskState } from '../../../src/tasks.ts';
import { describeEachGo } from './support/describe-each-go.ts';
import { GO_STATES, GO_ZERO_TIME, type GoNewTask, type GoTaskInfo } from './support/go-types.ts';
import type { World } from './support/world.ts';

const STATES = ['pending', 'active', 'scheduled', 'retry', 'archived', 'completed', 'aggregating'] as const;
const later = Date.UTC(2100, 0, 1);

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
    it.each(STATES)('a task of ours is shown by Go: %s', async (state) => {
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

    it.each(STATES)('a task of Go is shown by us: %s', async (state) => {
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

    it.each(STATES)('a task of ours is deleted by Go, unless it is active: %s', async (state) => {
      const { queue, id } = await nodeTask(world(), state);
      const deleted = world().go.inspect('DeleteTask', queue, id);
      if (state === 'active') {
        await expect(deleted).rejects.toThrow('cannot delete task in active state');
        return;
      }
      await deleted;
      expect(await leftOf(world(), queue)).toEqual([]);
    });

    it.each(STATES)('a task of Go is deleted by us, unless it is active: %s', async (state) => {
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
      'a task is run by the other: %s',
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
      'a task is archived by the other: %s',
      async (state) => {
        const ours = await nodeTask(world(), state);
        await world().go.inspect('ArchiveTask', ours.queue, ours.id);
        expect(await world().inspector.getTaskInfo(ours.queue, ours.id)).toMatchObject({ state: 'archived' });
        const theirs = await goTask(world(), state);
        await world().inspector.archiveTask(theirs.queue, theirs.id);
        expect(GO_STATES[(await world().go.task(theirs.queue, theirs.id)).State]).toBe('archived');
      },
    );

    it.each(['pending', 'scheduled', 'archived', 'aggregating'] as const)(
      'tasks are listed in the same order by both: %s',
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

function capitalized<S extends TaskState>(state: S): Capitalize<S> {
  return (state.charAt(0).toUpperCase() + state.slice(1)) as Capitalize<S>;
}

function listInGo(world: World, queue: string, state: TaskState): Promise<GoTaskInfo[]> {
  return world.go.inspect(`List${capitalized(state)}Tasks`, queue, ...(state === 'aggregating' ? ['g'] : []));
}

function listInNode({ inspector }: World, queue: string, state: TaskState): Promise<readonly TaskInfo[]> {
  if (state === 'aggregating') return inspector.listAggregatingTasks(queue, 'g');
  return inspector[`list${capitalized(state)}Tasks` as const](queue);
}

/** Keys that have something to do with tasks. */
async function leftOf({ redis }: World, queue: string): Promise<string[]> {
  const keys = await redis.keys(`asynq:{${queue}}:*`);
  return keys.filter((key) => !/:(processed|failed|x:epoch)/.test(key));
}
