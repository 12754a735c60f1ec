import { EscapementError } from 'escapement';
import type { Broker, Handler, Logger } from 'escapement/tasks';
import { describe, expect, it, vi } from 'vitest';
import { Held, openWorld, withMethods, type World } from './support/world.ts';

const unavailable = new EscapementError('ERR_BROKER_UNAVAILABLE', 'no answer');

/** A broker whose method fails so often, after it has done what it was asked for or instead. */
function failing(
  world: World,
  method: 'complete' | 'retry' | 'archive' | 'release' | 'dequeue' | 'subscribe',
  times: number,
  options: { isDone?: boolean } = {},
): { broker: Broker; calls: number[] } {
  const calls: number[] = [];
  const original = world.broker[method].bind(world.broker) as (...args: unknown[]) => Promise<unknown>;
  const call = async (...args: unknown[]): Promise<unknown> => {
    calls.push(world.clock.now());
    const isFailing = calls.length <= times;
    const isCalled = !isFailing || options.isDone === true;
    const result = isCalled ? await original(...args) : undefined;
    if (isFailing) throw unavailable;
    return result;
  };
  return { broker: withMethods(world.broker, { [method]: call }), calls };
}

describe('outcomes that could not be written', () => {
  it.each<['complete' | 'retry' | 'archive', number, string]>([
    ['complete', 25, 'completed'],
    ['retry', 25, 'retry'],
    ['archive', 0, 'archived'],
  ])('an outcome is written again after %s has failed', async (method, maxRetry, state) => {
    const world = await openWorld();
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

  it('each retry of a write waits longer than the one before', async () => {
    const world = await openWorld();
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

  it('a write whose reply was lost counts as written', async () => {
    const world = await openWorld();
    const { broker } = failing(world, 'complete', 1, { isDone: true });
    await world.start(() => undefined, { broker });
    const info = await world.enqueue();
    await world.advance(1_000);
    expect(await world.state(info)).toBe('gone');
    expect(world.events).toEqual(['started job', 'completed job']);
  });

  it('an outcome is not written after the lease is over, because another server may have the task', async () => {
    const world = await openWorld();
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

  it('the shutdown writes an outcome a last time', async () => {
    const world = await openWorld();
    const { broker } = failing(world, 'complete', 1);
    const server = await world.start(() => undefined, { broker });
    const info = await world.enqueue();
    await server.shutdown();
    expect(await world.state(info)).toBe('gone');
    expect(world.clock.pendingWakeups).toBe(0);
  });

  it('an outcome that the shutdown cannot write is given up', async () => {
    const world = await openWorld();
    const { broker } = failing(world, 'complete', Infinity);
    const server = await world.start(() => undefined, { broker });
    await world.enqueue();
    await server.shutdown();
    expect(world.events).toEqual(['started job', 'lost job']);
  });

  it('an outcome is not written again if the lease is lost', async () => {
    const world = await openWorld();
    const complete = vi.fn(() => Promise.reject(new EscapementError('ERR_LEASE_LOST', 'gone')));
    await world.start(() => undefined, { broker: withMethods(world.broker, { complete }) });
    await world.enqueue();
    await world.advance(5_000);
    expect([complete.mock.calls.length, world.events]).toEqual([1, ['started job', 'lost job']]);
  });
});

describe('a broker whose dequeue fails', () => {
  it('dequeue is called again with longer and longer waits', async () => {
    const world = await openWorld();
    const { broker, calls } = failing(world, 'dequeue', Infinity);
    await world.start(() => undefined, { broker });
    await world.advance(60_000);
    expect(calls.length).toBeGreaterThan(8);
    expect(calls.length).toBeLessThan(22);
  });

  it('a notification does not shorten the wait after a failed dequeue', async () => {
    const world = await openWorld();
    const { broker, calls } = failing(world, 'dequeue', Infinity);
    await world.start(() => undefined, { broker });
    for (let i = 0; i < 50; i++) await world.enqueue();
    expect(calls).toHaveLength(1);
  });

  it('after a dequeue succeeds the next wait is short again', async () => {
    const world = await openWorld();
    const { broker, calls } = failing(world, 'dequeue', 4);
    await world.start(() => undefined, { broker });
    const info = await world.enqueue();
    await world.advance(1_600);
    expect([await world.state(info), calls.length]).toEqual(['gone', 5]);
  });

  it('healthCheck is called at once with the error', async () => {
    const world = await openWorld();
    const healthCheck = vi.fn();
    const { broker } = failing(world, 'dequeue', 1);
    await world.start(() => undefined, { broker, healthCheck });
    expect(healthCheck.mock.calls).toEqual([[unavailable]]);
  });

  it('a queue whose dequeue fails does not stop the others', async () => {
    const world = await openWorld();
    const broker = withMethods(world.broker, {
      dequeue: (queue, limit, leaseMs) =>
        queue === 'bad' ? Promise.reject(unavailable) : world.broker.dequeue(queue, limit, leaseMs),
    });
    await world.start(() => undefined, { broker, concurrency: 2, queues: { bad: 1, default: 1 } });
    const info = await world.enqueue();
    await world.advance(10_000);
    expect(await world.state(info)).toBe('gone');
  });

  it('a shutdown does not wait for a failing dequeue', async () => {
    const world = await openWorld();
    const { broker } = failing(world, 'dequeue', Infinity);
    const server = await world.start(() => undefined, { broker });
    await world.advance(30_000);
    await server.shutdown();
    expect(world.clock.pendingWakeups).toBe(0);
  });
});

describe('a subscription that fails', () => {
  it('a failed subscription is retried, and missed tasks are processed then', async () => {
    const world = await openWorld();
    const { broker, calls } = failing(world, 'subscribe', 3);
    await world.start(() => undefined, { broker });
    await world.settle();
    const info = await world.enqueue();
    expect(await world.state(info)).toBe('pending');
    await world.advance(2_000);
    expect([await world.state(info), calls.length]).toEqual(['gone', 4]);
  });

  it('a shutdown ends the retries of a subscription', async () => {
    const world = await openWorld();
    const { broker } = failing(world, 'subscribe', Infinity);
    const server = await world.start(() => undefined, { broker });
    await server.shutdown();
    expect(world.clock.pendingWakeups).toBe(0);
  });
});

describe('healthCheck', () => {
  it('healthCheck is called at every interval', async () => {
    const world = await openWorld();
    const healthCheck = vi.fn();
    const ping = vi.fn(() => Promise.resolve());
    await world.start(() => undefined, { broker: withMethods(world.broker, { ping }), healthCheck });
    await world.advance(15_000);
    ping.mockRejectedValueOnce(unavailable);
    await world.advance(15_000);
    await world.advance(15_000);
    expect(healthCheck.mock.calls).toEqual([[undefined], [unavailable], [undefined]]);
  });
});

describe('the log', () => {
  /** Logs each message with the state of the task at that time. */
  function watch(world: World, id: string): { logger: Logger; lines: string[] } {
    const lines: string[] = [];
    const log = (_fields: object, message: string): void => {
      void world.state({ queue: 'default', id }).then((state) => lines.push(`${message} (${state})`));
    };
    return { logger: { debug: log, info: log, warn: log, error: log }, lines };
  }

  it('an archived task is logged when the broker has archived it', async () => {
    const world = await openWorld();
    const { broker } = failing(world, 'archive', 2);
    const { logger, lines } = watch(world, 'a');
    const handler: Handler = () => {
      throw new Error('boom');
    };
    await world.start(handler, { broker, logger });
    await world.enqueue('job', undefined, { maxRetry: 0, taskId: 'a' });
    await world.advance(3_000);
    expect(lines).toEqual(['task not archived (active)', 'task archived (archived)']);
  });

  it.each<['archive' | 'retry', number, string, string]>([
    ['retry', 3, 'task recovered: its lease was lost', 'retry'],
    ['archive', 0, 'task archived: its lease was lost too often', 'archived'],
  ])('a task that has lost its worker is logged after %s', async (method, maxRecoveries, message, state) => {
    const world = await openWorld();
    const { broker } = failing(world, method, 1);
    const { logger, lines } = watch(world, 'a');
    await world.enqueue('job', undefined, { taskId: 'a' });
    await world.broker.dequeue('default', 1, 1_000);
    await world.start(() => undefined, { broker, logger, maxRecoveries, retryDelayMs: () => 60_000 });
    await world.advance(1_000);
    expect(lines).toEqual(['task not recovered (active)']);
    await world.advance(30_000);
    expect(lines.slice(1)).toEqual([`${message} (${state})`]);
  });
});

describe('a logger', () => {
  it('a logger that throws does not stop the server', async () => {
    const world = await openWorld();
    const shout = (): never => {
      throw new Error('disk full');
    };
    const held = new Held();
    await world.start(held.handler, { logger: { debug: shout, info: shout, warn: shout, error: shout } });
    const info = await world.enqueue('job', undefined, { maxRetry: 0 });
    held.run().reject(new Error('boom'));
    await world.settle();
    expect(await world.state(info)).toBe('archived');
  });
});
