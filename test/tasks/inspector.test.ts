import { type Broker, Inspector, type ListOptions, type ScanOptions } from 'escapement/tasks';
import { describe, expect } from 'vitest';
import { type Bench, codeOf, openBench, START_MS, test } from './support/bench.ts';
import { addEveryState } from './support/every-state.ts';
import { withMethods } from './support/with-methods.ts';

/** One queue with one task in each state, whose id is that state. */
async function withEveryState(): Promise<Bench> {
  const bench = await openBench();
  await addEveryState(bench, 1_000);
  return bench;
}

const ids = (tasks: readonly { id: string }[]): string[] => tasks.map(({ id }) => id);

describe('an inspector', () => {
  test('an inspector returns counts and sizes of a queue', async () => {
    const { clock, inspector } = await withEveryState();
    clock.advance(10);
    expect(await inspector.queues()).toEqual(['default']);
    expect(await inspector.getQueueInfo('default')).toEqual({
      ...{ queue: 'default', memoryUsageBytes: expect.any(Number) as number, latencyMs: 10 },
      ...{ size: 7, groups: 1 },
      ...{ active: 1, pending: 1, scheduled: 1, retry: 1, archived: 1, completed: 1, aggregating: 1 },
      ...{ processed: 3, failed: 2, processedTotal: 3, failedTotal: 2, paused: false },
      ...{ held: { concurrency: 0, rate: 0 }, runnableMs: 10 },
      timestamp: new Date(START_MS + 10),
    });
    expect(await inspector.groups('default')).toEqual([{ group: 'g', size: 1 }]);
  });

  test('an inspector returns the history of a queue, day by day', async () => {
    const { clock, inspector } = await withEveryState();
    clock.advance(86_400_000);
    expect(await inspector.history('default', 2)).toEqual([
      { queue: 'default', date: new Date(Date.UTC(2026, 10, 22)), processed: 0, failed: 0 },
      { queue: 'default', date: new Date(Date.UTC(2026, 10, 21)), processed: 3, failed: 2 },
    ]);
    expect(await inspector.history('default', 1_000)).toHaveLength(90);
  });

  test('an inspector lists the tasks of each state', async () => {
    const { inspector } = await withEveryState();
    const lists = {
      pending: inspector.listPendingTasks('default'),
      active: inspector.listActiveTasks('default'),
      scheduled: inspector.listScheduledTasks('default'),
      retry: inspector.listRetryTasks('default'),
      archived: inspector.listArchivedTasks('default'),
      completed: inspector.listCompletedTasks('default'),
      aggregating: inspector.listAggregatingTasks('default', 'g'),
    };
    for (const [state, list] of Object.entries(lists)) expect(ids(await list)).toEqual([state]);
  });

  test('a scan of an inspector reads all tasks or those of some states, and gives the event loop its turns', async () => {
    const { inspector } = await withEveryState();
    const scanned = async (options?: ScanOptions): Promise<string[][]> => {
      const pieces: string[][] = [];
      for await (const tasks of inspector.scan('default', options)) pieces.push(ids(tasks).sort());
      return pieces;
    };
    expect((await scanned({ pageSize: 2 })).map(({ length }) => length)).toEqual([2, 2, 2, 1]);
    expect(await scanned({ states: ['retry', 'archived'] })).toEqual([['archived', 'retry']]);
    expect((await scanned({ states: ['active'], pageSize: 1 })).flat()).toEqual(['active']);
    let hasTurned = false;
    setImmediate(() => (hasTurned = true));
    await scanned({ states: [], pageSize: 1 });
    expect(hasTurned).toBe(true);
    expect(await codeOf(scanned({ states: ['lost' as never] }))).toBe('ERR_INVALID_ARG_VALUE');
    await expect(inspector.scan('nowhere').next()).rejects.toMatchObject({ code: 'ERR_QUEUE_NOT_FOUND' });
  });

  test('an inspector returns all fields of a task', async () => {
    const { inspector } = await withEveryState();
    expect(await inspector.getTaskInfo('default', 'completed')).toMatchObject({
      ...{ state: 'completed', completedAt: new Date(START_MS), retentionMs: 60_000 },
      result: Buffer.from('fine'),
    });
    expect(await inspector.getTaskInfo('default', 'retry')).toMatchObject({
      ...{ state: 'retry', retried: 1, lastError: 'boom', lastFailedAt: new Date(START_MS) },
      nextProcessAt: new Date(START_MS + 5_000),
    });
    await expect(inspector.getTaskInfo('default', 'x')).rejects.toMatchObject({ code: 'ERR_TASK_NOT_FOUND' });
    await expect(inspector.getTaskInfo('x', 'x')).rejects.toMatchObject({ code: 'ERR_QUEUE_NOT_FOUND' });
  });

  test('an inspector lists in pages', async ({ add, inspector }) => {
    for (let n = 1; n <= 32; n++) await add(String(n));
    expect(await inspector.listPendingTasks('default')).toHaveLength(30);
    expect(ids(await inspector.listPendingTasks('default', { page: 2 }))).toEqual(['31', '32']);
    const second = await inspector.listPendingTasks('default', { page: 2, pageSize: 3 });
    expect(ids(second)).toEqual(['4', '5', '6']);
    expect(await inspector.listPendingTasks('default', { page: 4 })).toEqual([]);
  });

  test.each([
    [{ page: 0 }, RangeError],
    [{ page: 1.5 }, RangeError],
    [{ page: 2 ** 53 - 1 }, RangeError],
    [{ pageSize: 0 }, RangeError],
    [{ pageSize: 1_001 }, RangeError],
    [{ page: '1' }, TypeError],
    [null, TypeError],
  ])('an inspector rejects the page %j', async (options, error) => {
    const { inspector } = await withEveryState();
    await expect(inspector.listPendingTasks('default', options as ListOptions)).rejects.toThrow(error);
    await expect(inspector.listSchedulerEnqueueEvents('a', options as ListOptions)).rejects.toThrow(error);
  });

  test('an inspector changes single tasks', async () => {
    const { inspector } = await withEveryState();
    await inspector.runTask('default', 'archived');
    expect(await inspector.getTaskInfo('default', 'archived')).toMatchObject({ state: 'pending' });
    await inspector.archiveTask('default', 'pending');
    expect(await inspector.getTaskInfo('default', 'pending')).toMatchObject({ state: 'archived' });
    await inspector.deleteTask('default', 'retry');
    expect(await codeOf(inspector.deleteTask('default', 'retry'))).toBe('ERR_TASK_NOT_FOUND');
    for (const name of ['deleteTask', 'runTask', 'archiveTask'] as const)
      expect(await codeOf(inspector[name]('default', 'active'))).toBe('ERR_TASK_STATE');
  });

  test('an inspector changes all tasks in a state, and returns their number', async () => {
    const { inspector } = await withEveryState();
    const changed = [];
    for (const change of ['run', 'archive', 'delete'] as const) {
      for (const state of ['Pending', 'Scheduled', 'Retry', 'Archived', 'Completed'] as const) {
        const name = `${change}All${state}Tasks`;
        if (name in inspector) changed.push(await inspector[name as 'runAllRetryTasks']('default'));
      }
      changed.push(await inspector[`${change}AllAggregatingTasks`]('default', 'g'));
    }
    expect(changed).toEqual([...[1, 1, 1, 1], ...[5, 0, 0, 0], ...[0, 0, 0, 5, 1, 0]]);
    expect(await inspector.getQueueInfo('default')).toMatchObject({ size: 1, active: 1 });
  });

  test('an inspector cancels a run, and returns whether a server has answered', async () => {
    const { broker, inspector } = await openBench();
    const asked: unknown[] = [];
    await broker.subscribe({ cancel: (request) => asked.push(request) > 0 && request.taskId === 'a' });
    expect(await inspector.cancelProcessing('a')).toBe(true);
    const options = { queue: 'low', outcome: 'archive', waitMs: 0 } as const;
    expect(await inspector.cancelProcessing('b', options)).toBe(false);
    expect(asked).toEqual([
      { taskId: 'a', queue: undefined, outcome: 'retry' },
      { taskId: 'b', queue: 'low', outcome: 'archive' },
    ]);
    await expect(inspector.cancelProcessing('a', { outcome: 'x' as never })).rejects.toThrow(TypeError);
    await expect(inspector.cancelProcessing('a', { waitMs: -1 })).rejects.toThrow(RangeError);
  });

  test('an inspector lists servers and schedulers', async ({ broker, inspector }) => {
    const worker = { taskId: 'a', taskType: 't', payload: Buffer.from('p'), queue: 'q', startedAtMs: 5 };
    await broker.announceServer(
      () => ({
        ...{ id: 's', host: 'h', pid: 7, concurrency: 10, queues: { q: 1 }, strictPriority: true },
        ...{ status: 'active', startedAtMs: 3, workers: [{ ...worker, deadlineMs: 9 }] },
      }),
      10_000,
    );
    expect(await inspector.servers()).toEqual([
      {
        ...{ id: 's', host: 'h', pid: 7, concurrency: 10, queues: { q: 1 }, strictPriority: true },
        ...{ status: 'active', startedAt: new Date(3) },
        activeWorkers: [
          {
            ...{ taskId: 'a', taskType: 't', taskPayload: worker.payload, queue: 'q' },
            ...{ startedAt: new Date(5), deadline: new Date(9) },
          },
        ],
      },
    ]);
    const times = { nextEnqueueAtMs: 60, prevEnqueueAtMs: 0 };
    const { payload } = worker;
    const entry = { id: 'e', spec: '@every 1m', taskType: 't', payload, options: ['Queue("q")'], ...times };
    await broker.announceScheduler('x', () => [entry], 20_000);
    expect(await inspector.schedulerEntries()).toEqual([
      {
        ...{ id: 'e', spec: '@every 1m', taskType: 't', taskPayload: worker.payload },
        ...{ options: ['Queue("q")'], nextEnqueueAt: new Date(60), prevEnqueueAt: undefined },
      },
    ]);
    await broker.recordEnqueueEvent('e', { taskId: '1', atMs: 1 });
    await broker.recordEnqueueEvent('e', { taskId: '2', atMs: 2 });
    expect(await inspector.listSchedulerEnqueueEvents('e', { pageSize: 1 })).toEqual([
      { taskId: '2', enqueuedAt: new Date(2) },
    ]);
  });

  test('an inspector rejects a group of tasks in another state than aggregating, and changes nothing', async () => {
    const { inspector } = await withEveryState();
    const message = expect.stringMatching(/^group must be/) as unknown;
    const wrong = { code: 'ERR_INVALID_ARG_VALUE', message };
    const target = { state: 'pending', group: 'g' } as const;
    await expect(inspector.change('default', target, 'delete')).rejects.toMatchObject(wrong);
    await expect(inspector.list('default', 'pending', {}, 'g')).rejects.toMatchObject(wrong);
    expect(ids(await inspector.listPendingTasks('default'))).toEqual(['pending']);
  });

  test('an inspector returns any number of defects', async ({ broker }) => {
    const defect = { kind: 'id-without-task', queue: 'default', id: 'a', where: 'pending' } as const;
    const defects = Array.from({ length: 200_000 }, () => defect); // more than a function takes as arguments
    const repair = (): Promise<typeof defects> => Promise.resolve(defects);
    const inspector = new Inspector({ broker: withMethods(broker, { repair }) });
    expect(await inspector.repair({ queues: ['default'] })).toHaveLength(200_000);
  });

  test('an inspector rejects invalid names', async ({ broker, inspector }) => {
    await expect(inspector.getQueueInfo('')).rejects.toThrow(TypeError);
    await expect(inspector.getTaskInfo('a', undefined as never)).rejects.toThrow(TypeError);
    await expect(inspector.listAggregatingTasks('a', ' ')).rejects.toThrow(TypeError);
    await expect(inspector.deleteAllAggregatingTasks('a', undefined as never)).rejects.toThrow(TypeError);
    await expect(inspector.history('a', 0)).rejects.toThrow(RangeError);
    expect(() => new Inspector({ broker: {} as Broker })).toThrow(TypeError);
    expect(() => new Inspector({ broker }).close()).not.toThrow();
  });
});
