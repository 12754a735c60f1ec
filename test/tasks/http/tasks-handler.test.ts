import type { IncomingMessage } from 'node:http';
import { describe, expect, vi } from 'vitest';
import { Task } from 'escapement/tasks';
import { tasksHandler, type TasksHandlerOptions } from 'escapement/tasks/http';
import { openBench } from '../support/bench.ts';
import { serve, serveTasks, test } from './serve.ts';

const post = { method: 'POST' };

describe('authorize', () => {
  const authorize = ({ headers }: IncomingMessage): boolean => headers.authorization === 'Bearer t';

  test('authorize is called before anything is done or sent', async () => {
    const { add, inspector, send } = await serveTasks({ authorize });
    await add('a');
    for (const path of ['/api/queues', '/api/queues/x', '/api/nothing', '/api/queues/%'])
      expect(await send(path)).toMatchObject({ status: 403, text: 'forbidden\n' });
    expect(await send('/api/queues/default:pause', post)).toMatchObject({ status: 403 });
    expect(await inspector.getQueueInfo('default')).toMatchObject({ paused: false });
    const headers = { authorization: 'Bearer t' };
    expect(await send('/api/queues', { headers })).toMatchObject({ status: 200 });
    expect(await send('/api/queues/x', { headers })).toMatchObject({ status: 404 });
    expect(await send('/api/queues/%', { headers })).toMatchObject({ status: 400 });
  });

  test('authorize may be asynchronous, and may challenge the client in Latin-1', async () => {
    const challenge = 'Basic realm="Käse"';
    const { send } = await serveTasks({
      authorize: (request) => Promise.resolve(authorize(request) || { challenge }),
    });
    const answer = await send('/api/queues');
    expect(answer).toMatchObject({ status: 401, headers: { 'www-authenticate': challenge } });
    const headers = { authorization: 'Bearer t' };
    expect(await send('/api/queues', { headers })).toMatchObject({ status: 200 });
  });
});

test('readOnly responds with 405 to every change', async () => {
  const { add, inspector, send } = await serveTasks({ readOnly: true });
  await add('a');
  const answer = await send('/api/queues/default:pause', post);
  expect(answer).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
  const path = '/api/queues/default/pending_tasks/a';
  expect(await send(path, { method: 'DELETE' })).toMatchObject({ status: 405 });
  expect(await send('/api/queues/default')).toMatchObject({ status: 200 });
  expect(await send('/api/queues/default', { method: 'HEAD' })).toMatchObject({ status: 200 });
  expect(await inspector.getQueueInfo('default')).toMatchObject({ paused: false, pending: 1 });
});

test('requests with HEAD have the headers of GET', async ({ add, send }) => {
  await add('a');
  const got = await send('/api/queues/default/tasks/a');
  const head = await send('/api/queues/default/tasks/a', { method: 'HEAD' });
  expect(head).toMatchObject({ status: 200, text: '' });
  expect(head.headers['content-length']).toBe(got.headers['content-length']);
  expect(head.headers['content-length']).toBe(String(Buffer.byteLength(got.text)));
  const missing = await send('/api/queues/default/tasks/b', { method: 'HEAD' });
  expect(missing).toMatchObject({ status: 404, text: '' });
});

test('requests of a root path are served below it', async () => {
  for (const rootPath of ['/monitoring', '/monitoring/']) {
    const { send } = await serveTasks({ rootPath });
    expect(await send('/monitoring/api/queues')).toMatchObject({ status: 200 });
    expect(await send('/api/queues')).toMatchObject({ status: 404 });
    expect(await send('/monitoringapi/queues')).toMatchObject({ status: 404 });
  }
});

test('requests outside the interface are passed to next, before the authorization', async ({ broker }) => {
  const authorize = vi.fn(() => true);
  const handler = tasksHandler({ broker, rootPath: '/m', authorize });
  const send = await serve((request, response) => {
    handler(request, response, (error) => response.end(`next ${String(error)}`));
  });
  for (const path of ['/', '/m', '/m/api', '/m/api/nothing', '/other']) {
    expect(await send(path)).toMatchObject({ text: 'next undefined' });
  }
  expect(authorize).not.toHaveBeenCalled();
  expect(await send('/m/api/queues')).toMatchObject({ json: { queues: [] } });
  expect(await send('/m/api/queues', post)).toMatchObject({ status: 405 });
});

test.for<[Uint8Array | undefined, string]>([
  [Buffer.from('text'), 'text'],
  [Buffer.from('{\n\t"a": "ä€😀"\r\n}'), '{\n\t"a": "ä€😀"\r\n}'],
  [undefined, ''],
  [Uint8Array.of(0xff, 0xfe), 'non-printable bytes'],
  [Buffer.from('a\0b'), 'non-printable bytes'],
  [Buffer.from('a\u001b[2J'), 'non-printable bytes'],
  [Buffer.from('x'.repeat(200)), 'x'.repeat(200)],
  [Buffer.from('x'.repeat(201)), `${'x'.repeat(200)}…`],
  [Buffer.from('😀'.repeat(201)), `${'😀'.repeat(200)}…`],
  [Buffer.from('x'.repeat(803) + '😀'), `${'x'.repeat(200)}…`],
])('payloads and results are shown as text if they are: %s', async ([payload, shown], { client, send }) => {
  await client.enqueue(new Task('a', payload, { taskId: 'a' }));
  expect(await send('/api/queues/default/tasks/a')).toMatchObject({ json: { payload: shown } });
});

test('payloads and results are shown by the formatter, up to the maximum length', async () => {
  const { add, broker, lease, send } = await serveTasks({
    formatPayload: (payload, type) => `${type}: ${payload.length} bytes`,
    formatResult: (result) => Buffer.from(result).toString('hex'),
    maxPayloadLength: 10,
    maxResultLength: 4,
  });
  await add('a', { retentionMs: 1_000 });
  const task = await lease();
  await broker.writeResult(task, Uint8Array.of(1, 2, 3));
  await broker.complete(task);
  const json = { payload: 'work: 10 b…', result: '0102…' };
  expect(await send('/api/queues/default/tasks/a')).toMatchObject({ json });
});

describe('the pages of asynqmon on Redis and Prometheus', () => {
  test('the page on Redis shows the result of redisInfo', async () => {
    const versions = { info: { redis_version: '7' }, raw_info: 'redis_version:7' };
    const info = { address: 'a:1', ...versions, cluster: false };
    const { send } = await serveTasks({ redisInfo: () => Promise.resolve({ ...info, secret: 'x' }) });
    const { json } = await send('/api/redis_info');
    expect(json).toEqual({ ...info, raw_cluster_nodes: '', queue_locations: null });
  });

  test('the page on metrics queries Prometheus', async () => {
    const asked: URL[] = [];
    const prometheus = await serve((request, response) => {
      if (request.url !== '/') asked.push(new URL(request.url ?? '', 'http://a'));
      response.end('{"status":"success"}');
    });
    const port = await portOf(prometheus);
    const { send } = await serveTasks({ prometheusUrl: `http://127.0.0.1:${port}/prom/` });
    const { json, status } = await send('/api/metrics?duration=600&endtime=10000&queues=a.b,"c');
    expect(status).toBe(200);
    expect(Object.keys(json as object)).toEqual([
      ...['queue_size', 'queue_latency_seconds', 'queue_memory_usage_approx_bytes'],
      ...['tasks_processed_per_second', 'tasks_failed_per_second', 'error_rate'],
      ...['pending_tasks_by_queue', 'retry_tasks_by_queue', 'archived_tasks_by_queue'],
    ]);
    expect(new Set(asked.map(({ pathname }) => pathname))).toEqual(new Set(['/prom/api/v1/query_range']));
    const size = asked.find(({ searchParams }) => searchParams.get('query')?.startsWith('asynq_queue_size'));
    expect(Object.fromEntries(size?.searchParams ?? [])).toEqual({
      ...{ query: String.raw`asynq_queue_size{queue=~"a\\.b|\"c"}`, start: '9400', end: '10000', step: '10' },
    });
    expect(await send('/api/metrics?duration=x')).toMatchObject({ status: 400 });
  });

  test('the pages of asynqmon query Prometheus with the credentials of its URL', async () => {
    const asked: unknown[] = [];
    const prometheus = await serve(({ headers }, response) => {
      asked.push(headers.authorization);
      response.end('{"status":"success"}');
    });
    const port = await portOf(prometheus);
    const { send } = await serveTasks({ prometheusUrl: `http://us%C3%A9r:p%3Aw@127.0.0.1:${port}` });
    expect(await send('/api/metrics')).toMatchObject({ status: 200 });
    expect(asked.at(-1)).toBe(`Basic ${Buffer.from('usér:p:w').toString('base64')}`);
  });

  test('the response is 502 if Prometheus does not respond, and the reason is reported', async () => {
    const broken = await serve((_, response) => response.end('not JSON'));
    const prometheusUrl = new URL(`http://127.0.0.1:${await portOf(broken)}`);
    const onError = vi.fn();
    const { send } = await serveTasks({ prometheusUrl, onError });
    expect(await send('/api/metrics')).toMatchObject({ status: 502, text: 'Prometheus has not answered\n' });
    expect(onError).toHaveBeenCalledExactlyOnceWith(expect.any(SyntaxError), expect.anything());
  });
});

test.each([
  [{ broker: {} }, TypeError],
  [{ rootPath: 'a' }, TypeError],
  [{ rootPath: 5 }, TypeError],
  [{ authorize: 'a' }, TypeError],
  [{ readOnly: 1 }, TypeError],
  [{ allowedHosts: 'jobs.example' }, TypeError],
  [{ allowedHosts: [1] }, TypeError],
  [{ allowedHosts: [''] }, TypeError],
  [{ allowedHosts: ['https://jobs.example'] }, TypeError],
  [{ allowedHosts: ['jobs.example:443'] }, TypeError],
  [{ allowedHosts: ['jobs.example/'] }, TypeError],
  [{ allowedHosts: ['a<b'] }, TypeError],
  [{ maxBodyBytes: -1 }, RangeError],
  [{ maxPayloadLength: 0 }, RangeError],
  [{ maxResultLength: 1e9 }, RangeError],
  [{ formatPayload: {} }, TypeError],
  [{ prometheusUrl: 'not a URL' }, TypeError],
  [{ prometheusUrl: 'localhost:9090' }, TypeError],
  [{ prometheusUrl: 'http://%ff@localhost:9090' }, TypeError],
  [{ onError: 1 }, TypeError],
])('the options of the handler are validated: %j', async (options, error) => {
  const { broker } = await openBench();
  expect(() => tasksHandler({ broker, ...options } as TasksHandlerOptions)).toThrow(error);
});

/** Where a server listens: it sees it in what it is sent. */
async function portOf(send: Awaited<ReturnType<typeof serve>>): Promise<number> {
  return (await send('/')).port;
}
