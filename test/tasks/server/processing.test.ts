import { RevokeTask, ServeMux, SkipRetry, Task } from 'escapement/tasks';
import type { Handler, ServerOptions, TaskRetriedEvent } from 'escapement/tasks';
import { describe, expect, vi } from 'vitest';
import { raise, unreadable } from '../support/bench.ts';
import { it, WALL_MS } from './support/world.ts';

const boom = new Error('boom');

it.for<[string, Handler]>([
  ['returns', () => undefined],
  ['returns a value', () => 42],
  ['resolves', () => Promise.resolve()],
  ['returns a thenable', () => ({ then: (resolve: () => unknown) => resolve() })],
])('a task is removed when its handler %s', async ([_how, handler], { world }) => {
  await world.start(handler);
  expect(await world.state(await world.enqueue())).toBe('gone');
  expect(world.events).toEqual(['started job', 'completed job']);
});

it('a result is written before the task is completed', async ({ world }) => {
  await world.start((_task, context) => void context.writeResult(new Uint8Array([1, 2])));
  const info = await world.enqueue('job', undefined, { retentionMs: 60_000 });
  expect((await world.find(info))?.result).toEqual(Buffer.from([1, 2]));
});

describe('a handler that fails', () => {
  const rejectWithBoom = (_: unknown, reject: (error: Error) => unknown): unknown => reject(boom);

  it.for<[string, Handler, string]>([
    ['throws', raise(boom), 'boom'],
    ['rejects', () => Promise.reject(boom), 'boom'],
    ['throws a string', raise('no space left'), 'no space left'],
    ['throws undefined', raise(undefined), 'thrown: undefined'],
    ['throws an object whose properties throw', raise(unreadable()), 'unknown error: it cannot be read'],
    ['returns a thenable that rejects', () => ({ then: rejectWithBoom }), 'boom'],
    ['returns a thenable that throws', () => ({ then: raise(boom) }), 'boom'],
  ])('a task is retried when its handler %s', async ([_how, handler, lastError], { world }) => {
    await world.start(handler);
    const info = await world.enqueue();
    expect(await world.find(info)).toMatchObject({
      state: 'retry',
      nextProcessAtMs: WALL_MS + 1_000,
      message: { retried: 1, lastError, lastFailedAtMs: WALL_MS },
    });
    expect(world.events).toEqual(['started job', 'retried job']);
  });

  it('a failed task runs again at its time, with the number of its failures', async ({ world }) => {
    const counts: number[] = [];
    const delays: number[] = [];
    await world.start(
      (_task, { retryCount, maxRetry }) => {
        counts.push(retryCount);
        if (retryCount < maxRetry) throw boom;
      },
      { retryDelayMs: (retried, error) => (delays.push(retried), error === boom ? 5_000 : 0) },
    );
    const info = await world.enqueue('job', undefined, { maxRetry: 2 });
    await world.advance(4_999);
    expect(counts).toEqual([0]);
    await world.advance(1);
    expect(counts).toEqual([0, 1]);
    await world.advance(5_000);
    expect({ counts, delays }).toEqual({ counts: [0, 1, 2], delays: [0, 1] });
    expect(await world.state(info)).toBe('gone');
  });

  it('a task that fails for the last time is archived', async ({ world }) => {
    await world.start(raise(boom));
    const info = await world.enqueue('job', undefined, { maxRetry: 1 });
    await world.advance(1_000);
    expect(await world.find(info)).toMatchObject({ state: 'archived', message: { lastError: 'boom' } });
    expect(world.events).toEqual(['started job', 'retried job', 'started job', 'archived job']);
  });

  it.for<[string, Error]>([
    ['SkipRetry', new SkipRetry('bad address')],
    ['an error that SkipRetry has caused', new Error('bad address', { cause: new SkipRetry() })],
  ])('a task that fails with %s is archived at once', async ([_what, error], { world }) => {
    await world.start(raise(error));
    const info = await world.enqueue();
    expect(await world.find(info)).toMatchObject({
      state: 'archived',
      message: { lastError: 'bad address' },
    });
  });

  it('RevokeTask removes the task and its lock, and counts as processed', async ({ world }) => {
    await world.start(raise(new RevokeTask()));
    const options = { retentionMs: 60_000, uniqueTtlMs: 60_000 };
    expect(await world.state(await world.enqueue('job', 1, options))).toBe('gone');
    expect(world.events).toEqual(['started job', 'completed job']);
    await world.client.enqueue(new Task('job', 1, options));
    expect(await world.broker.queueStats('default')).toMatchObject({ processed: 1, failed: 0 });
  });
});

it('an error that is not a failure makes a task retry that has no retries left', async ({ world }) => {
  let isLimited = true;
  await world.start(
    () => {
      if (isLimited) throw boom;
    },
    { isFailure: (error) => error !== boom },
  );
  const info = await world.enqueue('job', undefined, { maxRetry: 0 });
  expect(await world.find(info)).toMatchObject({ state: 'retry', message: { retried: 0 } });
  await world.advance(1_000);
  isLimited = false;
  await world.advance(1_000);
  expect(await world.state(info)).toBe('gone');
  expect(await world.broker.queueStats('default')).toMatchObject({ processed: 1, failed: 0 });
});

it('an error counts as a failure if isFailure returns nothing', async ({ world }) => {
  const isFailure = (() => undefined) as unknown as NonNullable<ServerOptions['isFailure']>;
  await world.start(raise(boom), { isFailure });
  expect(await world.state(await world.enqueue('job', undefined, { maxRetry: 0 }))).toBe('archived');
});

it.for([boom, new SkipRetry(), new RevokeTask()])(
  'errorHandler is called with %s',
  async (error, { world }) => {
    const told = vi.fn<NonNullable<ServerOptions['errorHandler']>>();
    await world.start(raise(error), { errorHandler: told });
    const { id } = await world.enqueue('job', { a: 1 }, { headers: { trace: 'x' } });
    expect(told).toHaveBeenCalledTimes(1);
    const [toldError, task, context] = told.mock.calls[0] ?? [];
    expect(toldError).toBe(error);
    expect([task?.type, task?.json(), context?.taskId]).toEqual(['job', { a: 1 }, id]);
  },
);

it('events have the run, its duration and its outcome', async ({ held, world }) => {
  const server = await world.start(held.handler);
  const retried: TaskRetriedEvent[] = [];
  server.on('retried', (event) => retried.push(event));
  const { id } = await world.enqueue('job', { a: 1 });
  await world.advance(250);
  held.run().reject(boom);
  await world.settle();
  const [event] = retried;
  expect(event).toMatchObject({
    taskId: id,
    queue: 'default',
    type: 'job',
    retryCount: 0,
    maxRetry: 25,
    durationMs: 250,
    error: boom,
    isFailure: true,
    retryAt: new Date(WALL_MS + 1_250),
  });
  expect(event?.task.json()).toEqual({ a: 1 });
});

describe('the arguments of a handler', () => {
  it('each run has its own copy of the payload', async ({ world }) => {
    const seen: string[] = [];
    await world.start((task) => {
      seen.push(task.json());
      task.payload.fill(0);
      seen.push(task.json());
      throw boom;
    });
    await world.enqueue('job', 'text', { maxRetry: 1 });
    await world.advance(1_000);
    expect(seen).toEqual(['text', 'text', 'text', 'text']);
  });

  it('a handler receives the task and its context', async ({ world }) => {
    const seen: unknown[] = [];
    await world.start(
      (task, context) => {
        const { taskId, queue, key, retryCount, maxRetry, deadlineMs, leaseEpoch, headers, values } = context;
        seen.push(task.type, task.json(), task.headers, task.data);
        seen.push(
          { taskId, queue, key, retryCount, maxRetry, deadlineMs, headers },
          typeof leaseEpoch,
          values['db'],
        );
      },
      { baseContext: { db: 'pool' }, queues: { low: 1 } },
    );
    const headers = { trace: 'abc' };
    const options = { queue: 'low', taskId: 'id-1', key: 'acme', maxRetry: 7, timeoutMs: 5_000, headers };
    await world.enqueue('job', [1], options);
    const expected = {
      taskId: 'id-1',
      queue: 'low',
      key: 'acme',
      retryCount: 0,
      maxRetry: 7,
      deadlineMs: WALL_MS + 5_000,
    };
    expect(seen).toEqual(['job', [1], headers, undefined, { ...expected, headers }, 'number', 'pool']);
  });

  it('the signal accepts any number of listeners', async ({ world }) => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    await world.start((_task, { signal }) => {
      for (let n = 0; n < 50; n++) signal.addEventListener('abort', () => n);
    });
    await world.enqueue();
    expect(world.events).toEqual(['started job', 'completed job']);
    expect(warned).not.toHaveBeenCalled();
    warned.mockRestore();
  });

  it('a handler cannot change the headers for the next run', async ({ world }) => {
    const seen: object[] = [];
    await world.start(({ headers }, context) => {
      seen.push({ ...headers });
      expect(Reflect.set(headers, 'trace', 'changed')).toBe(false);
      expect(Reflect.set(context.headers, 'more', '1')).toBe(false);
      if (context.retryCount === 0) throw new Error('again');
    });
    await world.enqueue('job', 1, { headers: { trace: 'abc' } });
    await world.clock.advanceAsync(1_000);
    expect(world.events.at(-1)).toBe('completed job');
    expect(seen).toEqual([{ trace: 'abc' }, { trace: 'abc' }]);
  });

  it('context.values has the values of middleware, for this run alone', async ({ world }) => {
    const seen: unknown[] = [];
    const mux = new ServeMux()
      .use((next) => (task, context) => {
        seen.push(context.values['user']);
        context.values['user'] = 'ann';
        return next(task, context);
      })
      .handle('job', (_task, { values }) => seen.push(values['user']));
    await world.start(mux);
    await world.enqueue();
    await world.enqueue();
    expect(seen).toEqual([undefined, 'ann', undefined, 'ann']);
  });

  it('a handler may take progress and writeResult out of its context', async ({ world }) => {
    await world.start(async (_task, { progress, writeResult }) => {
      await progress(1);
      await writeResult(2);
    });
    const info = await world.enqueue('job', undefined, { retentionMs: 60_000 });
    expect(await world.find(info)).toMatchObject({ progress: '1', result: Buffer.from('2') });
  });

  it('progress rejects a value that is not JSON-serializable', async ({ world }) => {
    const errors: unknown[] = [];
    await world.start(async (_task, context) => {
      const { progress, writeResult } = context;
      const calls = [progress(1n), writeResult(() => 1), progress(new Uint8Array(1))];
      for (const call of calls) await call.catch((error: unknown) => errors.push(error));
    });
    await world.enqueue();
    const code = 'ERR_INVALID_ARG_VALUE';
    expect(errors).toMatchObject([
      { code, message: expect.stringMatching(/^value must be a JSON-serializable value \(/) as unknown },
      { code, message: expect.stringMatching(/^result must be a Uint8Array or a JSON-s/) as unknown },
      { code, message: expect.stringMatching(/^value must be a JSON-serializable value\./) as unknown },
    ]);
  });

  it.for(['progress', 'writeResult'] as const)(
    'a late call of %s is ignored if it is not awaited, and rejects if it is',
    async (method, { world }) => {
      let late: (() => Promise<void>) | undefined;
      await world.start((_task, context) => {
        late = () => context[method](1);
      });
      await world.enqueue();
      await expect(late?.()).rejects.toMatchObject({ code: 'ERR_LEASE_LOST' });
      void late?.(); // an unhandled rejection would fail the test run
      await world.settle();
    },
  );
});
