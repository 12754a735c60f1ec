import { once } from 'node:events';
import { RevokeTask, SkipRetry } from 'escapement/tasks';
import type { Broker, CancelOutcome, Handler, TaskOptions } from 'escapement/tasks';
import { describe, expect, vi } from 'vitest';
import { silentLogger } from '../../../src/tasks/reporting.ts';
import { withMethods } from '../support/with-methods.ts';
import { Held, it, WALL_MS, type World } from './support/world.ts';

/** Settles as soon as its signal fires: with its reason, or as the test decides. */
function obedient(settle: (reason: unknown) => unknown = fail): Handler {
  return async (_task, { signal }) => {
    await once(signal, 'abort');
    return settle(signal.reason);
  };
}

function fail(error: unknown): never {
  throw error;
}

/** Hears nothing, and never ends. */
const deaf: Handler = () => new Promise(() => undefined);

function cancel(world: World, taskId: string, outcome: CancelOutcome, queue?: string): Promise<boolean> {
  return world.broker.cancel({ taskId, queue, outcome }, 1_000);
}

it.for<[string, TaskOptions, number]>([
  ['the deadline, if that is earlier', { timeoutMs: 5_000, deadline: WALL_MS + 2_000 }, 2_000],
  ['the timeout, if that is earlier', { timeoutMs: 1_000, deadline: WALL_MS + 2_000 }, 1_000],
  ['the deadline alone', { deadline: WALL_MS + 3_000 }, 3_000],
])('a run ends at %s', async ([_what, options, afterMs], { world }) => {
  const held = new Held();
  await world.start(held.handler);
  await world.enqueue('job', undefined, options);
  await world.advance(afterMs - 1);
  expect(held.run().signal.aborted).toBe(false);
  await world.advance(1);
  expect(held.run().signal.aborted).toBe(true);
});

it('the time in which a handler holds the event loop counts towards its timeout', async ({ world }) => {
  const firedAtMs: number[] = [];
  await world.start((_task, { signal }) => {
    signal.addEventListener('abort', () => firedAtMs.push(world.clock.now()));
    world.clock.advance(800);
    return new Promise(() => undefined);
  });
  await world.enqueue('job', undefined, { timeoutMs: 1_000 });
  await world.advance(200);
  expect(firedAtMs).toEqual([1_000]);
});

it('a handler is not called if the deadline has passed before', async ({ world }) => {
  const handler = vi.fn();
  const info = await world.enqueue('job', undefined, { deadline: WALL_MS + 1_000 });
  await world.advance(1_000);
  await world.start(handler);
  expect(handler).not.toHaveBeenCalled();
  expect(await world.find(info)).toMatchObject({
    state: 'retry',
    message: { lastError: 'the task was not done within its deadline of 2026-11-21T00:00:01.000Z' },
  });
  expect(world.events).toEqual(['started job', 'retried job']);
});

it('a run without timeout and deadline can take any time', async ({ held, world }) => {
  await world.start(held.handler);
  const info = await world.enqueue('job', undefined, { timeoutMs: 0 });
  await world.advance(2 * 3_600_000); // the default is half an hour
  expect(held.run().signal.aborted).toBe(false);
  held.run().resolve();
  await world.settle();
  expect(await world.state(info)).toBe('gone');
});

describe('the grace of a handler', () => {
  const timeout = { timeoutMs: 1_000 };

  it.for<[string, (reason: unknown) => unknown, string, string]>([
    ['success', () => undefined, 'gone', ''],
    ['SkipRetry', () => fail(new SkipRetry('never')), 'archived', 'never'],
    ['RevokeTask', () => fail(new RevokeTask()), 'gone', ''],
    ['an error of its own', () => fail(new Error('half done')), 'retry', 'half done'],
    ['the reason of the signal', fail, 'retry', 'the task was not done within its timeout of 1000 ms'],
    [
      'an AbortError of Node',
      () => fail(new DOMException('x', 'AbortError')),
      'retry',
      'the task was not done within its timeout of 1000 ms',
    ],
  ])(
    'the outcome of a handler within its grace counts: %s',
    async ([_what, settle, state, lastError], { world }) => {
      await world.start(obedient(settle));
      const info = await world.enqueue('job', undefined, timeout);
      await world.advance(1_000);
      expect(await world.state(info)).toBe(state);
      expect((await world.find(info))?.message.lastError ?? '').toBe(lastError);
    },
  );

  it('a handler that does not settle is given up exactly at the end of the grace', async ({ world }) => {
    const server = await world.start(deaf, { graceMs: 500 });
    const info = await world.enqueue('job', undefined, timeout);
    await world.advance(1_499);
    expect([await world.state(info), server.activeCount]).toEqual(['active', 1]);
    await world.advance(1);
    expect([await world.state(info), server.activeCount]).toEqual(['retry', 0]);
  });

  it('the slot of an interrupted run is not used again before the end of the grace', async ({ world }) => {
    const held = new Held();
    await world.start(held.handler, { graceMs: 500, concurrency: 1 });
    await world.enqueue('job', undefined, timeout);
    await world.enqueue('next');
    await world.advance(1_499);
    expect(held.runs).toHaveLength(1);
    await world.advance(1);
    expect(held.runs).toHaveLength(2);
  });

  it('a handler that settles after the grace is logged and ignored', async ({ held, world }) => {
    const warn = vi.fn();
    const logger = { debug: vi.fn(), info: vi.fn(), warn, error: vi.fn() };
    await world.start(held.handler, { logger });
    const info = await world.enqueue('job', undefined, { timeoutMs: 1_000, maxRetry: 0 });
    await world.advance(2_000);
    held.run().resolve();
    await world.settle();
    expect(await world.state(info)).toBe('archived');
    expect(warn).toHaveBeenLastCalledWith(
      { taskId: info.id, queue: 'default', type: 'job' },
      'a handler has settled after its run was given up',
    );
    expect(world.events).toEqual(['started job', 'archived job']);
  });
});

describe('cancelling an active task', () => {
  it.for<[CancelOutcome, string, number]>([
    ['retry', 'retry', 1],
    ['archive', 'archived', 0],
    ['delete', 'gone', 0],
  ])(
    'a cancellation with outcome %s interrupts the task, which then is %s',
    async ([outcome, state, retried], { world }) => {
      const held = new Held();
      await world.start(held.handler);
      const info = await world.enqueue();
      expect(await cancel(world, info.id, outcome)).toBe(true);
      const { signal, reject } = held.run();
      const reason = { code: 'ERR_TASK_CANCELLED', message: 'the task was cancelled', op: 'Server.process' };
      expect(signal.reason).toMatchObject(reason);
      expect(await world.state(info)).toBe('active');
      reject(signal.reason);
      await world.settle();
      expect(await world.state(info)).toBe(state);
      expect((await world.find(info))?.message.retried ?? 0).toBe(retried);
      expect(world.events).toEqual(['started job', 'cancelled job']);
    },
  );

  it('the cancelled event has the outcome', async ({ world }) => {
    const cancelled = vi.fn();
    const server = await world.start(obedient());
    server.on('cancelled', cancelled);
    const { id } = await world.enqueue('job', undefined, { maxRetry: 0 });
    await cancel(world, id, 'retry');
    await world.settle();
    expect(cancelled).toHaveBeenCalledWith(expect.objectContaining({ taskId: id, outcome: 'archive' }));
  });

  it('of two cancellations the last one decides the outcome, within the grace of the first one', async ({
    world,
  }) => {
    await world.start(deaf);
    const info = await world.enqueue();
    await cancel(world, info.id, 'retry');
    await world.advance(600);
    await cancel(world, info.id, 'archive');
    await world.advance(399);
    expect(await world.state(info)).toBe('active');
    await world.advance(1);
    expect(await world.state(info)).toBe('archived');
  });

  it('a cancellation of a task that no server runs is not confirmed', async ({ held, world }) => {
    await world.start(held.handler);
    const { id } = await world.enqueue();
    expect(await cancel(world, 'other', 'delete')).toBe(false);
    expect(await cancel(world, id, 'delete', 'low')).toBe(false);
    expect(held.run().signal.aborted).toBe(false);
    expect(await cancel(world, id, 'delete', 'default')).toBe(true);
    held.run().resolve();
    await world.settle();
    expect(await cancel(world, id, 'delete')).toBe(false);
  });

  it('a run whose outcome is being written is neither cancelled nor interrupted', async ({ held, world }) => {
    let write = (): void => undefined;
    const complete: Broker['complete'] = async (leased) => {
      await new Promise<void>((resolve) => (write = resolve));
      return world.broker.complete(leased);
    };
    const extendLeases: Broker['extendLeases'] = (tasks) => Promise.resolve(tasks);
    const broker = withMethods(world.broker, { complete, extendLeases });
    await world.start(held.handler, { broker });
    const info = await world.enqueue();
    held.run().resolve();
    await world.settle();
    expect(await cancel(world, info.id, 'archive')).toBe(false);
    await world.advance(5_000);
    expect(held.run().signal.aborted).toBe(false);
    write();
    await world.settle();
    expect(await world.state(info)).toBe('gone');
  });
});

it('a signal that is first read after it has fired is aborted', async ({ world }) => {
  const reasons: unknown[] = [];
  const warn = vi.fn();
  const handler: Handler = async (_task, context) => {
    await world.broker.cancel({ taskId: context.taskId, queue: undefined, outcome: 'delete' }, 0);
    reasons.push(context.signal.reason);
    context.signal.throwIfAborted();
  };
  await world.start(handler, { logger: { ...silentLogger, warn } });
  const info = await world.enqueue();
  expect(reasons).toEqual([expect.objectContaining({ code: 'ERR_TASK_CANCELLED' })]);
  expect(await world.state(info)).toBe('gone');
  await world.advance(1_000);
  expect(warn).not.toHaveBeenCalled(); // the grace is over, but so is the run
});

it('the signal is the same object at every read', async ({ world }) => {
  const seen: boolean[] = [];
  await world.start((_task, context) => seen.push(context.signal === context.signal));
  await world.enqueue();
  expect(seen).toEqual([true]);
});
