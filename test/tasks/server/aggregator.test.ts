import { defineTask, Task } from 'escapement/tasks';
import type { GroupAggregator, Handler, ServerOptions, StandardSchema, TaskInfo } from 'escapement/tasks';
import { describe, expect, vi } from 'vitest';
import { raise } from '../support/bench.ts';
import { withMethods } from '../support/with-methods.ts';
import { it, unavailable, type World } from './support/world.ts';

const joined: GroupAggregator = (group, tasks) =>
  new Task(
    `digest:${group}`,
    tasks.map((task) => task.json()),
  );

/** A server that aggregates, and what its handler gets. */
async function start(
  world: World,
  options: Partial<ServerOptions> = {},
): Promise<{ type: string; data: unknown; queue: string }[]> {
  const handled: { type: string; data: unknown; queue: string }[] = [];
  const handler: Handler = (task, { queue }) => {
    handled.push({ type: task.type, data: task.json(), queue });
  };
  await world.start(handler, { groupAggregator: joined, groupGracePeriodMs: 10_000, ...options });
  return handled;
}

function add(world: World, payload: unknown, options = {}): Promise<TaskInfo> {
  return world.enqueue('mail', payload, { group: 'ann', ...options });
}

describe('when a group is aggregated', () => {
  it('a group without a new task is aggregated at the end of its grace period', async ({ world }) => {
    const handled = await start(world);
    await add(world, 1);
    await world.advance(9_000);
    await add(world, 2);
    await world.advance(9_999);
    expect(handled).toEqual([]);
    await world.advance(1);
    expect(handled).toEqual([{ type: 'digest:ann', data: [1, 2], queue: 'default' }]);
    expect(await world.broker.groups('default')).toEqual([]);
  });

  it('a group is aggregated when its oldest task has waited for groupMaxDelayMs', async ({ world }) => {
    const handled = await start(world, { groupMaxDelayMs: 25_000 });
    for (let i = 0; i < 6; i++) {
      await add(world, i);
      await world.advance(5_000);
    }
    expect(handled).toEqual([{ type: 'digest:ann', data: [0, 1, 2, 3, 4], queue: 'default' }]);
  });

  it('a group is aggregated each time it has groupMaxSize tasks', async ({ world }) => {
    const handled = await start(world, { groupMaxSize: 2 });
    for (let i = 0; i < 5; i++) await add(world, i);
    expect(handled.map(({ data }) => data)).toEqual([
      [0, 1],
      [2, 3],
    ]);
    await world.advance(10_000);
    expect(handled.map(({ data }) => data)).toEqual([[0, 1], [2, 3], [4]]);
  });

  it('a group that is older than the server is aggregated', async ({ world }) => {
    await add(world, 1);
    await world.advance(60_000);
    expect(await start(world)).toEqual([{ type: 'digest:ann', data: [1], queue: 'default' }]);
  });

  it('the aggregated task is enqueued in the queue of its group, never another', async ({ world }) => {
    const groupAggregator: GroupAggregator = () => Promise.resolve(new Task('digest', 0, { queue: 'other' }));
    const handled = await start(world, { groupAggregator, queues: { low: 1, other: 1 } });
    await add(world, 1, { queue: 'low' });
    await world.advance(10_000);
    expect(handled).toEqual([{ type: 'digest', data: 0, queue: 'low' }]);
  });

  it('groups of other queues, or without an aggregator, are not aggregated', async ({ world }) => {
    const takeGroup = vi.spyOn(world.broker, 'takeGroup');
    await start(world, { queues: { other: 1 } });
    await start(world, { groupAggregator: undefined });
    const info = await add(world, 1);
    await world.advance(600_000);
    expect(await world.state(info)).toBe('aggregating');
    expect(takeGroup).not.toHaveBeenCalled();
  });
});

describe('failures of aggregators and brokers', () => {
  const validate = (): object => ({ issues: [{ message: 'not a digest' }] });
  const schema = { '~standard': { version: 1, vendor: 'test', validate } } as StandardSchema;
  const digest = defineTask('digest', { schema });

  it.for<[string, GroupAggregator]>([
    ['throws', raise(new Error('panic'))],
    ['rejects', () => Promise.reject(new Error('panic'))],
    ['returns no task', () => undefined as never],
    ['returns a received task', (_group, [task]) => task as never],
    ['returns a task that its schema rejects', () => digest.task(0)],
  ])(
    'an aggregator that %s does not lose tasks: they return to their group two minutes later',
    async ([_what, broken], { world }) => {
      const aggregator = vi.fn(joined).mockImplementationOnce(broken);
      const handled = await start(world, { groupAggregator: aggregator });
      await add(world, 1);
      await add(world, 2);
      await world.advance(10_000);
      expect([handled, await world.broker.groups('default')]).toEqual([[], []]);
      await world.advance(119_999);
      expect(handled).toEqual([]);
      await world.advance(1);
      expect(handled).toEqual([{ type: 'digest:ann', data: [1, 2], queue: 'default' }]);
    },
  );

  it('an aggregator that hangs is called again, and its late result is ignored', async ({ world }) => {
    const answers: ((task: Task) => void)[] = [];
    const hang: GroupAggregator = () => new Promise((resolve) => answers.push(resolve));
    const aggregator = vi.fn(joined).mockImplementationOnce(hang).mockImplementationOnce(hang);
    const server = world.server({ groupAggregator: aggregator, groupGracePeriodMs: 10_000 });
    const failures: unknown[] = [];
    server.on('groupFailed', ({ error }) => failures.push(error));
    const handled: string[] = [];
    await server.start(({ type }) => void handled.push(type));
    await add(world, 1);
    await world.advance(10_000 + 2 * 120_000 - 1);
    expect(aggregator).toHaveBeenCalledTimes(2);
    expect(failures).toMatchObject([{ code: 'ERR_OPERATION_EXPIRED', op: 'groupAggregator' }]);
    await world.advance(1);
    for (const answer of answers) answer(new Task('late', 0));
    await world.settle();
    expect([handled, failures.length]).toEqual([['digest:ann'], 2]);
  });

  it('the server emits groupFailed with the tasks and the error each time', async ({ world }) => {
    const error = new Error('panic');
    const failures: unknown[] = [];
    const server = world.server({ groupAggregator: raise(error), groupGracePeriodMs: 10_000 });
    server.on('groupFailed', ({ queue, group, tasks, error: why }) => {
      failures.push([queue, group, tasks.map((task) => task.json()), why]);
    });
    await server.start(() => undefined);
    await add(world, 1);
    await world.advance(10_000);
    expect(failures).toEqual([['default', 'ann', [1], error]]);
    await world.advance(130_000);
    expect(failures).toHaveLength(2);
  });

  it('an aggregator is not called for a set without a task that can be read', async ({ world }) => {
    const groupAggregator = vi.fn(joined);
    const broker = withMethods(world.broker, {
      takeGroup: async (...args) => {
        const taken = await world.broker.takeGroup(...args);
        return taken.set === undefined ? taken : { ...taken, set: { ...taken.set, messages: [] } };
      },
    });
    await start(world, { broker, groupAggregator });
    await add(world, 1);
    await world.advance(10_000);
    expect(await world.broker.groups('default')).toEqual([]);
    expect(groupAggregator).not.toHaveBeenCalled();
  });

  it('a group is checked again after the broker was unavailable', async ({ world }) => {
    let failures = 3;
    const broker = withMethods(world.broker, {
      takeGroup: (...args) =>
        failures-- > 0 ? Promise.reject(unavailable) : world.broker.takeGroup(...args),
    });
    const handled = await start(world, { broker });
    await add(world, 1);
    await world.advance(10_000);
    expect(handled).toHaveLength(1);
  });
});

describe('concurrent groups', () => {
  it('three groups are aggregated at once, the others after them', async ({ world }) => {
    const running: ((task: Task) => void)[] = [];
    const groupAggregator: GroupAggregator = () => new Promise((resolve) => running.push(resolve));
    const handled = await start(world, { groupAggregator });
    for (const group of ['a', 'b', 'c', 'd', 'e']) await add(world, 1, { group });
    await world.advance(10_000);
    expect(running).toHaveLength(3);
    running[0]?.(new Task('digest', 0));
    await world.settle();
    expect(running).toHaveLength(4);
    for (let round = 0; round < 2; round++) {
      for (const finish of running) finish(new Task('digest', 0));
      await world.settle();
    }
    expect(handled).toHaveLength(5);
  });

  it('groups whose aggregator hangs do not stop the others for ever', async ({ world }) => {
    const groupAggregator: GroupAggregator = (group) =>
      group === 'fine' ? new Task('digest:fine', 0) : new Promise(() => undefined);
    const handled = await start(world, { groupAggregator });
    for (const group of ['a', 'b', 'c', 'd', 'fine']) await add(world, 1, { group });
    await world.advance(10_000 + 120_000);
    expect(handled).toHaveLength(1);
    await add(world, 2, { group: 'fine' });
    await world.advance(10_000 + 2 * 120_000);
    expect(handled).toHaveLength(2);
  });

  it('a group with more sets than can be aggregated does not stop the others', async ({ world }) => {
    const order: string[] = [];
    const groupAggregator: GroupAggregator = async (group) => {
      order.push(group);
      await Promise.resolve();
      return new Task('digest', 0);
    };
    for (let i = 0; i < 40; i++) await add(world, i, { group: `busy ${i % 4}` });
    await add(world, 0, { group: 'quiet' });
    await world.advance(10_000);
    await start(world, { groupAggregator, groupMaxSize: 1 });
    expect(order).toHaveLength(41);
    expect(order.indexOf('quiet')).toBeLessThan(8);
  });

  it('a shutdown waits for aggregators up to a limit', async ({ world }) => {
    const groupAggregator: GroupAggregator = () => new Promise(() => undefined);
    const server = world.server({ groupAggregator, groupGracePeriodMs: 1_000 });
    const failures: unknown[] = [];
    server.on('groupFailed', ({ error }) => failures.push(error));
    await server.start(() => undefined);
    await add(world, 1);
    await world.advance(1_000);
    const closed = vi.fn();
    void server.shutdown().then(closed);
    await world.advance(7_999);
    expect(closed).not.toHaveBeenCalled();
    await world.advance(1);
    expect(closed).toHaveBeenCalled();
    expect(failures).toMatchObject([{ code: 'ERR_SERVER_CLOSED' }]);
  });
});
