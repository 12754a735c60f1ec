import { EscapementError } from 'escapement';
import { describe, expect, it, vi } from 'vitest';
import { Held, openWorld, withMethods, type World } from './support/world.ts';

const unavailable = new EscapementError('ERR_BROKER_UNAVAILABLE', 'no answer');

/** Whether a promise has settled, after promise jobs have. */
async function hasSettled(world: World, promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void promise.finally(() => (settled = true)).catch(() => undefined);
  await world.settle();
  return settled;
}

describe('states', () => {
  it('are new, active, stopped and closed', async () => {
    const world = await openWorld();
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

  it('starting twice is an error, also at once', async () => {
    const world = await openWorld();
    const server = world.server();
    const started = server.start(() => undefined);
    await expect(server.start(() => undefined)).rejects.toMatchObject({
      code: 'ERR_SERVER_STATE',
      op: 'Server.start',
    });
    await started;
    await expect(server.start(() => undefined)).rejects.toMatchObject({ code: 'ERR_SERVER_STATE' });
    server.stop();
    await expect(server.start(() => undefined)).rejects.toMatchObject({ code: 'ERR_SERVER_STATE' });
  });

  it('after a shutdown it cannot be started, nor if it never was', async () => {
    const world = await openWorld();
    const server = world.server();
    await server.shutdown();
    await expect(server.start(() => undefined)).rejects.toMatchObject({ code: 'ERR_SERVER_CLOSED' });
  });

  it('a broker that is closed first is told of', async () => {
    const world = await openWorld();
    const told = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };
    const healthCheck = vi.fn();
    const server = world.server({ logger: told, healthCheck });
    await server.start(() => undefined);
    await world.broker.close();
    await world.settle();
    expect(told.error).toHaveBeenCalledOnce();
    expect(healthCheck).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ code: 'ERR_BROKER_CLOSED' }),
    );
    await server.shutdown();
    expect([server.status, world.clock.pendingWakeups]).toEqual(['closed', 0]);
  });

  it('a broker that is closed after the shutdown is not', async () => {
    const world = await openWorld();
    const healthCheck = vi.fn();
    const server = world.server({ healthCheck });
    await server.start(() => undefined);
    await server.shutdown();
    await world.broker.close();
    await world.settle();
    expect(healthCheck).not.toHaveBeenCalled();
  });

  it('a shutdown while it starts', async () => {
    const world = await openWorld();
    const server = world.server();
    const started = server.start(() => undefined);
    const closed = server.shutdown();
    await expect(started).rejects.toMatchObject({ code: 'ERR_SERVER_CLOSED' });
    await closed;
    expect([server.status, world.clock.pendingWakeups]).toEqual(['closed', 0]);
  });

  it('a handler that is none is refused', async () => {
    const world = await openWorld();
    await expect(world.server().start(5 as never)).rejects.toThrow(
      'handler must be a function or a ServeMux. Received 5',
    );
  });

  it('a broker that does not answer: it is not started, and can be later', async () => {
    const world = await openWorld();
    const ping = vi.fn().mockRejectedValueOnce(unavailable).mockResolvedValue(undefined);
    const server = world.server({ broker: withMethods(world.broker, { ping }) });
    await expect(server.start(() => undefined)).rejects.toBe(unavailable);
    expect(server.status).toBe('new');
    await server.start(() => undefined);
    expect(server.status).toBe('active');
  });

  it('ping asks the broker', async () => {
    const world = await openWorld();
    const broker = withMethods(world.broker, { ping: () => Promise.reject(unavailable) });
    await expect(world.server({ broker }).ping()).rejects.toBe(unavailable);
  });
});

describe('stop', () => {
  it('takes nothing more; what runs goes on', async () => {
    const world = await openWorld();
    const held = new Held();
    const server = await world.start(held.handler);
    const first = await world.enqueue();
    server.stop();
    const second = await world.enqueue();
    held.run().resolve();
    await world.advance(60_000);
    expect([await world.state(first), await world.state(second)]).toEqual(['gone', 'pending']);
  });

  it('what was taken and not started goes back, in its order', async () => {
    const world = await openWorld();
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) ids.push((await world.enqueue()).id);
    const server = world.server({ concurrency: 4 });
    await server.start(() => {
      server.stop();
    });
    await world.settle();
    const page = { page: 1, size: 10 };
    const pending = await world.broker.tasks('default', 'pending', page);
    expect(pending.map(({ message }) => message.id)).toEqual(ids.slice(1));
    expect(world.events).toEqual(['started job', 'completed job']);
  });
});

describe('shutdown', () => {
  it('of an idle server ends at once, and leaves nothing behind', async () => {
    const world = await openWorld();
    const server = await world.start(() => undefined);
    expect(await world.broker.servers()).toHaveLength(1);
    expect(await hasSettled(world, server.shutdown())).toBe(true);
    expect(world.clock.pendingWakeups).toBe(0);
    expect(await world.broker.servers()).toEqual([]);
    expect(await world.broker.cancel({ taskId: 'x', queue: undefined, outcome: 'delete' }, 0)).toBe(false);
  });

  it('waits for what runs', async () => {
    const world = await openWorld();
    const held = new Held();
    const server = await world.start(held.handler);
    const info = await world.enqueue();
    const closed = server.shutdown();
    await world.advance(7_999);
    expect([server.status, await hasSettled(world, closed)]).toEqual(['closed', false]);
    held.run().resolve();
    expect(await hasSettled(world, closed)).toBe(true);
    expect([await world.state(info), held.run().signal.aborted]).toEqual(['gone', false]);
  });

  it('interrupts what is not done in time; it goes back to the head of its queue', async () => {
    const world = await openWorld();
    const held = new Held();
    const server = await world.start(held.handler, { concurrency: 1 });
    const first = await world.enqueue();
    await world.enqueue();
    const closed = server.shutdown();
    await world.advance(8_000);
    const { signal, reject } = held.run();
    expect(signal.reason).toMatchObject({ code: 'ERR_SERVER_CLOSED' });
    reject(new Error('the connection was closed', { cause: signal.reason }));
    await closed;
    const [head] = await world.broker.tasks('default', 'pending', { page: 1, size: 1 });
    expect(head?.message).toMatchObject({ id: first.id, retried: 0, lastError: '' });
    expect(world.events).toEqual(['started job', 'released job']);
    expect(world.clock.pendingWakeups).toBe(0);
  });

  it('what is deaf is given up when its grace is over', async () => {
    const world = await openWorld();
    const server = await world.start(() => new Promise(() => undefined), { graceMs: 500 });
    const info = await world.enqueue();
    const closed = server.shutdown();
    await world.advance(8_499);
    expect(await hasSettled(world, closed)).toBe(false);
    await world.advance(1);
    expect([await hasSettled(world, closed), await world.state(info)]).toEqual([true, 'pending']);
    expect(world.clock.pendingWakeups).toBe(0);
  });

  it('what is done within the grace is done', async () => {
    const world = await openWorld();
    const held = new Held();
    const server = await world.start(held.handler);
    const info = await world.enqueue();
    const closed = server.shutdown();
    await world.advance(8_500);
    held.run().resolve();
    await closed;
    expect(await world.state(info)).toBe('gone');
  });

  it('does not call the errorHandler for what it has interrupted itself', async () => {
    const world = await openWorld();
    const errorHandler = vi.fn();
    const server = await world.start(() => new Promise(() => undefined), { errorHandler });
    await world.enqueue();
    const closed = server.shutdown();
    await world.advance(9_000);
    await closed;
    expect(errorHandler).not.toHaveBeenCalled();
  });

  it('is idempotent, and is what `await using` calls', async () => {
    const world = await openWorld();
    const server = await world.start(() => undefined);
    const closed = server.shutdown();
    expect(server.shutdown()).toBe(closed);
    await server[Symbol.asyncDispose]();
  });

  it('from within a handler that waits for it', async () => {
    const world = await openWorld();
    const server = world.server();
    await server.start(() => server.shutdown());
    const info = await world.enqueue();
    await world.advance(9_000);
    await server.shutdown();
    expect(await world.state(info)).toBe('pending');
  });

  it('a task can be cancelled while it is waited for', async () => {
    const world = await openWorld();
    const held = new Held();
    const server = await world.start(held.handler);
    const info = await world.enqueue();
    const closed = server.shutdown();
    await world.broker.cancel({ taskId: info.id, queue: undefined, outcome: 'delete' }, 0);
    held.run().reject(new Error('stopped'));
    await closed;
    expect(await world.state(info)).toBe('gone');
  });

  it('a dequeue that answers after it: what it gives goes back', async () => {
    const world = await openWorld();
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

  it('a write that fails after it is given up', async () => {
    const world = await openWorld();
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

  it('a broker that does not answer at all does not hold it for ever', async () => {
    const world = await openWorld();
    const never = (): Promise<never> => new Promise(() => undefined);
    const methods = { withdrawServer: never, recover: never, groups: never };
    const groupAggregator = (): never => {
      throw new Error('not called');
    };
    const server = await world.start(() => undefined, {
      broker: withMethods(world.broker, methods),
      groupAggregator,
    });
    const closed = server.shutdown();
    await world.advance(8_000 + 30_000);
    await closed;
    expect(world.clock.pendingWakeups).toBe(0);
  });

  it('a write that hangs does not hold it for longer than the lease', async () => {
    const world = await openWorld();
    const broker = withMethods(world.broker, { complete: () => new Promise(() => undefined) });
    const server = await world.start(() => undefined, { broker });
    await world.enqueue();
    const closed = server.shutdown();
    await world.advance(8_000 + 1_000 + 30_000);
    await closed;
    expect(server.status).toBe('closed');
  });
});

describe('run', () => {
  it('ends when the server is shut down while it starts', async () => {
    const world = await openWorld();
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
});

describe('an idle server', () => {
  it('on a self-driven broker has no beat: a month passes in a few wake-ups', async () => {
    const world = await openWorld();
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
});

describe('what others see of it', () => {
  it('who it is, and what it works on', async () => {
    const world = await openWorld();
    const held = new Held();
    const server = await world.start(held.handler, { concurrency: 5, queues: { default: 2 } });
    const { id } = await world.enqueue('job', { a: 1 }, { timeoutMs: 5_000 });
    const [state] = await world.broker.servers();
    const startedAtMs = world.clock.wallNow();
    expect(state).toMatchObject({
      id: server.id,
      pid: process.pid,
      concurrency: 5,
      queues: { default: 2 },
      strictPriority: false,
      status: 'active',
      startedAtMs,
      workers: [
        { taskId: id, taskType: 'job', queue: 'default', startedAtMs, deadlineMs: startedAtMs + 5_000 },
      ],
    });
    server.stop();
    expect((await world.broker.servers())[0]?.status).toBe('stopped');
    held.run().resolve();
  });
});
