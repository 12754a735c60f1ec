import { describe, expect, test } from 'vitest';
import { Task, type TaskOptions } from 'escapement/tasks';

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

describe('a task', () => {
  test('has a type, a payload and options', () => {
    const task = new Task('email:send', { userId: 42 }, { maxRetry: 3 });
    expect(task).toMatchObject({
      type: 'email:send',
      hasPayload: true,
      options: { maxRetry: 3 },
      headers: {},
    });
    expect(text(task.payload)).toBe('{"userId":42}');
    expect(task.json()).toEqual({ userId: 42 });
  });

  test('has no payload, if none is given; null is one', () => {
    expect(new Task('a')).toMatchObject({ hasPayload: false, payload: new Uint8Array(0) });
    expect(text(new Task('a', null).payload)).toBe('null');
    expect(new Task('a', new Uint8Array(0))).toMatchObject({ hasPayload: true });
  });

  test('copies the bytes of its payload', () => {
    const bytes = Uint8Array.of(1, 2);
    const task = new Task('a', bytes);
    bytes[0] = 9;
    expect([...task.payload]).toEqual([1, 2]);
  });

  test('copies its options: one object may serve many tasks', () => {
    const options = { taskId: 'a', headers: { trace: '1' } };
    const task = new Task('a', 1, options);
    options.taskId = 'b';
    options.headers.trace = '2';
    expect(task.options).toEqual({ taskId: 'a', headers: { trace: '1' } });
  });

  test.each([[(): void => undefined], [Symbol('a')], [1n], [cyclic()], [{ toJSON: () => undefined }]])(
    'refuses what JSON cannot say: %s',
    (payload) => {
      expect(() => new Task('a', payload)).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }),
      );
    },
  );

  test.each([
    ['', 'ERR_INVALID_ARG_VALUE'],
    [' \t', 'ERR_INVALID_ARG_VALUE'],
    ['\ud800', 'ERR_INVALID_ARG_VALUE'],
    [undefined, 'ERR_INVALID_ARG_TYPE'],
    [1, 'ERR_INVALID_ARG_TYPE'],
  ])('refuses the type %j', (type, code) => {
    expect(() => new Task(type as string)).toThrow(expect.objectContaining({ code }));
  });

  test('says that bytes are no JSON', () => {
    expect(() => new Task('a', Uint8Array.of(0xff)).json()).toThrow();
    expect(() => new Task('a').json()).toThrow(SyntaxError);
  });
});

describe('options of a task', () => {
  test.each<[TaskOptions]>([
    [
      {
        queue: 'low',
        taskId: 'a',
        maxRetry: 0,
        timeoutMs: 0,
        uniqueTtlMs: 1_000,
        retentionMs: 1,
        group: 'g',
      },
    ],
    [{ deadline: new Date(1), processAt: 0, headers: { a: '' } }],
    [{ processInMs: 0.5 }],
    [{ queue: undefined, headers: undefined, processInMs: undefined }],
  ])('are taken: %j', (options) => {
    expect(new Task('a', undefined, options).options).toEqual(options);
  });

  test.each([
    [{ queue: '' }, 'ERR_INVALID_ARG_VALUE'],
    [{ queue: 'a{b' }, 'ERR_INVALID_ARG_VALUE'],
    [{ queue: 'a}b' }, 'ERR_INVALID_ARG_VALUE'],
    [{ queue: 1 }, 'ERR_INVALID_ARG_TYPE'],
    [{ taskId: ' ' }, 'ERR_INVALID_ARG_VALUE'],
    [{ maxRetry: -1 }, 'ERR_OUT_OF_RANGE'],
    [{ maxRetry: 1.5 }, 'ERR_OUT_OF_RANGE'],
    [{ maxRetry: 2 ** 31 }, 'ERR_OUT_OF_RANGE'],
    [{ timeoutMs: -1 }, 'ERR_OUT_OF_RANGE'],
    [{ timeoutMs: Infinity }, 'ERR_OUT_OF_RANGE'],
    [{ timeoutMs: '5' }, 'ERR_INVALID_ARG_TYPE'],
    [{ deadline: new Date(NaN) }, 'ERR_OUT_OF_RANGE'],
    [{ deadline: '2026' }, 'ERR_INVALID_ARG_TYPE'],
    [{ uniqueTtlMs: 999 }, 'ERR_OUT_OF_RANGE'],
    [{ processAt: NaN }, 'ERR_OUT_OF_RANGE'],
    [{ processInMs: -1 }, 'ERR_OUT_OF_RANGE'],
    [{ processAt: 1, processInMs: 1 }, 'ERR_INVALID_ARG_VALUE'],
    [{ retentionMs: NaN }, 'ERR_OUT_OF_RANGE'],
    [{ group: '' }, 'ERR_INVALID_ARG_VALUE'],
    [{ headers: 'a' }, 'ERR_INVALID_ARG_TYPE'],
    [{ headers: { a: 1 } }, 'ERR_INVALID_ARG_TYPE'],
    [{ headers: { a: '\udfff' } }, 'ERR_INVALID_ARG_VALUE'],
    [{ headers: { '\udfff': 'a' } }, 'ERR_INVALID_ARG_VALUE'],
    [null, 'ERR_INVALID_ARG_TYPE'],
  ])('are refused: %j', (options, code) => {
    expect(() => new Task('a', undefined, options as TaskOptions)).toThrow(expect.objectContaining({ code }));
  });
});

function cyclic(): object {
  const self: { self?: unknown } = {};
  self.self = self;
  return self;
}
