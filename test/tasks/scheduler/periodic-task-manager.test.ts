import {
  PeriodicTaskManager,
  Task,
  type PeriodicTaskConfig,
  type PeriodicTaskManagerOptions,
  type SyncChange,
} from 'escapement/tasks';
import { describe, expect } from 'vitest';
import { withMethods } from '../support/with-methods.ts';
import { HOUR_MS, it, MINUTE_MS, type World } from './scheduler-world.ts';

type Configs = PeriodicTaskConfig[] | Error;

const hourly = (type: string, options?: PeriodicTaskConfig['options']): PeriodicTaskConfig => ({
  cronSpec: '@hourly',
  task: new Task(type),
  options,
});

interface Managed extends AsyncDisposable {
  readonly manager: PeriodicTaskManager;
  readonly enqueued: string[];
  readonly changes: SyncChange[];
  readonly failures: unknown[];
  readonly rejected: unknown[];
  configs: Configs;
}

function manage(world: World, configs: Configs, options: Partial<PeriodicTaskManagerOptions> = {}): Managed {
  const manager = new PeriodicTaskManager({
    broker: world.broker,
    provider: {
      getConfigs: () =>
        managed.configs instanceof Error ? Promise.reject(managed.configs) : managed.configs,
    },
    ...options,
  });
  const managed: Managed = {
    ...{ manager, configs, enqueued: [], changes: [], failures: [], rejected: [] },
    [Symbol.asyncDispose]: () => manager.shutdown(),
  };
  manager.scheduler.on('enqueued', ({ type }) => managed.enqueued.push(type));
  manager.on('synced', (change) => managed.changes.push(change));
  manager.on('syncFailed', (error) => managed.failures.push(error));
  manager.on('configRejected', (error) => managed.rejected.push(error));
  return managed;
}

describe('a periodic task manager', () => {
  it('the manager schedules the configs of its provider, and follows their changes', async ({ world }) => {
    await using managed = manage(world, [hourly('a'), hourly('b')]);
    await managed.manager.start();
    await world.clock.advanceAsync(HOUR_MS);
    expect(managed.enqueued).toEqual(['a', 'b']);
    managed.configs = [hourly('b'), hourly('c')];
    await world.clock.advanceAsync(3 * MINUTE_MS);
    expect(managed.changes.at(-1)).toEqual({ added: 1, removed: 1 });
    await world.clock.advanceAsync(57 * MINUTE_MS);
    expect(managed.enqueued).toEqual(['a', 'b', 'b', 'c']);
  });

  it('the provider is called every three minutes, every syncIntervalMs, or by sync()', async ({ world }) => {
    await using managed = manage(world, []);
    await using often = manage(world, [], { syncIntervalMs: 1_000 });
    await managed.manager.start();
    await often.manager.start();
    await world.clock.advanceAsync(7 * MINUTE_MS);
    expect(managed.changes).toHaveLength(2);
    expect(often.changes).toHaveLength(7 * 60);
    managed.configs = [hourly('a')];
    expect(await managed.manager.sync()).toEqual({ added: 1, removed: 0 });
    expect(managed.manager.scheduler.entries()).toMatchObject([{ taskType: 'a' }]);
  });

  it('an entry goes on if all of its config is equal', async ({ world }) => {
    const make = (): PeriodicTaskConfig => ({
      cronSpec: '@hourly',
      task: new Task('a', { n: 1 }, { queue: 'low', headers: { x: '1', y: '2' } }),
      options: { maxRetry: 3, deadline: new Date(4e12) },
    });
    await using managed = manage(world, [make()]);
    await managed.manager.start();
    await world.clock.advanceAsync(HOUR_MS);
    const { manager } = managed;
    const same = { ...make(), task: new Task('a', { n: 1 }, { headers: { y: '2', x: '1' }, queue: 'low' }) };
    managed.configs = [same];
    expect(await manager.sync()).toEqual({ added: 0, removed: 0 });
    expect(manager.scheduler.entries()[0]?.prevEnqueueAt).toBeInstanceOf(Date);
    const others: PeriodicTaskConfig[] = [
      { ...make(), cronSpec: '@daily' },
      { ...make(), task: new Task('b', { n: 1 }, make().task.options) },
      { ...make(), task: new Task('a', { n: 2 }, make().task.options) },
      { ...make(), task: new Task('a', { n: 1 }, { queue: 'low', headers: { x: '1', y: '3' } }) },
      { ...make(), options: { maxRetry: 4, deadline: new Date(4e12) } },
      { ...make(), options: { maxRetry: 4, deadline: new Date(4e12), backfill: true } },
      { ...make(), options: { maxRetry: 4, deadline: new Date(4e12), backfill: true, id: 'x' } },
    ];
    for (const other of others) {
      managed.configs = [other];
      expect(await manager.sync()).toEqual({ added: 1, removed: 1 });
    }
  });

  it('a duplicate config is one entry', async ({ world }) => {
    await using managed = manage(world, [hourly('a'), hourly('a')]);
    await managed.manager.start();
    await world.clock.advanceAsync(HOUR_MS);
    expect(managed.enqueued).toEqual(['a']);
    managed.configs = [hourly('a')];
    expect(await managed.manager.sync()).toEqual({ added: 0, removed: 0 });
    managed.configs = [];
    expect(await managed.manager.sync()).toEqual({ added: 0, removed: 1 });
    await world.clock.advanceAsync(2 * HOUR_MS);
    expect(managed.enqueued).toEqual(['a']);
  });

  it('a provider that hangs is called again, and its late result is ignored', async ({ world }) => {
    const answers: ((configs: PeriodicTaskConfig[]) => void)[] = [];
    let asked = 0;
    const getConfigs = (): PeriodicTaskConfig[] | Promise<PeriodicTaskConfig[]> => {
      asked++;
      return asked === 2 ? new Promise((resolve) => answers.push(resolve)) : [hourly(`asked ${asked}`)];
    };
    await using managed = manage(world, [], { provider: { getConfigs } });
    await managed.manager.start();
    await world.clock.advanceAsync(HOUR_MS - 1);
    expect(asked).toBeGreaterThan(3);
    expect(managed.failures).toMatchObject([{ code: 'ERR_OPERATION_EXPIRED' }]);
    for (const answer of answers) answer([hourly('late')]);
    await world.clock.advanceAsync(1);
    expect(managed.enqueued).toEqual([`asked ${asked}`]);
  });

  it('an entry keeps its given id when its config changes', async ({ world }) => {
    await using managed = manage(world, [hourly('a', { id: 'report' })]);
    await managed.manager.start();
    managed.configs = [{ cronSpec: '@daily', task: new Task('a'), options: { id: 'report' } }];
    await managed.manager.sync();
    expect(managed.manager.scheduler.entries()).toMatchObject([{ id: 'report', spec: '@daily' }]);
  });
});

describe('errors', () => {
  it('start rejects for a wrong config and leaves nothing; it can be called again', async ({ world }) => {
    await using managed = manage(world, new Error('no table'));
    const { manager } = managed;
    await expect(manager.start()).rejects.toThrow('no table');
    managed.configs = [hourly('a'), { cronSpec: 'x', task: new Task('b') }];
    await expect(manager.start()).rejects.toThrow('five fields');
    managed.configs = [hourly('a'), { cronSpec: '@daily', task: 'b' as unknown as Task }];
    await expect(manager.start()).rejects.toThrow('task must be a Task');
    managed.configs = [hourly('a', { id: 'one' }), hourly('b', { id: 'one' })];
    await expect(manager.start()).rejects.toMatchObject({ code: 'ERR_SCHEDULE_ENTRY' });
    managed.configs = 'a' as unknown as PeriodicTaskConfig[];
    await expect(manager.start()).rejects.toThrow('an array');
    expect(manager.scheduler.entries()).toEqual([]);
    managed.configs = [hourly('a')];
    await manager.start();
    expect(manager.scheduler.entries()).toHaveLength(1);
  });

  it('start rejects if the broker does not answer, as that of the scheduler', async ({ world }) => {
    let isDown = true;
    const ping = (): Promise<void> => (isDown ? Promise.reject(new Error('down')) : Promise.resolve());
    await using managed = manage(world, [hourly('a')], { broker: withMethods(world.broker, { ping }) });
    await expect(managed.manager.start()).rejects.toThrow('down');
    isDown = false;
    await managed.manager.start();
    await world.clock.advanceAsync(HOUR_MS);
    expect(managed.enqueued).toEqual(['a']);
  });

  it('a provider that fails later is reported, and the entries stay', async ({ world }) => {
    await using managed = manage(world, [hourly('a')]);
    await managed.manager.start();
    managed.configs = new Error('no table');
    await world.clock.advanceAsync(HOUR_MS);
    expect(managed.failures).toHaveLength(20);
    expect(managed.enqueued).toEqual(['a']);
    await expect(managed.manager.sync()).rejects.toThrow('no table');
    managed.configs = [];
    await world.clock.advanceAsync(3 * MINUTE_MS);
    expect(managed.changes).toEqual([{ added: 0, removed: 1 }]);
  });

  it('a wrong config is reported at each sync and does not affect the others', async ({ world }) => {
    await using managed = manage(world, []);
    await managed.manager.start();
    const wrong = { cronSpec: '61 * * * *', task: new Task('b') };
    managed.configs = [hourly('a'), wrong, null as never, hourly('c')];
    await world.clock.advanceAsync(6 * MINUTE_MS);
    expect(managed.rejected).toHaveLength(4);
    expect(managed.rejected[0]).toMatchObject({ message: expect.stringContaining('61 * * * *') as string });
    expect(managed.changes).toEqual([
      { added: 2, removed: 0 },
      { added: 0, removed: 0 },
    ]);
    managed.configs = [hourly('a'), hourly('b'), hourly('c')];
    await world.clock.advanceAsync(3 * MINUTE_MS);
    expect(managed.changes.at(-1)).toEqual({ added: 1, removed: 0 });
  });

  it('an entry that was unregistered elsewhere does not stop a sync', async ({ world }) => {
    await using managed = manage(world, [hourly('a', { id: 'one' })]);
    await managed.manager.start();
    managed.manager.scheduler.unregister('one');
    managed.configs = [hourly('b')];
    expect(await managed.manager.sync()).toEqual({ added: 1, removed: 1 });
  });

  it('invalid options throw an error at once', ({ world }) => {
    expect(() => manage(world, [], { provider: {} as never })).toThrow('options.provider');
    expect(() => manage(world, [], { syncIntervalMs: 0 })).toThrow('options.syncIntervalMs');
    expect(() => manage(world, [], { location: 'Mars' })).toThrow('options.location');
    expect(() => manage(world, [], { heartbeatIntervalMs: 10 })).toThrow('options.heartbeatIntervalMs');
    expect(() => manage(world, [], { logger: {} as never })).toThrow('options.logger');
    expect(() => manage(world, [], { backfill: 1 as never })).toThrow('options.backfill');
    expect(() => manage(world, [], { preEnqueue: 1 as never })).toThrow('options.preEnqueue');
  });
});

describe('start and shutdown', () => {
  const stateError = { code: 'ERR_SCHEDULER_STATE', op: 'PeriodicTaskManager.start' };
  const syncError = { code: 'ERR_SCHEDULER_STATE', op: 'PeriodicTaskManager.sync' };

  it('start and shutdown happen once each, and leave nothing', async ({ world }) => {
    const { manager, enqueued } = manage(world, [hourly('a')]);
    await expect(manager.sync()).rejects.toMatchObject(syncError);
    await manager.start();
    await expect(manager.start()).rejects.toMatchObject(stateError);
    await manager.shutdown();
    await manager.shutdown();
    await expect(manager.start()).rejects.toMatchObject(stateError);
    await expect(manager.sync()).rejects.toMatchObject(syncError);
    expect(world.clock.pendingWakeups).toBe(0);
    await world.clock.advanceAsync(HOUR_MS);
    expect(enqueued).toEqual([]);
  });

  it('a shutdown does not wait for a provider, and ignores its late result', async ({ world }) => {
    let answer = (_configs: PeriodicTaskConfig[]): void => undefined;
    const getConfigs = (): Promise<PeriodicTaskConfig[]> => new Promise((resolve) => (answer = resolve));
    const starting = manage(world, [], { provider: { getConfigs } });
    const start = starting.manager.start();
    await starting.manager.shutdown();
    answer([hourly('a')]);
    await expect(start).rejects.toMatchObject(stateError);
    await expect(starting.manager.start()).rejects.toMatchObject(stateError);

    const running = manage(world, [], { provider: { getConfigs } });
    const started = running.manager.start();
    answer([]);
    await started;
    await world.clock.advanceAsync(3 * MINUTE_MS);
    await running.manager.shutdown();
    answer([hourly('a')]);
    await world.clock.advanceAsync(HOUR_MS);
    expect([running.changes, running.failures, running.enqueued]).toEqual([[], [], []]);
    expect(world.clock.pendingWakeups).toBe(0);
  });
});
