import { once } from 'node:events';
import type { Handler, LeasedTask } from 'escapement/tasks';
import { describe, expect, vi } from 'vitest';
import { idsIn } from '../../conformance/broker/support.ts';
import { withMethods } from '../support/with-methods.ts';
import { it, unavailable, WALL_MS, type World } from './support/world.ts';

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGTSTP'] as const;

/** Whether a promise has settled, after promise jobs have. */
async function hasSettled(world: World, promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void promise.finally(() => (settled = true)).catch(() => undefined);
  await world.settle();
  return settled;
}

describe('the status of a server', () => {
  it('a server is new, active, stopped and closed', async ({ world }) => {
    const server = world.server();
    expect(server.status).toBe('new');
    server.stop();
    expect(server.status).toBe('new');
    await server.start(() => undefined);
    expect(server.status).toBe('active');
    server.stop();
    expect(server.status).toBe('stopped');
    await server.shutdown();
    expect(server.status).toBe('closed');
    server.stop();
    expect(server.status).toBe('closed');
  });

  it('a second start rejects, also before the first has ended', async ({ world }) => {
    const server = world.server();
    const refusal = { code: 'ERR_SERVER_STATE', op: 'Server.start' };
    const started = server.start(() => undefined);
    await expect(server.start(() => undefined)).rejects.toMatchObject(refusal);
    await started;
    await expect(server.start(() => undefined)).rejects.toMatchObject(refusal);
    server.stop();
    await expect(server.start(() => undefined)).rejects.toMatchObject(refusal);
  });

  it('a server that was shut down cannot be started', async ({ world }) => {
    const refusal = { code: 'ERR_SERVER_CLOSED', message: 'the server was shut down' };
    for (const server of [world.server(), await world.start(() => undefined)]) {
      await server.shutdown();
      await expect(server.start(() => undefined)).rejects.toMatchObject(refusal);
    }
  });

  it('a broker that is closed before the server is logged and reported to healthCheck', async ({ world }) => {
    const told = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };
    const healthCheck = vi.fn();
    const server = world.server({ logger: told, healthCheck });
    await server.start(() => undefined);
    await world.broker.close();
    await world.settle();
    expect(told.error).toHaveBeenCalledOnce();
    expect(healthCheck).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ code: 'ERR_BROKER_CLOSED', op: 'Server.start' }),
    );
    await server.shutdown();
    expect([server.status, world.clock.pendingWakeups]).toEqual(['closed', 0]);
  });

  it('a shutdown during the start ends the start', async ({ world }) => {
    const server = world.server();
    const started = server.start(() => undefined);
    const closed = server.shutdown();
    await expect(started).rejects.toMatchObject({ code: 'ERR_SERVER_CLOSED' });
    await closed;
    expect([server.status, world.clock.pendingWakeups]).toEqual(['closed', 0]);
  });

  it('a shutdown ends a run, which resolves, and one that cannot start rejects; neither leaves a listener', async ({
    world,
  }) => {
    const listeners = (): number[] => SIGNALS.map((signal) => process.listenerCount(signal));
    const before = listeners();
    const server = world.server();
    const run = server.run(() => undefined);
    await world.settle();
    expect(listeners()).toEqual(before.map((count) => count + 1));
    await server.shutdown();
    await run;
    expect(server.status).toBe('closed');
    await expect(server.run(() => undefined)).rejects.toMatchObject({ code: 'ERR_SERVER_CLOSED' });
    expect(listeners()).toEqual(before);
  });

  it('an invalid handler is a TypeError', async ({ world }) => {
    await expect(world.server().start(5 as never)).rejects.toThrow(
      'handler must be a function or a ServeMux. Received 5',
    );
  });

  it('start rejects if the broker does not answer, and can be called again', async ({ world }) => {
    const ping = vi.fn().mockRejectedValueOnce(unavailable).mockResolvedValue(undefined);
    const server = world.server({ broker: withMethods(world.broker, { ping }) });
    await expect(server.start(() => undefined)).rejects.toBe(unavailable);
    expect(server.status).toBe('new');
    await server.start(() => undefined);
    expect(server.status).toBe('active');
  });

  it('ping calls the broker', async ({ world }) => {
    const broker = withMethods(world.broker, { ping: () => Promise.reject(unavailable) });
    await expect(world.server({ broker }).ping()).rejects.toBe(unavailable);
  });
});

it('a stopped server takes no more tasks, and running tasks go on', async ({ held, world }) => {
  const server = await world.start(held.handler);
  const first = await world.enqueue();
  server.stop();
  const second = await world.enqueue();
  held.run().resolve();
  await world.advance(60_000);
  expect([await world.state(first), await world.state(second)]).toEqual(['gone', 'pending']);
});

it('tasks that were taken and not started return to their queue in their order', async ({ world }) => {
  const ids: string[] = [];
  for (let i = 0; i < 4; i++) ids.push((await world.enqueue()).id);
  const server = world.server({ concurrency: 4 });
  await server.start(() => {
    server.stop();
  });
  await world.settle();
  expect(await idsIn(world.broker, 'pending')).toEqual(ids.slice(1));
  expect(world.events).toEqual(['started job', 'completed job']);
});

it('tasks that were taken and not started return over a slow network in the time of one', async ({
  world,
}) => {
  const ids: string[] = [];
  for (let i = 0; i < 100; i++) ids.unshift((await world.enqueue()).id);
  const released: string[] = [];
  const release = async ({ message }: LeasedTask): Promise<void> => {
    released.push(message.id);
    await new Promise<void>((resolve) => world.clock.setTimeout(resolve, 300));
  };
  const server = world.server({ broker: withMethods(world.broker, { release }), concurrency: 100 });
  await server.start(() => {
    server.stop();
  });
  const closed = server.shutdown();
  await world.advance(300);
  expect([await hasSettled(world, closed), released]).toEqual([true, ids.slice(0, -1)]);
});

describe('shutdown', () => {
  it('a shutdown of an idle server ends at once and leaves nothing', async ({ world }) => {
    const server = await world.start(() => undefined);
    expect(await world.broker.servers()).toHaveLength(1);
    expect(await hasSettled(world, server.shutdown())).toBe(true);
    expect(world.clock.pendingWakeups).toBe(0);
    expect(await world.broker.servers()).toEqual([]);
    expect(await world.broker.cancel({ taskId: 'x', queue: undefined, outcome: 'delete' }, 0)).toBe(false);
  });

  it('a shutdown waits for running tasks', async ({ held, world }) => {
    const server = await world.start(held.handler);
    const info = await world.enqueue();
    const closed = server.shutdown();
    await world.advance(7_999);
    expect([server.status, await hasSettled(world, closed)]).toEqual(['closed', false]);
    held.run().resolve();
    expect(await hasSettled(world, closed)).toBe(true);
    expect([await world.state(info), held.run().signal.aborted]).toEqual(['gone', false]);
  });

  it('tasks that a shutdown interrupts return to the head of their queue', async ({ held, world }) => {
    const server = await world.start(held.handler, { concurrency: 1 });
    const first = await world.enqueue();
    await world.enqueue();
    const closed = server.shutdown();
    await world.advance(8_000);
    const { signal, reject } = held.run();
    expect(signal.reason).toMatchObject({ code: 'ERR_SERVER_CLOSED', op: 'Server.process' });
    reject(new Error('the connection was closed', { cause: signal.reason }));
    await closed;
    const [head] = await world.broker.tasks('default', 'pending', { page: 1, size: 1 });
    expect(head?.message).toMatchObject({ id: first.id, retried: 0, lastError: '' });
    expect(world.events).toEqual(['started job', 'released job']);
    expect(world.clock.pendingWakeups).toBe(0);
  });

  it('tasks that a shutdown interrupts at the same time are in their order at the head of their queue', async ({
    world,
  }) => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push((await world.enqueue()).id);
    const done = ids.shift(); // its slot is free for the last task
    const handler: Handler = async (_task, { taskId, signal }) => {
      if (taskId === done) return;
      await once(signal, 'abort');
      throw signal.reason;
    };
    const server = await world.start(handler, { concurrency: 4 });
    const closed = server.shutdown();
    await world.advance(8_000);
    await closed;
    expect(await idsIn(world.broker, 'pending')).toEqual(ids);
  });

  it('a shutdown gives up deaf handlers at the end of the grace, and reports no error', async ({ world }) => {
    const errorHandler = vi.fn();
    const server = await world.start(() => new Promise(() => undefined), { graceMs: 500, errorHandler });
    const info = await world.enqueue();
    const closed = server.shutdown();
    await world.advance(8_499);
    expect(await hasSettled(world, closed)).toBe(false);
    await world.advance(1);
    expect([await hasSettled(world, closed), await world.state(info)]).toEqual([true, 'pending']);
    expect(world.clock.pendingWakeups).toBe(0);
    expect(errorHandler).not.toHaveBeenCalled();
  });

  it('shutdown is idempotent, and `await using` calls it', async ({ world }) => {
    const server = await world.start(() => undefined);
    const closed = server.shutdown();
    expect(server.shutdown()).toBe(closed);
    await server[Symbol.asyncDispose]();
  });

  it('a handler can call shutdown and wait for it', async ({ world }) => {
    const server = world.server();
    await server.start(() => server.shutdown());
    const info = await world.enqueue();
    await world.advance(9_000);
    await server.shutdown();
    expect(await world.state(info)).toBe('pending');
  });

  it('a task can be cancelled during the shutdown', async ({ held, world }) => {
    const server = await world.start(held.handler);
    const info = await world.enqueue();
    const closed = server.shutdown();
    await world.broker.cancel({ taskId: info.id, queue: undefined, outcome: 'delete' }, 0);
    held.run().reject(new Error('stopped'));
    await closed;
    expect(await world.state(info)).toBe('gone');
  });

  it('tasks of a dequeue that replies after the shutdown return to their queue', async ({ world }) => {
    let answer: (() => void) | undefined;
    const broker = withMethods(world.broker, {
      dequeue: async (...args) => {
        await new Promise<void>((resolve) => (answer = resolve));
        return world.broker.dequeue(...args);
      },
    });
    const handler = vi.fn();
    const info = await world.enqueue();
    const server = await world.start(handler, { broker });
    const closed = server.shutdown();
    await world.advance(8_000 + 1_000 + 30_000);
    await closed;
    answer?.();
    await world.settle();
    expect([handler.mock.calls.length, await world.state(info)]).toEqual([0, 'pending']);
  });

  it('a write that fails during the shutdown is given up', async ({ world }) => {
    let fail: ((error: Error) => void) | undefined;
    const broker = withMethods(world.broker, {
      complete: () => new Promise((_, reject) => (fail = reject)),
    });
    const server = await world.start(() => undefined, { broker });
    await world.enqueue();
    const closed = server.shutdown();
    await world.advance(8_000 + 1_000 + 30_000);
    await closed;
    fail?.(unavailable);
    await world.settle();
    expect(world.events).toEqual(['started job', 'lost job']);
  });

  it('a pending announcement ends before the server is withdrawn, and none follows', async ({ world }) => {
    const calls: string[] = [];
    const pending: (() => void)[] = [];
    const broker = withMethods(world.broker, {
      maintenance: ['announceServer'],
      announceServer: async () => {
        await new Promise<void>((resolve) => pending.push(resolve));
        calls.push('announced');
      },
      withdrawServer: () => {
        calls.push('withdrawn');
        return Promise.resolve();
      },
    });
    const server = await world.start(() => undefined, { broker });
    const closed = server.shutdown(); // announces it once more, after the pending one
    await world.settle();
    expect(calls).toEqual([]);
    while (pending.length > 0) {
      pending.shift()?.();
      await world.settle();
    }
    await closed;
    await world.advance(60_000);
    expect(calls.at(-1)).toBe('withdrawn');
    expect(calls.filter((call) => call === 'withdrawn')).toHaveLength(1);
  });

  it('a broker that never answers delays the shutdown by two seconds at most', async ({ world }) => {
    const never = (): Promise<never> => new Promise(() => undefined);
    const methods = { withdrawServer: never, recover: never, dequeue: never, takeGroup: never };
    const broker = withMethods(world.broker, methods);
    const server = await world.start(() => undefined, { broker, groupAggregator: vi.fn() });
    await world.enqueue('job', undefined, { group: 'g' });
    const closed = server.shutdown();
    await world.advance(2_000);
    await closed;
    expect(world.clock.pendingWakeups).toBe(0);
  });

  it.for(['ping', 'setLimits', 'subscribe'] as const)(
    'a start whose %s is never answered delays the shutdown by two seconds at most',
    async (operation, { world }) => {
      const broker = withMethods(world.broker, { [operation]: () => new Promise(() => undefined) });
      const server = world.server({ broker, limits: { default: { concurrency: 1 } } });
      const run = server.run(() => undefined);
      await world.settle();
      const closed = Promise.all([server.shutdown(), run]);
      await world.advance(2_000);
      expect(await hasSettled(world, closed)).toBe(true);
      expect(world.clock.pendingWakeups).toBe(0);
    },
  );

  it('an answer to the start after the shutdown starts nothing', async ({ world }) => {
    let answer: (() => void) | undefined;
    const ping = (): Promise<void> => new Promise((resolve) => (answer = resolve));
    const server = world.server({ broker: withMethods(world.broker, { ping }) });
    const started = server.start(() => undefined);
    const closed = server.shutdown();
    await world.advance(2_000);
    await closed;
    answer?.();
    await expect(started).rejects.toMatchObject({ code: 'ERR_SERVER_CLOSED' });
    await world.enqueue();
    await world.settle();
    expect([world.events, world.clock.pendingWakeups]).toEqual([[], 0]);
  });
});

it('a signal ends a run whose start is never answered', async ({ world }) => {
  const broker = withMethods(world.broker, { ping: () => new Promise(() => undefined) });
  const run = world.server({ broker }).run(() => undefined);
  await world.settle();
  process.emit('SIGTERM');
  await world.advance(2_000);
  expect(await hasSettled(world, run)).toBe(true);
  expect(world.clock.pendingWakeups).toBe(0);
});

it('run resolves if the server is shut down during its start', async ({ world }) => {
  let answer: (() => void) | undefined;
  const broker = withMethods(world.broker, {
    subscribe: async (listener) => {
      await new Promise<void>((resolve) => (answer = resolve));
      return world.broker.subscribe(listener);
    },
  });
  const server = world.server({ broker });
  const listeners = process.listenerCount('SIGTERM');
  const run = server.run(() => undefined);
  await world.settle();
  const closed = server.shutdown();
  answer?.();
  await Promise.all([run, closed]);
  expect([server.status, process.listenerCount('SIGTERM')]).toEqual(['closed', listeners]);
  expect(world.clock.pendingWakeups).toBe(0);
});

it('an idle server wakes up a few times in a month if the broker drives itself', async ({ world }) => {
  let wakeups = 0;
  const setTimeout = world.clock.setTimeout.bind(world.clock);
  world.clock.setTimeout = (callback, delayMs) =>
    setTimeout(() => {
      wakeups++;
      callback();
    }, delayMs);
  await world.start(() => undefined);
  await world.enqueue();
  await world.advance(30 * 24 * 3_600_000);
  expect(wakeups).toBeLessThan(10);
});

it('a broker lists the server and its active tasks', async ({ held, world }) => {
  const server = await world.start(held.handler, { concurrency: 5, queues: { default: 2 } });
  const { id } = await world.enqueue('job', { a: 1 }, { timeoutMs: 5_000 });
  const [state] = await world.broker.servers();
  const startedAtMs = WALL_MS;
  expect(state).toMatchObject({
    ...{ id: server.id, pid: process.pid, concurrency: 5, queues: { default: 2 }, strictPriority: false },
    ...{ status: 'active', startedAtMs },
    workers: [{ taskId: id, taskType: 'job', queue: 'default', startedAtMs, deadlineMs: WALL_MS + 5_000 }],
  });
  server.stop();
  expect((await world.broker.servers())[0]?.status).toBe('stopped');
  held.run().resolve();
});
