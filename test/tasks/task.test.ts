import { runInNewContext } from 'node:vm';
import { type } from 'arktype';
import {
  defineTask,
  type StandardSchema,
  Task,
  type TaskData,
  type TaskInfo,
  type TaskOptions,
  type TaskType,
} from 'escapement/tasks';
import * as v from 'valibot';
import { describe, expect } from 'vitest';
import { z } from 'zod';
import { codeOf, openBench, test } from './support/bench.ts';

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

describe('a task', () => {
  test('a task has a type, a payload and options', () => {
    const task = new Task('email:send', { userId: 42 }, { maxRetry: 3 });
    const options = { maxRetry: 3 };
    expect(task).toMatchObject({ type: 'email:send', hasPayload: true, options, headers: {} });
    expect(text(task.payload)).toBe('{"userId":42}');
    expect(task.json()).toEqual({ userId: 42 });
  });

  test('a task has no payload if none is given; null is a payload', () => {
    expect(new Task('a')).toMatchObject({ hasPayload: false, payload: new Uint8Array(0) });
    expect(text(new Task('a', null).payload)).toBe('null');
    expect(new Task('a', new Uint8Array(0))).toMatchObject({ hasPayload: true });
  });

  test('a task copies the bytes of its payload', () => {
    const bytes = Uint8Array.of(1, 2);
    const task = new Task('a', bytes);
    bytes[0] = 9;
    expect([...task.payload]).toEqual([1, 2]);
  });

  test('a task copies its options, so that one object may serve many tasks', () => {
    const options = { taskId: 'a', headers: { trace: '1' } };
    const task = new Task('a', 1, options);
    options.taskId = 'b';
    options.headers.trace = '2';
    expect(task.options).toEqual({ taskId: 'a', headers: { trace: '1' } });
  });

  test.each([[(): void => undefined], [Symbol('a')], [1n], [cyclic()], [{ toJSON: () => undefined }]])(
    'a task rejects a payload that is not JSON-serializable: %s',
    (payload) => {
      expect(() => new Task('a', payload)).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_ARG_VALUE' }),
      );
    },
  );

  test.each([
    [new ArrayBuffer(2)],
    [new Uint16Array([500])],
    [new Map([['a', 1]])],
    [new Set(['a'])],
    [new Error('no')],
  ])('a task rejects a payload that JSON would lose: %s', (payload) => {
    expect(() => new Task('a', payload)).toThrow(
      /^payload must be a Uint8Array or a JSON-serializable value/,
    );
  });

  test('bytes of another realm are a payload, and not JSON', () => {
    const payload: unknown = runInNewContext('new Uint8Array([1, 2])');
    expect([...new Task('a', payload).payload]).toEqual([1, 2]);
  });

  test('bytes that were transferred are refused: they would be an empty payload', () => {
    const payload = new Uint8Array([1, 2]);
    structuredClone(payload, { transfer: [payload.buffer] });
    expect(() => new Task('a', payload)).toThrow('payload must be bytes that were not transferred');
    expect(new Task('a', new Uint8Array(0)).payload).toHaveLength(0);
  });

  test('a map with a toJSON of its own is a payload', () => {
    const payload = Object.assign(new Map(), { toJSON: () => [1] });
    expect(new Task('a', payload).json()).toEqual([1]);
    const part = { toJSON: () => ({}), map: new Map([['a', 1]]) };
    expect(new Task('a', { part }).json()).toEqual({ part: {} });
  });

  test.each([
    [{ map: new Map([['a', 1]]) }, '[object Map]'],
    [[1, { deep: [{}, new Set(['a'])] }], '[object Set]'],
    [{ failed: new Error('no') }, '[object Error]'],
    [{ view: new DataView(new ArrayBuffer(1)) }, '[object DataView]'],
  ])('a task rejects a payload in which JSON would lose a part: %j', (payload, part) => {
    expect(() => new Task('a', payload)).toThrow(`value (${part} in it would be {}). Received`);
  });

  test.each([
    [{ options: {}, text: '{}' }],
    [[{}]],
    [{ bytes: new Uint8Array(0) }],
    [{ at: new Date(0), none: null }],
  ])('a task takes a payload that is whole in JSON: %j', (payload) => {
    expect(new Task('a', payload).payload).toEqual(Buffer.from(JSON.stringify(payload)));
  });

  test('properties that a payload inherits are no part of it', () => {
    const parent: { self?: object; map: unknown } = { map: new Map([['a', 1]]) };
    parent.self = parent;
    expect(new Task('a', { child: Object.create(parent) as object }).json()).toEqual({ child: {} });
  });

  test('the error for a payload has the reason why it is no JSON', () => {
    expect(() => new Task('a', { id: 1n })).toThrow(
      'value (Do not know how to serialize a BigInt). Received',
    );
  });

  test.each([
    ['', 'ERR_INVALID_ARG_VALUE'],
    [' \t', 'ERR_INVALID_ARG_VALUE'],
    ['\ud800', 'ERR_INVALID_ARG_VALUE'],
    [undefined, 'ERR_INVALID_ARG_TYPE'],
    [1, 'ERR_INVALID_ARG_TYPE'],
  ])('a task rejects the type %j', (type, code) => {
    expect(() => new Task(type as string)).toThrow(expect.objectContaining({ code }));
  });

  test('reading bytes that are not JSON as JSON throws an error that names the task', () => {
    const wrong = (message: string): unknown =>
      expect.objectContaining({ code: 'ERR_TASK_PAYLOAD', op: 'Task.json', message });
    expect(() => new Task('a', Uint8Array.of(0xff)).json()).toThrow(wrong("payload of 'a' is not JSON"));
    expect(() => new Task('a').json()).toThrow(wrong("payload of 'a' is not JSON: it is empty"));
  });
});

test.each<[TaskOptions]>([
  [
    {
      ...{ queue: 'low', taskId: 'a', maxRetry: 0, timeoutMs: 0, retentionMs: 1, group: 'g' },
      ...{ uniqueTtlMs: 1_000, uniqueKey: 'a key', onDuplicate: 'extend' },
    },
  ],
  [{ deadline: new Date(1), processAt: 0, headers: { a: '' } }],
  [{ processInMs: 0.5 }],
  [{ uniqueTtlMs: 1 }],
  [{ queue: undefined, headers: undefined, processInMs: undefined }],
])('a task accepts the options %j', (options) => {
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
  [{ uniqueTtlMs: 0 }, 'ERR_OUT_OF_RANGE'],
  [{ uniqueTtlMs: 2 ** 53 }, 'ERR_OUT_OF_RANGE'],
  [{ uniqueTtlMs: 1_000, uniqueKey: '' }, 'ERR_INVALID_ARG_VALUE'],
  [{ uniqueTtlMs: 1_000, onDuplicate: 'drop' }, 'ERR_INVALID_ARG_VALUE'],
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
])('a task rejects the options %j', (options, code) => {
  expect(() => new Task('a', undefined, options as TaskOptions)).toThrow(expect.objectContaining({ code }));
});

function cyclic(): object {
  const self: { self?: unknown } = {};
  self.self = self;
  return self;
}

interface Resize {
  readonly path: string;
  readonly width: number;
}

const LIBRARIES: [string, StandardSchema<Resize>][] = [
  ['zod', z.object({ path: z.string(), width: z.number() })],
  ['valibot', v.object({ path: v.string(), width: v.number() })],
  ['arktype', type({ path: 'string', width: 'number' })],
];

describe.each(LIBRARIES)('a task type with a schema of %s', (_, schema) => {
  const resize = defineTask('image:resize', { schema, maxRetry: 3, queue: 'images' });

  test('a payload that matches the schema is accepted', async ({ client }) => {
    const info = await client.enqueue(resize.task({ path: 'cat.jpg', width: 640 }));
    expect(info).toMatchObject({ type: 'image:resize', maxRetry: 3, queue: 'images' });
    expect(JSON.parse(new TextDecoder().decode(info.payload))).toEqual({ path: 'cat.jpg', width: 640 });
  });

  test('the error of a payload that does not match names the path and the problem', async () => {
    const { client, inspector } = await openBench();
    const wrong = resize.task({ path: 'cat.jpg', width: 'wide' as unknown as number });
    await expect(client.enqueue(wrong)).rejects.toMatchObject({
      code: 'ERR_TASK_PAYLOAD',
      message: expect.stringMatching(/^payload of 'image:resize': width/) as unknown,
    });
    const outcomes = await client.enqueueMany([wrong, resize.task({ path: 'a', width: 1 })]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect(await inspector.listPendingTasks('images')).toHaveLength(1);
  });

  test('the data of a task is parsed and has the type of the schema', async () => {
    const data: TaskData<typeof resize> = await resize.read(resize.task({ path: 'a', width: 1 }));
    expect(data).toEqual({ path: 'a', width: 1 });
    await expect(resize.read({ type: 'x', payload: Buffer.from('{') })).rejects.toMatchObject({
      ...{ code: 'ERR_TASK_PAYLOAD', op: 'TaskType.read' },
    });
  });

  test('the payload of a handler is parsed by the schema', async () => {
    await expect(resize.parse({ path: 'a', width: 1 })).resolves.toEqual({ path: 'a', width: 1 });
    await expect(resize.parse(undefined)).rejects.toMatchObject({
      ...{ code: 'ERR_TASK_PAYLOAD', op: 'TaskType.parse' },
    });
  });
});

describe('a task type', () => {
  const anything = defineTask('a', { schema: z.unknown(), queue: 'low', headers: { a: '1', b: '1' } });

  test('options and headers override those of a task type, one by one', () => {
    const { options } = anything.task({}, { queue: undefined, headers: { b: '2' }, maxRetry: 1 });
    expect(options).toMatchObject({ queue: 'low', maxRetry: 1, headers: { a: '1', b: '2' } });
  });

  test('options may override the processing time of a task type', () => {
    const late = defineTask('a', { schema: z.unknown(), processInMs: 5 });
    expect(late.task({}, { processAt: 7 }).options).toEqual({ processAt: 7 });
  });

  test('a task type validates the payload after JSON: a Date is a string', async ({ client }) => {
    const dated: TaskType<{ at: Date }> = defineTask('a', { schema: z.object({ at: z.date() }) });
    expect(await codeOf(client.enqueue(dated.task({ at: new Date() })))).toBe('ERR_TASK_PAYLOAD');
    const fromText = defineTask('a', { schema: z.object({ at: z.coerce.date<string | Date>() }) });
    await client.enqueue(fromText.task({ at: new Date(5) }));
    expect(await fromText.parse({ at: new Date(5).toISOString() })).toEqual({ at: new Date(5) });
  });

  test('a task has no payload if the schema of its type accepts undefined', async ({ client }) => {
    const nothing = defineTask('a', { schema: z.undefined() });
    await expect(client.enqueue(nothing.task(undefined))).resolves.toMatchObject({ type: 'a' });
  });

  test('a task type rejects bytes that are not JSON', async ({ client }) => {
    expect(await codeOf(client.enqueue(anything.task(Uint8Array.of(0xff))))).toBe('ERR_TASK_PAYLOAD');
  });

  test('a task type waits for an asynchronous schema', async ({ client }) => {
    const even = z.number().refine(async (n) => Promise.resolve(n % 2 === 0), 'must be even');
    const slow = defineTask('a', { schema: even });
    await expect(slow.parse(2)).resolves.toBe(2);
    const outcomes = await client.enqueueMany([1, 2, 3, 4].map((n) => slow.task(n)));
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'fulfilled']);
  });

  test.each([[undefined], [null], [5], [{}], [() => undefined], [{ '~standard': {} }]])(
    'a task type rejects the schema %s',
    (schema) => {
      expect(() => defineTask('a', { schema: schema as StandardSchema })).toThrow(
        expect.objectContaining({
          code: 'ERR_INVALID_ARG_TYPE',
          message: expect.stringContaining('options.schema must be a Standard Schema') as unknown,
        }),
      );
    },
  );
});

/** A task of that payload that is done, with that result. */
async function done(payload: unknown, result?: Uint8Array): Promise<TaskInfo> {
  const { broker, client, inspector, lease } = await openBench();
  await client.enqueue(new Task('work', payload, { taskId: 'a', retentionMs: 60_000 }));
  const task = await lease();
  if (result !== undefined) await broker.writeResult(task, result);
  await broker.complete(task);
  return inspector.waitFor('a');
}

describe('a TaskInfo', () => {
  test('a TaskInfo parses its payload and its result as JSON', async () => {
    const info = await done([1, 2], Buffer.from('{"sum":3}'));
    expect(info.json<number[]>()).toEqual([1, 2]);
    expect(info.resultJson<{ sum: number }>()).toEqual({ sum: 3 });
  });

  test('a TaskInfo returns undefined as the JSON of a result that was not written', async () => {
    expect((await done(1)).resultJson()).toBeUndefined();
  });

  test.each([
    ['a payload that is not JSON', () => done(Buffer.from('{')), 'json', 'payload'],
    ['a payload that is not UTF-8', () => done(Uint8Array.of(0xff)), 'json', 'payload'],
    ['no payload', () => done(undefined), 'json', 'payload'],
    ['a result that is not JSON', () => done(1, Buffer.from('done')), 'resultJson', 'result'],
    ['an empty result', () => done(1, Buffer.alloc(0)), 'resultJson', 'result'],
  ] as const)('a TaskInfo throws an error that names the task for %s', async (_, make, method, what) => {
    const info = await make();
    expect(() => info[method]()).toThrow(
      expect.objectContaining({
        name: 'EscapementError',
        code: 'ERR_TASK_PAYLOAD',
        op: `TaskInfo.${method}`,
        message: expect.stringContaining(`${what} of task 'a' of queue 'default' is not JSON`) as unknown,
        cause: expect.any(Error) as Error,
      }),
    );
  });
});
