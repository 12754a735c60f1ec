import { EscapementError } from 'escapement';
import {
  type Broker,
  type LeasedTask,
  MAINTENANCE_JOBS,
  type ReceivedTask,
  type ServerOptions,
  Task,
} from 'escapement/tasks';
import { describe, expect, vi, type Mock } from 'vitest';
import { uncaughtErrors } from '../../uncaught-errors.ts';
import { raise } from '../support/bench.ts';
import { withMethods } from '../support/with-methods.ts';
import { failing, it, unavailable, type World } from './support/world.ts';

/** A broker that must be polled, and sends no notifications. */
function polled(world: World, methods: Partial<Broker> = {}): Broker {
  return withMethods(world.broker as Broker, {
    maintenance: MAINTENANCE_JOBS,
    subscribe: (listener) =>
      world.broker.subscribe({ cancel: (request) => listener.cancel?.(request) ?? false }),
    ...methods,
  });
}

describe('a broker that must be polled', () => {
  it('queues are polled about every second', async ({ world }) => {
    const calls: number[] = [];
    const broker = polled(world, {
      dequeue: (...args) => {
        calls.push(world.clock.now());
        return world.broker.dequeue(...args);
      },
    });
    await world.start(() => undefined, { broker });
    await world.advance(60_000);
    const waits = calls.slice(1).map((atMs, i) => atMs - (calls[i] ?? 0));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(500);
    expect(Math.max(...waits)).toBeLessThanOrEqual(1_501);
    expect(new Set(waits).size).toBeGreaterThan(10);
    const info = await world.enqueue();
    await world.advance(1_500);
    expect(await world.state(info)).toBe('gone');
  });

  it.for([false, true])(
    'a queue is polled while another one is never empty, with strictPriority %s',
    async (strictPriority, { world }) => {
      const startedAtMs: number[] = [];
      const handler = (task: ReceivedTask): Promise<void> => {
        if (task.type === 'urgent') startedAtMs.push(world.clock.now());
        return new Promise((resolve) => world.clock.setTimeout(resolve, 100));
      };
      for (let i = 0; i < 100; i++) await world.enqueue('bulk', i, { queue: 'low' });
      const queues = { critical: 2, low: 1 };
      await world.start(handler, { broker: polled(world), queues, strictPriority, concurrency: 1 });
      await world.advance(2_000);
      await world.enqueue('urgent', undefined, { queue: 'critical' });
      await world.advance(1_700); // at most one and a half intervals, and the task that runs
      expect(startedAtMs).toHaveLength(1);
    },
  );

  it('dequeue is called again at once if it returned the maximum', async ({ world }) => {
    for (let i = 0; i < 10; i++) await world.enqueue();
    await world.start(() => undefined, { broker: polled(world), concurrency: 2 });
    expect(world.events.filter((event) => event === 'completed job')).toHaveLength(10);
  });

  it('a notification makes the server call dequeue at once', async ({ world }) => {
    const subscribe = world.broker.subscribe.bind(world.broker);
    await world.start(() => undefined, { broker: polled(world, { subscribe }) });
    expect(await world.state(await world.enqueue())).toBe('gone');
  });

  const JANITOR = { janitorIntervalMs: 300, janitorBatchSize: 7 };
  it.for<[string, keyof Broker, number, Partial<ServerOptions>, unknown[]]>([
    ['forward', 'forward', 1_000, {}, [['default']]],
    ['forward, by the options', 'forward', 700, { delayedTaskCheckIntervalMs: 700 }, [['default']]],
    ['deleteExpired', 'deleteExpired', 8_000, {}, [['default'], 100]],
    ['deleteExpired, by the options', 'deleteExpired', 300, JANITOR, [['default'], 7]],
  ])('the server calls %s at its interval', async ([_what, method, everyMs, options, args], { world }) => {
    const asked = vi.fn(() => Promise.resolve(0));
    await world.start(() => undefined, { broker: polled(world, { [method]: asked }), ...options });
    await world.advance(everyMs - 1);
    expect(asked).not.toHaveBeenCalled();
    await world.advance(1);
    expect(asked.mock.calls).toEqual([args]);
    await world.advance(everyMs * 3);
    expect(asked).toHaveBeenCalledTimes(4);
  });

  it('a maintenance operation is called again at once while it has changed tasks', async ({ world }) => {
    const changing = (): Mock<() => Promise<number>> =>
      vi
        .fn(() => Promise.resolve(0))
        .mockResolvedValueOnce(100)
        .mockResolvedValueOnce(3);
    const [forward, deleteExpired] = [changing(), changing()];
    const broker = polled(world, { forward, deleteExpired });
    await world.start(() => undefined, { broker, janitorIntervalMs: 1_000 });
    await world.advance(1_000);
    expect(forward).toHaveBeenCalledTimes(3);
    expect(deleteExpired).toHaveBeenCalledTimes(3);
  });

  it('maintenance goes on after an error', async ({ world }) => {
    const forward = vi.fn(() => Promise.resolve(0)).mockRejectedValueOnce(new Error('no answer'));
    await world.start(() => undefined, { broker: polled(world, { forward }) });
    await world.advance(3_000);
    expect(forward).toHaveBeenCalledTimes(3);
  });

  it.for<[method: keyof Broker, nothing: unknown]>([
    ['deleteExpired', 0],
    ['reclaimSets', 0],
    ['recover', []],
    ['groups', []],
  ])(
    'a queue that cannot be served does not keep %s from the others',
    async ([method, nothing], { world }) => {
      const served: string[] = [];
      const call = (given: string | readonly string[]): Promise<unknown> => {
        const queues = [given].flat();
        if (queues.includes('damaged')) return Promise.reject(new Error('a key has the wrong type'));
        served.push(...queues);
        return Promise.resolve(nothing);
      };
      await world.start(() => undefined, {
        broker: polled(world, { [method]: call }),
        queues: { damaged: 1, default: 1 },
        groupAggregator: () => new Task('digest'),
      });
      await world.advance(10_000);
      expect(served).toContain('default');
    },
  );

  it('a thousand tasks are recovered over a slow network before their new leases end', async ({ world }) => {
    const message = (await world.broker.task('default', (await world.enqueue()).id)).message;
    const lost = Array.from({ length: 1_000 }, (_, epoch): LeasedTask => ({ message, epoch, recoveries: 0 }));
    const recovered: number[] = [];
    const recover = vi.fn(() => Promise.resolve([])).mockResolvedValueOnce(lost as never);
    const retry = async ({ epoch }: LeasedTask): Promise<void> => {
      await new Promise<void>((resolve) => world.clock.setTimeout(resolve, 300));
      recovered.push(epoch);
    };
    const dequeue = (): Promise<[]> => Promise.resolve([]);
    await world.start(() => undefined, { broker: polled(world, { recover, retry, dequeue }) });
    await world.advance(30_000);
    expect(recovered).toEqual(lost.map(({ epoch }) => epoch));
  });

  it('recover is called at the start and every minute, with a grace for clocks', async ({ world }) => {
    const recover = vi.fn(() => Promise.resolve([]));
    const reclaimSets = vi.fn(() => Promise.resolve(0));
    await world.start(() => undefined, { broker: polled(world, { recover, reclaimSets }) });
    expect(recover.mock.calls).toEqual([[['default'], 30_000, 30_000]]);
    const before = recover.mock.calls.length;
    await world.advance(120_000);
    expect([recover.mock.calls.length - before, reclaimSets.mock.calls.length]).toEqual([2, 3]);
  });

  it('the server is announced every five seconds, for ten seconds', async ({ world }) => {
    const announceServer = vi.fn(() => Promise.resolve());
    await world.start(() => undefined, { broker: polled(world, { announceServer }) });
    await world.advance(20_000);
    expect(announceServer).toHaveBeenCalledTimes(5);
    expect(announceServer).toHaveBeenCalledWith(expect.any(Function), 10_000);
  });

  it('groups are listed every seven seconds, or every grace period', async ({ world }) => {
    const groups = vi.fn(world.broker.groups.bind(world.broker));
    const groupAggregator = (): Task => new Task('digest');
    const broker = polled(world, { groups });
    await world.start(() => undefined, { broker, groupAggregator, groupGracePeriodMs: 10_000 });
    const info = await world.enqueue('mail', 1, { group: 'ann' });
    await world.advance(13_999);
    expect(await world.state(info)).toBe('aggregating');
    await world.advance(1);
    expect([await world.state(info), groups.mock.calls.length]).toEqual(['gone', 3]);
  });

  it('running tasks are not delayed by polls', async ({ held, world }) => {
    await world.start(held.handler, { broker: polled(world), concurrency: 2 });
    await world.enqueue();
    await world.advance(1_500);
    await world.enqueue();
    await world.advance(1_500);
    expect(held.runs).toHaveLength(2);
    for (const run of held.runs) run.resolve();
  });
});

it('no maintenance operation of a self-driven broker is called', async ({ world }) => {
  const asked = vi.fn(() => Promise.resolve(0));
  const methods = { forward: asked, deleteExpired: asked, reclaimSets: asked };
  await world.start(() => undefined, { broker: withMethods(world.broker, methods) });
  await world.advance(600_000);
  expect(asked).not.toHaveBeenCalled();
});

describe('outcomes that could not be written', () => {
  it.for<['complete' | 'retry' | 'archive', number, string]>([
    ['complete', 25, 'completed'],
    ['retry', 25, 'retry'],
    ['archive', 0, 'archived'],
  ])('an outcome is written again after %s has failed', async ([method, maxRetry, state], { world }) => {
    const { broker, calls } = failing(world, method, 3);
    const handler = vi.fn(() => {
      if (method !== 'complete') throw new Error('boom');
    });
    const server = await world.start(handler, { broker, retryDelayMs: () => 60_000 });
    const info = await world.enqueue('job', undefined, { maxRetry, retentionMs: 60_000 });
    expect([await world.state(info), server.activeCount]).toEqual(['active', 0]);
    await world.advance(3_000);
    expect(await world.state(info)).toBe(state);
    expect([calls.length, handler.mock.calls.length]).toEqual([4, 1]);
    expect(world.events).toEqual(['started job', `${state === 'retry' ? 'retried' : state} job`]);
  });

  it('each retry of a write waits longer than the one before', async ({ world }) => {
    const { broker, calls } = failing(world, 'complete', 4);
    await world.start(() => undefined, { broker });
    await world.enqueue();
    await world.advance(5_000);
    const waits = calls.slice(1).map((atMs, i) => atMs - (calls[i] ?? 0));
    expect(waits).toHaveLength(4);
    for (const [i, waitMs] of waits.entries()) {
      expect(waitMs).toBeGreaterThanOrEqual(50 * 2 ** i);
      expect(waitMs).toBeLessThanOrEqual(100 * 2 ** i + 1);
    }
  });

  it('a write whose reply was lost counts as written', async ({ world }) => {
    const { broker } = failing(world, 'complete', 1, { isDone: true });
    await world.start(() => undefined, { broker });
    const info = await world.enqueue();
    await world.advance(1_000);
    expect(await world.state(info)).toBe('gone');
    expect(world.events).toEqual(['started job', 'completed job']);
  });

  it('an outcome is not written after the end of the lease', async ({ world }) => {
    const { broker, calls } = failing(world, 'complete', Infinity);
    await world.start(() => undefined, { broker });
    const info = await world.enqueue();
    await world.advance(29_999);
    expect(world.events).toEqual(['started job']);
    await world.advance(1);
    expect(world.events).toEqual(['started job', 'lost job']);
    expect(calls.length).toBeLessThan(15);
    expect(await world.find(info)).toMatchObject({ state: 'retry', message: { retried: 0 } });
  });

  it('the shutdown writes an outcome a last time', async ({ world }) => {
    const { broker } = failing(world, 'complete', 1);
    const server = await world.start(() => undefined, { broker });
    const info = await world.enqueue();
    await server.shutdown();
    expect(await world.state(info)).toBe('gone');
    expect(world.clock.pendingWakeups).toBe(0);
  });

  it('the shutdown waits for an outcome that is written slowly', async ({ world }) => {
    const complete = vi.fn(async (leased: LeasedTask) => {
      await new Promise<void>((resolve) => void world.clock.setTimeout(resolve, 10_000));
      await world.broker.complete(leased);
    });
    complete.mockRejectedValueOnce(unavailable);
    const server = await world.start(() => undefined, { broker: withMethods(world.broker, { complete }) });
    const info = await world.enqueue();
    const closed = vi.fn();
    void server.shutdown().then(closed);
    await world.advance(9_999);
    expect(closed).not.toHaveBeenCalled();
    await world.advance(1);
    expect(closed).toHaveBeenCalled();
    expect([await world.state(info), world.events]).toEqual(['gone', ['started job', 'completed job']]);
  });

  it('an outcome that the shutdown cannot write is given up', async ({ world }) => {
    const { broker } = failing(world, 'complete', Infinity);
    const server = await world.start(() => undefined, { broker });
    await world.enqueue();
    await server.shutdown();
    expect(world.events).toEqual(['started job', 'lost job']);
  });

  it('an outcome is not written again if the lease is lost', async ({ world }) => {
    const complete = vi.fn(() => Promise.reject(new EscapementError('ERR_LEASE_LOST', 'gone')));
    await world.start(() => undefined, { broker: withMethods(world.broker, { complete }) });
    await world.enqueue();
    await world.advance(5_000);
    expect([complete.mock.calls.length, world.events]).toEqual([1, ['started job', 'lost job']]);
  });
});

describe('a broker whose dequeue fails', () => {
  it('dequeue is called again with longer and longer waits', async ({ world }) => {
    const { broker, calls } = failing(world, 'dequeue', Infinity);
    await world.start(() => undefined, { broker });
    await world.advance(60_000);
    expect(calls.length).toBeGreaterThan(8);
    expect(calls.length).toBeLessThan(22);
  });

  it('a notification does not shorten the wait after a failed dequeue', async ({ world }) => {
    const { broker, calls } = failing(world, 'dequeue', Infinity);
    await world.start(() => undefined, { broker });
    for (let i = 0; i < 50; i++) await world.enqueue();
    expect(calls).toHaveLength(1);
  });

  it('after a dequeue succeeds the next wait is short again', async ({ world }) => {
    const { broker, calls } = failing(world, 'dequeue', 4);
    await world.start(() => undefined, { broker });
    const info = await world.enqueue();
    await world.advance(1_600);
    expect([await world.state(info), calls.length]).toEqual(['gone', 5]);
  });

  it('healthCheck is called at once with the error', async ({ world }) => {
    const healthCheck = vi.fn();
    const { broker } = failing(world, 'dequeue', 1);
    await world.start(() => undefined, { broker, healthCheck });
    expect(healthCheck.mock.calls).toEqual([[unavailable]]);
  });

  it('a queue whose dequeue fails does not stop the others', async ({ world }) => {
    const broker = withMethods(world.broker, {
      dequeue: (queue, limit, leaseMs) =>
        queue === 'bad' ? Promise.reject(unavailable) : world.broker.dequeue(queue, limit, leaseMs),
    });
    await world.start(() => undefined, { broker, concurrency: 2, queues: { bad: 1, default: 1 } });
    const info = await world.enqueue();
    await world.advance(10_000);
    expect(await world.state(info)).toBe('gone');
  });
});

it('a failed subscription is retried, and missed tasks are processed then', async ({ world }) => {
  const { broker, calls } = failing(world, 'subscribe', 3);
  await world.start(() => undefined, { broker });
  await world.settle();
  const info = await world.enqueue();
  expect(await world.state(info)).toBe('pending');
  await world.advance(2_000);
  expect([await world.state(info), calls.length]).toEqual(['gone', 4]);
});

it.for<[what: string, brokerOf: (world: World) => Broker, afterMs: number]>([
  ['the next poll', polled, 0],
  ['a dequeue that fails again and again', (world) => failing(world, 'dequeue', Infinity).broker, 30_000],
  ['a subscription that fails', (world) => failing(world, 'subscribe', Infinity).broker, 0],
])('a shutdown does not wait for %s', async ([_what, brokerOf, afterMs], { world }) => {
  const server = await world.start(() => undefined, { broker: brokerOf(world) });
  await world.advance(afterMs);
  await server.shutdown();
  expect(world.clock.pendingWakeups).toBe(0);
});

it('healthCheck is called at every interval, and an error of it is an uncaught exception', async ({
  world,
}) => {
  const uncaught = uncaughtErrors();
  const error = new Error('from healthCheck');
  const healthCheck = vi.fn(raise(error));
  const ping = vi.fn(() => Promise.resolve());
  const server = await world.start(() => undefined, {
    broker: withMethods(world.broker, { ping }),
    healthCheck,
  });
  ping.mockResolvedValueOnce().mockRejectedValueOnce(unavailable);
  for (let interval = 0; interval < 3; interval++) await world.advance(15_000);
  expect(healthCheck.mock.calls).toEqual([[undefined], [unavailable], [undefined]]);
  expect(uncaught).toEqual([error, error, error]);
  expect(server.status).toBe('active');
});
