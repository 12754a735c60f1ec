import {
  defineTask,
  type Middleware,
  type ReceivedTask,
  ServeMux,
  SkipRetry,
  type TaskContext,
} from 'escapement/tasks';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { MessageTask } from '../../src/tasks/server/run.ts';
import { raise } from './support/bench.ts';

const context = {} as TaskContext;

function received(type: string, payload: unknown = null): ReceivedTask {
  return receivedBytes(type, JSON.stringify(payload));
}

function receivedBytes(type: string, bytes: string): ReceivedTask {
  return new MessageTask({ type, payload: Buffer.from(bytes), headers: {} } as never, undefined);
}

describe('the choice of a handler', () => {
  const called: string[] = [];
  const mux = new ServeMux();
  for (const pattern of ['email:', 'email:welcome', 'email:welcome:vip', 'e']) {
    mux.handle(pattern, () => called.push(pattern));
  }

  it.each([
    ['email:welcome', 'email:welcome'],
    ['email:reminder', 'email:'],
    ['email:welcome:vip', 'email:welcome:vip'],
    ['email:welcome:other', 'email:welcome'],
    ['export', 'e'],
    ['email', 'e'],
  ])('a task of type %s is passed to the handler of %s', async (type, pattern) => {
    called.length = 0;
    await mux.process(context, received(type));
    await mux.process(context, received(type));
    expect(called).toEqual([pattern, pattern]);
  });

  it('a task without a handler rejects with ERR_HANDLER_NOT_FOUND', async () => {
    await expect(mux.process(context, received('image "x"'))).rejects.toMatchObject({
      ...{ code: 'ERR_HANDLER_NOT_FOUND', op: 'ServeMux.process' },
      message: 'handler not found for task "image \\"x\\""',
    });
  });

  it('a mux can be the handler of another mux', async () => {
    called.length = 0;
    await new ServeMux().handle('email:', mux).process(context, received('email:welcome'));
    expect(called).toEqual(['email:welcome']);
  });

  it.each([
    [undefined, undefined, 'context must be an object. Received undefined'],
    [context, undefined, 'task must be an object. Received undefined'],
    [null, null, 'context must be an object. Received null'],
    [received('email:'), context, 'task.type must be a string. Received undefined'], // as a handler has them
  ])('process rejects arguments that are not a context and a task', async (first, second, message) => {
    await expect(mux.process(first as never, second as never)).rejects.toMatchObject({
      ...{ code: 'ERR_INVALID_ARG_TYPE', message },
    });
  });
});

describe('middleware', () => {
  const told: string[] = [];
  const named =
    (name: string): Middleware =>
    (next) =>
    async (task, inner) => {
      told.push(`> ${name}`);
      try {
        return await next(task, inner);
      } finally {
        told.push(`< ${name}`);
      }
    };

  it('middleware is called in its order, the first one outermost', async () => {
    told.length = 0;
    const mux = new ServeMux().use(named('a'), named('b')).handle('x', () => told.push('handler'));
    mux.use(named('c'));
    await mux.process(context, received('x'));
    expect(told).toEqual(['> a', '> b', '> c', 'handler', '< c', '< b', '< a']);
  });

  it('middleware and handlers that are added after a task are called for the next one', async () => {
    told.length = 0;
    const mux = new ServeMux().use(named('a')).handle('x', () => told.push('x'));
    await mux.process(context, received('xyz'));
    mux.handle('xy', () => told.push('xy'));
    await mux.process(context, received('xyz'));
    mux.use(named('b'));
    await mux.process(context, received('xyz'));
    expect(told).toEqual(['> a', 'x', '< a', '> a', 'xy', '< a', '> a', '> b', 'xy', '< b', '< a']);
  });

  it('middleware also wraps the error if there is no handler', async () => {
    told.length = 0;
    const mux = new ServeMux().use(named('a'));
    await expect(mux.process(context, received('x'))).rejects.toMatchObject({
      code: 'ERR_HANDLER_NOT_FOUND',
    });
    expect(told).toEqual(['> a', '< a']);
  });

  it('middleware wraps a handler once, not for every task', async () => {
    let count = 0;
    const mux = new ServeMux().handle('x', () => undefined).use((next) => (count++, next));
    await mux.process(context, received('x'));
    await mux.process(context, received('xy'));
    expect(count).toBe(1);
  });

  it('middleware that returns no function is a TypeError', async () => {
    const mux = new ServeMux().handle('x', () => undefined).use(() => 5 as never);
    await expect(mux.process(context, received('x'))).rejects.toThrow(
      'the result of middleware must be a function. Received 5',
    );
  });
});

describe('a task type', () => {
  const resize = defineTask('image:resize', {
    schema: z.object({ width: z.number().transform((width) => width * 2) }),
  });

  it('the handler of a task type receives the parsed payload', async () => {
    const widths: number[] = [];
    const mux = new ServeMux().handle(resize, (task) => widths.push(task.data.width));
    await mux.process(context, received('image:resize', { width: 4 }));
    expect(widths).toEqual([8]);
  });

  it.each([
    ['has the wrong shape', received('image:resize', { width: 'wide' }), /payload of 'image:resize'.*width/],
    ['is no JSON', receivedBytes('image:resize', '{'), /JSON/],
  ])('a payload that %s archives the task', async (_what, task, message) => {
    const mux = new ServeMux().handle(resize, () => undefined);
    const error: unknown = await mux.process(context, task).catch((thrown: unknown) => thrown);
    expect(SkipRetry.is(error)).toBe(true);
    expect((error as Error).message).toMatch(message);
    expect((error as Error).cause).toBeInstanceOf(Error);
  });

  it('a schema that throws a value without a text archives the task', async () => {
    const validate = raise(Object.create(null));
    const hostile = defineTask('a', { schema: { '~standard': { version: 1, vendor: 'test', validate } } });
    const mux = new ServeMux().handle(hostile, () => undefined);
    const error: unknown = await mux.process(context, received('a')).catch((thrown: unknown) => thrown);
    expect(SkipRetry.is(error)).toBe(true);
  });

  it('a task type does not match a longer type, but a pattern of the same text does', async () => {
    const mux = new ServeMux().handle(resize, () => undefined);
    const other = received('image:resize-all', 'whatever');
    await expect(mux.process(context, other)).rejects.toMatchObject({ code: 'ERR_HANDLER_NOT_FOUND' });
    await expect(
      new ServeMux().handle('image:resize', () => undefined).process(context, other),
    ).resolves.toBeUndefined();
  });

  it('a missing payload is undefined for its schema', async () => {
    const data: unknown[] = [];
    const ping = defineTask('ping', { schema: z.string().default('pong') });
    const mux = new ServeMux().handle(ping, (task) => data.push(task.data));
    await mux.process(context, receivedBytes('ping', ''));
    expect(data).toEqual(['pong']);
  });

  it('an error of the handler of a task type is not changed', async () => {
    const error = new Error('no space left');
    const mux = new ServeMux().handle(resize, raise(error));
    await expect(mux.process(context, received('image:resize', { width: 1 }))).rejects.toBe(error);
  });
});

const mux = new ServeMux().handle('taken', () => undefined);

it.each([
  [
    'a blank pattern',
    () => mux.handle('  ', () => undefined),
    "pattern must be a string that is not blank. Received '  '",
  ],
  ['no pattern', () => mux.handle(5 as never, () => undefined), 'pattern must be a string. Received 5'],
  [
    'a pattern again',
    () => mux.handle('taken', () => undefined),
    "must be a pattern that has no handler yet. Received 'taken'",
  ],
  [
    'no handler',
    () => mux.handle('x', undefined as never),
    'handler must be a function or a ServeMux. Received undefined',
  ],
  ['no middleware', () => mux.use('x' as never), "middleware must be a function. Received 'x'"],
])('an invalid argument throws a TypeError: %s', (_what, call, message) => {
  expect(call).toThrow(message);
  expect(call).toThrow(TypeError);
});
