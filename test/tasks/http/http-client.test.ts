import type { IncomingMessage } from 'node:http';
import { describe, expect, test, vi } from 'vitest';
import { ManualClock } from 'escapement';
import { Client, EmbeddedBroker, Task, type TaskOptions } from 'escapement/tasks';
import { tasksHandler, type TasksHandlerOptions } from 'escapement/tasks/http';
import { TASK_OPTIONS } from '../../../src/tasks/task-options.ts';
import { freePort } from '../../free-port.ts';
import { listen } from '../../listen.ts';
import { openBench, START_MS } from '../support/bench.ts';
import { LONG_MS, openClient, openRemote, passing } from './remote.ts';

describe('a client with a URL', () => {
  const EVERY_OPTION: Required<TaskOptions>[] = [
    {
      ...{ queue: 'low', taskId: 'a', maxRetry: 3, timeoutMs: 1_500, deadline: new Date(START_MS + 9_000) },
      ...{ uniqueTtlMs: 60_000, uniqueKey: 'a key', onDuplicate: 'replace' as const },
      ...{ processAt: new Date(START_MS + 7), processInMs: undefined },
      ...{ retentionMs: 5_000, group: 'g', headers: { trace: 'ä', __proto__x: '' } },
      ...{ key: 'tenant ä', priority: 'normal' as const },
    },
    {
      ...{ queue: 'low', taskId: 'b', maxRetry: 0, timeoutMs: 0, deadline: START_MS + 9_000 },
      ...{ uniqueTtlMs: 1_000, uniqueKey: 'b', onDuplicate: 'reject' as const, retentionMs: 0 },
      ...{ processAt: undefined, processInMs: 70 },
      ...{ group: 'g', headers: {}, key: 'b', priority: 'normal' as const },
    },
  ];

  test.each(EVERY_OPTION)('a client with a URL passes on every option: %j', async (options) => {
    expect(Object.keys(options).sort()).toEqual(Object.keys(TASK_OPTIONS).sort());
    const [there, here] = [await openRemote(), await openBench()];
    const task = new Task('work', { userId: 42 }, { headers: { of: 'task' }, maxRetry: 99, processInMs: 1 });
    const info = await there.client.enqueue(task, options);
    expect(info).toEqual(await here.client.enqueue(task, options));
    const id = String(options.taskId);
    expect(await there.inspector.getTaskInfo('low', id)).toEqual(await here.inspector.getTaskInfo('low', id));
    const duplicate = there.client.enqueue(task, { ...options, taskId: 'c', onDuplicate: 'reject' });
    const refusal = { code: 'ERR_TASK_DUPLICATE', op: 'Client.enqueue' };
    await expect(duplicate).rejects.toMatchObject(refusal);
  });

  test('a client with a URL passes on that a task is the next one', async () => {
    const { broker, client } = await openRemote();
    await client.enqueue(new Task('work', 1, { taskId: 'first', key: 'k' }));
    await client.enqueue(new Task('work', 1, { taskId: 'second', key: 'k', priority: 'next' }));
    const [next] = await broker.dequeue('default', 1, 1_000);
    expect(next?.message).toMatchObject({ id: 'second', key: 'k' });
  });

  test.each([
    [undefined],
    [new Uint8Array()],
    [Uint8Array.of(0, 255, 254)],
    [{ text: '\ufeff"€😀\u0000' }],
    ['\ud800'],
  ])('a client with a URL passes on the payload %j', async (payload) => {
    const { broker, client, inspector } = await openRemote();
    const task = new Task('work', payload, { uniqueTtlMs: 1_000 });
    const { id, queue, payload: known } = await client.enqueue(task);
    expect(Buffer.from(known)).toEqual(Buffer.from(task.payload));
    expect(Buffer.from((await inspector.getTaskInfo(queue, id)).payload)).toEqual(Buffer.from(task.payload));
    const here = await openBench();
    const local = await here.client.enqueue(task); // the lock depends on the bytes, and on whether there are any
    const { message } = await broker.task(queue, id);
    expect(message.uniqueKey).toBe((await here.broker.task(queue, local.id)).message.uniqueKey);
  });

  test('a client with a URL rejects with the error of the broker, and names its method', async () => {
    const { client } = await openRemote();
    await client.enqueue(new Task('work', 1, { taskId: 'a' }));
    await expect(client.enqueue(new Task('work', 1, { taskId: 'a' }))).rejects.toMatchObject({
      ...{ name: 'EscapementError', code: 'ERR_TASK_ID_CONFLICT', op: 'Client.enqueue' },
      message: "queue 'default' already has a task 'a'",
    });
  });

  test('enqueueMany is one request, and each task succeeds or fails by itself', async () => {
    let requests = 0;
    const { client, inspector } = await openRemote({}, {}, (handle) => {
      requests++;
      handle();
    });
    const enqueued: string[] = [];
    client.on('enqueued', ({ id }) => enqueued.push(id));
    const task = new Task('work', 1);
    const outcomes = await client.enqueueMany(
      [
        new Task('work', 1, { taskId: 'a' }),
        { task, options: { taskId: 'a' } },
        { task, options: { maxRetry: -1 } },
        { task, options: { taskId: 'b', queue: 'low' } },
      ],
      { queue: 'high' },
    );
    expect(outcomes).toMatchObject([
      { status: 'fulfilled', value: { id: 'a', queue: 'high', state: 'pending' } },
      { status: 'rejected', reason: { code: 'ERR_TASK_ID_CONFLICT', op: 'Client.enqueueMany' } },
      { status: 'rejected', reason: { code: 'ERR_OUT_OF_RANGE' } },
      { status: 'fulfilled', value: { id: 'b', queue: 'low' } },
    ]);
    expect([requests, enqueued]).toEqual([1, ['a', 'b']]);
    expect((await inspector.queues()).toSorted()).toEqual(['high', 'low']);
    expect(await client.enqueueMany([])).toEqual([]);
    expect(requests).toBe(1);
  });

  test.each([
    [{ url: 'redis://localhost' }],
    [{ url: 'jobs.example' }],
    [{ url: 5 }],
    [{ url: 'http://x', timeoutMs: 0 }],
    [{ url: 'http://x', maxRetries: -1 }],
    [{ url: 'http://x', headers: 'a' }],
    [{ url: 'http://x', headers: new Headers({ a: 'b' }) }],
    [{ url: 'http://x', headers: { authorization: 5 } }],
    [{ url: 'http://x', headers: { 'a b': 'c' } }],
    [{ url: 'http://x', signal: {} }],
    [{ url: 'http://x', clock: {} }],
    [{ url: 'http://x', broker: {} }],
    [{}],
    [undefined],
  ])('a client rejects the options %j', (options) => {
    expect(() => new Client(options as never)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^ERR_/) as unknown }) as Error,
    );
  });

  test('errors and consoles show no secrets', () => {
    const headers = { authorization: 'Bearer s3cret\n' };
    for (const options of [{ url: 'http://x', headers }, { url: 'ftp://me:s3cret@x' }]) {
      const make = (): Client => new Client(options);
      expect(make).toThrow(TypeError);
      expect(make).not.toThrow('s3cret');
    }
  });
});

describe('authorization', () => {
  const authorize = ({ headers }: IncomingMessage): boolean => headers.authorization === 'Bearer t2';

  test('headers are sent with each request', async () => {
    const { client } = await openRemote({ headers: { Authorization: 'Bearer t2' } }, { authorize });
    await expect(client.enqueue(new Task('a'))).resolves.toMatchObject({ state: 'pending' });
  });

  test('headers may be a function, which is called before each attempt', async () => {
    const { broker } = await openBench();
    const port = await freePort();
    let n = 0;
    const headers = vi.fn(async () => {
      if (++n === 2) await listen(tasksHandler({ broker, authorize }), port);
      return { authorization: `Bearer t${n}`, 'content-type': 'text/html' };
    });
    const time = new ManualClock();
    const client = new Client({ url: `http://127.0.0.1:${port}`, headers, clock: time, timeoutMs: LONG_MS });
    await expect(passing(time, client.enqueue(new Task('a')))).resolves.toMatchObject({ state: 'pending' });
    expect(headers).toHaveBeenCalledTimes(2);
  });

  test('an error of the function `headers`, or a wrong result of it, rejects the call', async () => {
    const error = new Error('no token');
    const rejecting = await openClient(() => undefined, { headers: () => Promise.reject(error) });
    await expect(rejecting.enqueue(new Task('a'))).rejects.toBe(error);
    const wrong = await openClient(() => undefined, { headers: () => ({ a: 'b\nc' }) });
    await expect(wrong.enqueue(new Task('a'))).rejects.toMatchObject({ code: 'ERR_INVALID_ARG_VALUE' });
  });

  test('credentials in the URL are sent as Basic, unless headers has others', async () => {
    const seen: unknown[] = [];
    const port = await listen((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(403).end();
    });
    const url = new URL(`http://me:p%40ss@127.0.0.1:${port}/`);
    await new Client({ url }).enqueue(new Task('a')).catch(() => undefined);
    await new Client({ url, headers: { authorization: 'x' } }).enqueue(new Task('a')).catch(() => undefined);
    expect(seen).toEqual([`Basic ${btoa('me:p@ss')}`, 'x']);
  });

  test.each<[number | undefined, Partial<TasksHandlerOptions>, RegExp]>([
    [403, { authorize: () => false }, /: forbidden \(HTTP 403\)$/],
    [401, { authorize: () => ({ challenge: 'Basic' }) }, /: unauthorized \(HTTP 401\)$/],
    [405, { readOnly: true }, /: POST is not allowed here \(HTTP 405\)$/],
    [404, { rootPath: '/elsewhere' }, /^there is no tasks API at http:\S+ \(HTTP 404\)$/],
    [413, { maxBodyBytes: 10 }, /: the body is longer than 10 bytes \(HTTP 413\)$/],
  ])('a refusal rejects, and is not tried again: %s', async (_, served, message) => {
    let requests = 0;
    const { client, inspector } = await openRemote({}, served, (handle) => {
      requests++;
      handle();
    });
    await expect(client.enqueue(new Task('a'))).rejects.toMatchObject({
      ...{
        code: 'ERR_BROKER_REFUSED',
        op: 'Client.enqueue',
        message: expect.stringMatching(message) as string,
      },
    });
    expect([requests, await inspector.queues()]).toEqual([1, []]);
  });

  test('a response of another server is not taken for a reason', async () => {
    const client = await openClient((_, response) => response.writeHead(202).end('accepted'));
    await expect(client.enqueue(new Task('a'))).rejects.toMatchObject({
      code: 'ERR_BROKER_REFUSED',
      message: expect.stringMatching(/^there is no tasks API at http:\S+ \(HTTP 202\)$/) as unknown,
    });
  });

  test('too many tasks are refused together', async () => {
    const { client, inspector } = await openRemote({}, { maxTasksPerRequest: 1 });
    const refused = { status: 'rejected', reason: { code: 'ERR_BROKER_REFUSED', op: 'Client.enqueueMany' } };
    const outcomes = await client.enqueueMany([new Task('a'), new Task('b')]);
    expect(outcomes).toMatchObject([refused, refused]);
    expect(await inspector.queues()).toEqual([]);
  });

  test('a redirect is not followed, because it would take the credentials to another server', async () => {
    const headers = { location: 'http://x/' };
    const client = await openClient((_, response) => response.writeHead(302, headers).end());
    await expect(client.enqueue(new Task('a'))).rejects.toMatchObject({ code: 'ERR_BROKER_REFUSED' });
  });
});

test('a client needs either a broker or a URL', async () => {
  const broker = await EmbeddedBroker.open();
  expect(() => new Client({ broker, url: 'http://x' } as never)).toThrow('options.broker is not an option');
  expect(() => new Client({} as never)).toThrow('options.broker must be a Broker');
  const { state } = await new Client({ broker, url: undefined }).enqueue(new Task('a'));
  expect(state).toBe('pending');
});
