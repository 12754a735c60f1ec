import { describe, expect } from 'vitest';
import { EscapementError } from 'escapement';
import { flakyBroker } from 'escapement/testing';
import type { Broker } from 'escapement/tasks';
import { tasksHandler, type TasksHandlerOptions } from 'escapement/tasks/http';
import { openBench, START_MS, type Bench } from '../support/bench.ts';
import { type Answer, type Send, serve, serveTasks, test } from './serve.ts';

const PATH = '/api/tasks';

const enqueue = (send: Send, tasks: unknown): Promise<Answer> =>
  send(PATH, { method: 'POST', body: { tasks } });

/** A handler whose broker has other operations than those of the bench. */
async function serveBroken(
  operations: Partial<Broker>,
  options: Partial<TasksHandlerOptions> = {},
): Promise<Bench & { readonly send: Send }> {
  const bench = await openBench();
  const broker = Object.assign(flakyBroker(bench.broker), operations);
  return { ...bench, send: await serve(tasksHandler({ broker, ...options })) };
}

describe('a request to enqueue', () => {
  test('a request to enqueue is answered with the task', async ({ inspector, send }) => {
    const options = { taskId: 'a', queue: 'low', processAt: START_MS + 5, headers: { trace: 'x' } };
    const answer = await enqueue(send, [{ type: 'work', payload: '{"n":1}', options }]);
    expect(answer).toMatchObject({ status: 200 });
    expect(answer.json).toEqual({
      outcomes: [
        {
          task: {
            ...{ id: 'a', queue: 'low', type: 'work', state: 'scheduled', maxRetry: 25, retried: 0 },
            ...{ lastError: '', timeoutMs: 1_800_000, retentionMs: 0, headers: { trace: 'x' }, key: '' },
            ...{ nextProcessAt: new Date(START_MS + 5).toISOString(), isOrphaned: false },
          },
        },
      ],
    });
    expect((await inspector.getTaskInfo('low', 'a')).json()).toEqual({ n: 1 });
  });

  test('a request to enqueue reports each task for itself', async ({ inspector, send }) => {
    const task = (options: object): object => ({ type: 'work', options });
    const { status, json } = await enqueue(send, [
      task({ taskId: 'a', uniqueTtlMs: 1_000 }),
      task({ taskId: 'a' }),
      task({ uniqueTtlMs: 1_000 }),
      task({ maxRetrys: 1 }),
      task({ maxRetry: -1 }),
      task({ processAt: '2026-11-21' }),
      task({ processAt: 1, processInMs: 1 }),
      task({ headers: { a: 1 } }),
      task({ queue: null }),
      { type: '' },
      { type: 'work', payload: { n: 1 } },
      { type: 'work', payload: 'a', payloadEncoding: 'hex' },
      { type: 'work', payload: '\ud800' },
      { type: 'work', more: 1 },
      null,
      'work',
      task({ taskId: 'b' }),
    ]);
    expect(status).toBe(200);
    const { outcomes } = json as { outcomes: { task?: { id: string }; error?: { code: string } }[] };
    expect(outcomes.map(({ task, error }) => task?.id ?? error?.code)).toEqual([
      ...['a', 'ERR_TASK_ID_CONFLICT', 'ERR_TASK_DUPLICATE', 'ERR_UNKNOWN_OPTION', 'ERR_OUT_OF_RANGE'],
      ...['ERR_INVALID_ARG_TYPE', 'ERR_INVALID_ARG_VALUE', 'ERR_INVALID_ARG_TYPE', 'ERR_INVALID_ARG_TYPE'],
      ...['ERR_INVALID_ARG_VALUE', 'ERR_INVALID_ARG_TYPE', 'ERR_INVALID_ARG_VALUE', 'ERR_INVALID_ARG_VALUE'],
      ...['ERR_UNKNOWN_OPTION', 'ERR_INVALID_ARG_TYPE', 'ERR_INVALID_ARG_TYPE', 'b'],
    ]);
    expect(outcomes[3]?.error).toEqual({
      code: 'ERR_UNKNOWN_OPTION',
      message: 'Task: options.maxRetrys is not an option. Did you mean maxRetry?',
    });
    expect(await inspector.getQueueInfo('default')).toMatchObject({ size: 2 });
  });

  test.each([
    ['AP8=', [0, 255]],
    ['', []],
    ['AP8', undefined],
    ['AP8=\n', undefined],
    ['AP-_', undefined],
    ['A', undefined],
    ['%%%%', undefined],
  ])('a payload in base64 is decoded, or rejected if it is not canonical: %j', async (payload, bytes) => {
    const { inspector, send } = await serveTasks();
    const task = { type: 'work', payload, payloadEncoding: 'base64', options: { taskId: 'a' } };
    const { json } = await enqueue(send, [task]);
    const code = bytes === undefined ? 'ERR_INVALID_ARG_VALUE' : undefined;
    expect(json).toMatchObject({
      outcomes: [code === undefined ? { task: { id: 'a' } } : { error: { code } }],
    });
    if (bytes === undefined) return;
    expect([...(await inspector.getTaskInfo('default', 'a')).payload]).toEqual(bytes);
  });

  test.each([
    ['{}', 400],
    ['{"tasks":{"length":1}}', 400],
    ['{"tasks":[],"more":1}', 400],
    ['{"tasks":[],"__proto__":{"tasks":[]}}', 400],
    ['{"tasks":[]}', 200],
    [`{"tasks":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 200],
    ['{"tasks":[{"type":"a","options":{"__proto__":{"queue":"b"}}}]}', 200],
    ['{"tasks":[{"type":"a","options":{"headers":{"__proto__":"x","constructor":"y"}}}]}', 200],
    ['{"tasks":[{"__proto__":{"type":"a"}}]}', 200],
  ])('a hostile body does no harm: %.80s', async (body, status) => {
    const { send } = await serveTasks({ onError: (error) => expect.unreachable(String(error)) });
    expect(await send(PATH, { method: 'POST', body })).toMatchObject({ status });
    expect(({} as { queue?: string }).queue).toBeUndefined();
  });

  test('a header may have any name', async ({ inspector, send }) => {
    const body = '{"tasks":[{"type":"a","options":{"taskId":"a","headers":{"__proto__":"x"}}}]}';
    await send(PATH, { method: 'POST', body });
    const { headers } = await inspector.getTaskInfo('default', 'a');
    expect(Object.entries(headers)).toEqual([['__proto__', 'x']]);
  });

  test('a request may have maxTasksPerRequest tasks, and maxBodyBytes bytes', async () => {
    const { inspector, send } = await serveTasks({ maxTasksPerRequest: 2, maxBodyBytes: 100 });
    const task = { type: 'work' };
    expect(await enqueue(send, [task, task])).toMatchObject({ status: 200 });
    expect(await enqueue(send, [task, task, task])).toMatchObject({
      ...{ status: 413, text: 'a request has at most 2 tasks. Received 3\n' },
    });
    expect(await enqueue(send, [{ type: 'work', payload: 'x'.repeat(100) }])).toMatchObject({
      ...{ status: 413, text: 'the body is longer than 100 bytes\n' },
    });
    expect(await inspector.getQueueInfo('default')).toMatchObject({ size: 2 });
    const many = await serveTasks();
    expect(await enqueue(many.send, Array(1_000).fill(task))).toMatchObject({ status: 200 });
    expect(await enqueue(many.send, Array(1_001).fill(task))).toMatchObject({ status: 413 });
  });

  test('a request to enqueue reveals nothing of an unknown error, and reports it', async () => {
    const reported: unknown[] = [];
    const secret = new Error('secret');
    const reasons = [secret, new EscapementError('ERR_WIRE_MESSAGE', 'secret'), undefined];
    const { send } = await serveBroken(
      { enqueueMany: (tasks) => Promise.resolve(tasks.map((_, nth) => rejected(reasons[nth]))) },
      { onError: (error) => reported.push(error) },
    );
    const { status, text } = await enqueue(send, [{ type: 'a' }, { type: 'b' }, { type: 'c' }]);
    expect(status).toBe(200);
    const error = { code: 'ERR_BROKER_UNAVAILABLE', message: 'internal error' };
    expect(JSON.parse(text)).toEqual({ outcomes: [{ error }, { error }, { error }] });
    expect(reported).toEqual(reasons);
  });

  test('a request to enqueue is answered with 503 only if the broker is unavailable for all tasks', async () => {
    const lost = new EscapementError('ERR_BROKER_UNAVAILABLE', 'connect ECONNREFUSED 10.0.0.1:6379');
    let refuses = 2;
    const { broker, send } = await serveBroken({
      enqueueMany: async (tasks) => {
        const outcomes = await broker.enqueueMany(tasks.slice(refuses));
        return [...tasks.slice(0, refuses).map(() => rejected(lost)), ...outcomes];
      },
    });
    const tasks = [{ type: 'a' }, { type: 'b' }];
    const all = await enqueue(send, tasks);
    expect(all).toMatchObject({ status: 503, text: 'the broker is unavailable\n' });
    refuses = 1;
    const some = await enqueue(send, tasks);
    expect(some).toMatchObject({ status: 200, json: { outcomes: [{ error: { code: lost.code } }, {}] } });
    expect(some.text).not.toContain('10.0.0.1');
    await broker.close();
    refuses = 0;
    expect(await enqueue(send, tasks)).toMatchObject({ status: 503 });
  });
});

function rejected(reason: unknown): PromiseRejectedResult {
  return { status: 'rejected', reason };
}
