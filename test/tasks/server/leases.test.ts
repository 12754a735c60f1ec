import { SystemTimer } from 'escapement';
import type { LeasedTask } from 'escapement/tasks';
import { ManualClock } from 'escapement/testing';
import { describe, expect, vi } from 'vitest';
import { silentLogger } from '../../../src/tasks/reporting.ts';
import { LeaseKeeper } from '../../../src/tasks/server/leases.ts';
import { RunTable, TaskRun } from '../../../src/tasks/server/run.ts';
import { withMethods } from '../support/with-methods.ts';
import { Held, it, unavailable, WALL_MS, type World } from './support/world.ts';

describe('leases', () => {
  it('leases are renewed while tasks run, and not otherwise', async ({ held, world }) => {
    const extendLeases = vi.fn(world.broker.extendLeases.bind(world.broker));
    await world.start(held.handler, { broker: withMethods(world.broker, { extendLeases }) });
    const info = await world.enqueue();
    await world.advance(1_000);
    await world.enqueue();
    await world.advance(119_000);
    expect(extendLeases).toHaveBeenCalledTimes(24);
    expect(await world.find(info)).toMatchObject({ state: 'active', isOrphaned: false });
    for (const run of held.runs) run.resolve();
    await world.advance(120_000);
    expect(extendLeases).toHaveBeenCalledTimes(24);
    await world.enqueue();
    await world.advance(5_000);
    expect(extendLeases).toHaveBeenCalledTimes(25);
    held.run(2).resolve();
  });

  it('a lease that another server has interrupts the run, and no outcome is written', async ({ world }) => {
    const held = new Held();
    const complete = vi.fn();
    const errorHandler = vi.fn();
    let isTaken = false;
    const broker = withMethods(world.broker, {
      complete,
      extendLeases: (tasks: readonly LeasedTask[]) => Promise.resolve(isTaken ? tasks : []),
    });
    await world.start(held.handler, { broker, errorHandler });
    await world.enqueue();
    await world.advance(5_000);
    expect(held.run().signal.aborted).toBe(false);
    isTaken = true;
    await world.advance(5_000);
    expect(held.run().signal.reason).toMatchObject({ code: 'ERR_LEASE_LOST', op: 'Server.process' });
    held.run().resolve();
    await world.settle();
    expect(complete).not.toHaveBeenCalled();
    expect(world.events).toEqual(['started job', 'lost job']);
  });

  it('a lease that cannot be renewed is lost at its end, to the millisecond', async ({ held, world }) => {
    const broker = withMethods(world.broker, {
      extendLeases: () => Promise.reject(unavailable),
      subscribe: (listener, queues) =>
        world.broker.subscribe({ work: (queue) => listener.work?.(queue) }, queues), // not of leases, as Redis
    });
    await world.start(held.handler, { broker });
    await world.enqueue();
    await world.advance(10);
    await world.enqueue();
    await world.advance(29_989);
    expect(held.run(0).signal.aborted).toBe(false);
    await world.advance(1);
    expect(held.run(0).signal.reason).toMatchObject({ code: 'ERR_LEASE_LOST' });
    await world.advance(9);
    expect(held.run(1).signal.aborted).toBe(false);
    await world.advance(1);
    expect(held.run(1).signal.reason).toMatchObject({ code: 'ERR_LEASE_LOST' });
    await world.advance(1_000);
    expect(world.events).toEqual(['started job', 'started job', 'lost job', 'lost job']);
  });

  it('a server renews its leases before it recovers tasks, so that a clock that was set forward costs it no run', async ({
    held,
    world,
  }) => {
    const calls: string[] = [];
    const broker = withMethods(world.broker, {
      maintenance: ['recover'],
      extendLeases: (tasks, leaseMs) => {
        calls.push(`renewed ${world.clock.now()}`);
        return world.broker.extendLeases(tasks, leaseMs);
      },
      recover: () => {
        calls.push(`recovered ${world.clock.now()}`);
        return Promise.resolve([]);
      },
    });
    await world.start(held.handler, { broker });
    await world.advance(1_000);
    await world.enqueue();
    await world.advance(59_000);
    expect(calls.slice(-2)).toEqual(['renewed 60000', 'recovered 60000']);
  });

  it('a lease is also lost at its end if the broker does not reply', async ({ held, world }) => {
    const broker = withMethods(world.broker, { extendLeases: () => new Promise(() => undefined) });
    await world.start(held.handler, { broker });
    await world.enqueue();
    await world.advance(30_000);
    await world.settle();
    expect(held.run().signal.reason).toMatchObject({ code: 'ERR_LEASE_LOST' });
  });
});

describe('tasks whose worker has died', () => {
  /** Somebody takes a task, and is never heard of again. */
  async function desert(world: World): Promise<void> {
    expect(await world.broker.dequeue('default', 1, 10_000)).toHaveLength(1);
    await world.advance(10_000);
  }

  it('a task whose worker has died is retried, also if it has no retries left', async ({ world }) => {
    const types: string[] = [];
    const info = await world.enqueue('job', undefined, { maxRetry: 0 });
    await desert(world);
    await world.start((task) => types.push(task.type));
    expect(await world.find(info)).toMatchObject({
      state: 'retry',
      nextProcessAtMs: WALL_MS + 11_000,
      message: { retried: 0, lastError: 'the lease of the task is lost' },
    });
    await world.advance(1_000);
    expect([types, await world.state(info)]).toEqual([['job'], 'gone']);
    expect(await world.broker.queueStats('default')).toMatchObject({ processed: 1, failed: 0 });
  });

  it('a task is recovered when its lease ends, if a server runs then', async ({ world }) => {
    const info = await world.enqueue();
    await world.broker.dequeue('default', 1, 10_000);
    await world.start(() => undefined);
    await world.advance(9_999);
    expect(await world.state(info)).toBe('active');
    await world.advance(1);
    expect(await world.state(info)).toBe('retry');
  });

  it('a task that has lost its worker too often is archived', async ({ world }) => {
    const info = await world.enqueue();
    for (let recoveries = 0; recoveries < 3; recoveries++) {
      await desert(world);
      const server = await world.start(() => undefined, { maxRecoveries: 2 });
      await server.shutdown();
      await world.advance(1_000);
    }
    expect(await world.find(info)).toMatchObject({
      state: 'archived',
      message: { lastError: 'the lease of the task is lost' },
    });
  });

  it('a task that was archived because it lost its workers runs when it is run by hand', async ({
    world,
  }) => {
    const info = await world.enqueue();
    await desert(world);
    await world.start(() => undefined, { maxRecoveries: 0 });
    expect(await world.state(info)).toBe('archived');
    await world.broker.change('default', { id: info.id }, 'run');
    await world.settle();
    expect([world.events, await world.state(info)]).toEqual([['started job', 'completed job'], 'gone']);
  });

  it('a task whose recovery could not be written is recovered later', async ({ world }) => {
    const info = await world.enqueue();
    await desert(world);
    let failures = 1;
    const broker = withMethods(world.broker, {
      retry: (task, failure, atMs) =>
        failures-- > 0 ? Promise.reject(unavailable) : world.broker.retry(task, failure, atMs),
    });
    await world.start(() => undefined, { broker });
    expect(await world.state(info)).toBe('active');
    await world.advance(30_000);
    expect(await world.state(info)).toBe('retry');
  });
});

it('active tasks without a lease are recovered like those whose lease has ended', async ({ world }) => {
  const info = await world.enqueue();
  const [leased] = await world.broker.dequeue('default', 1, 1e9);
  const recover = vi.fn().mockResolvedValueOnce([leased]).mockResolvedValue([]);
  await world.start(() => undefined, { broker: withMethods(world.broker, { recover }) });
  expect(recover).toHaveBeenCalledWith(['default'], 0, 30_000);
  expect(await world.state(info)).toBe('retry');
});

type Extend = (leases: readonly LeasedTask[]) => Promise<readonly LeasedTask[]>;

/** A run whose lease ended long ago, as far as is known here: no reply has come in time, as when the process was blocked. */
function blocked(extendLeases: Extend, renewedUntilMs?: number): { clock: ManualClock; run: TaskRun } {
  const clock = new ManualClock({ nowMs: 100_000 });
  const timer = new SystemTimer({ clock });
  const holder = { hold: vi.fn(), release: vi.fn(), renewedUntilMs: () => renewedUntilMs };
  const leaseHolder = (): unknown => (renewedUntilMs === undefined ? undefined : holder);
  const broker = { clock, extendLeases, leaseHolder };
  const options = { broker, leaseMs: 30_000, graceMs: 1_000, logger: silentLogger, baseContext: null };
  const leased = { message: { timeoutMs: 0, deadlineMs: 0 } } as LeasedTask;
  const run = new TaskRun(leased, { nowMs: 0, wallNowMs: 0 }, { options, timer } as never);
  const runs = new RunTable(1, { wake: vi.fn() });
  runs.add(run);
  new LeaseKeeper(options as never, timer, runs).watch([run]);
  return { clock, run };
}

it('after the process was blocked for longer than a lease, the broker decides whether it is lost', async () => {
  const { clock, run } = blocked(() => Promise.resolve([]));
  await clock.advanceAsync(5_000);
  expect([run.isLeaseLost, run.leaseUntilMs]).toEqual([false, 135_000]);
});

const silence: Extend = () => Promise.reject(unavailable);
const refusal: Extend = (leases) => Promise.resolve(leases);

it.for<[name: string, extendLeases: Extend, renewedUntilMs: number | undefined, isLost: boolean]>([
  ['a lease that has ended is lost if the broker does not answer', silence, undefined, true],
  ['a lease that its holder has renewed is not lost if the broker does not answer', silence, Infinity, false],
  ['a lease is lost if the renewal of its holder has ended too', silence, 1, true],
  ['a lease that its holder has renewed is lost if the broker returns it as lost', refusal, Infinity, true],
])('%s', async ([_, extendLeases, renewedUntilMs, isLost]) => {
  const { clock, run } = blocked(extendLeases, renewedUntilMs);
  await clock.advanceAsync(5_000);
  expect(run.isLeaseLost).toBe(isLost);
});
