import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, vi } from 'vitest';
import { EscapementError } from 'escapement';
import { Task } from 'escapement/tasks';
import { tasksHandler } from 'escapement/tasks/http';
import { settled } from '../../workqueue/support/outcome.ts';
import { behindParser, serve, serveTasks, serveReporting, test } from './serve.ts';

const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
};
const post = { method: 'POST' };
const BATCH = '/api/queues/default/pending_tasks:batch_delete';

test.for(['a/b', 'a:b', 'a:archive', 'a%b', 'a?b', 'a b', 'ä', '..', '__proto__', '<script>', 'a\0b'])(
  'names may be anything, percent-encoded: %j',
  async (name, { client, inspector, send }) => {
    await client.enqueue(new Task('a', 1, { queue: name, taskId: name, group: name }));
    const encoded = encodeURIComponent(name).replaceAll('.', '%2e');
    expect(await send(`/api/queues/${encoded}`)).toMatchObject({ json: { current: { queue: name } } });
    expect(await send(`/api/queues/${encoded}/tasks/${encoded}`)).toMatchObject({ json: { id: name } });
    const group = `/api/queues/${encoded}/groups/${encoded}/aggregating_tasks`;
    expect(await send(group)).toMatchObject({ json: { tasks: [{ id: name }] } });
    expect(await send(`${group}/${encoded}:run`, post)).toMatchObject({ status: 204 });
    const pending = `/api/queues/${encoded}/pending_tasks`;
    expect(await send(`${pending}/${encoded}:archive`, post)).toMatchObject({ status: 204 });
    expect(await send(`/api/queues/${encoded}:pause`, post)).toMatchObject({ status: 204 });
    expect(await send(`${pending}/${encoded}`, { method: 'DELETE' })).toMatchObject({ status: 204 });
    expect(await inspector.getQueueInfo(name)).toMatchObject({ size: 0, paused: true });
  },
);

test('names may contain colons: the verb follows the last one', async ({ add, inspector, send }) => {
  await add('a:b', { queue: 'x:y' });
  expect(await send('/api/queues/x:y')).toMatchObject({ json: { current: { queue: 'x:y' } } });
  expect(await send('/api/queues/x:y:pause', post)).toMatchObject({ status: 204 });
  expect(await send('/api/queues/x:y/pending_tasks/a:b:archive', post)).toMatchObject({ status: 204 });
  expect(await inspector.getTaskInfo('x:y', 'a:b')).toMatchObject({ state: 'archived' });
  expect(await send('/api/queues/x:y/archived_tasks/a:b', { method: 'DELETE' })).toMatchObject({
    status: 204,
  });
});

test.for(['%', '%zz', '%e0%a4', '%ff', '%20', '%00%'])(
  'names that cannot be decoded are rejected: %s',
  async (name, { send }) => {
    expect(await send(`/api/queues/${name}`)).toMatchObject({ status: 400 });
    expect(await send(`/api/queues/a/tasks/${name}`)).toMatchObject({ status: 400 });
  },
);

describe('paths', () => {
  test.for([
    '/',
    '/api',
    '/api/',
    '/apiqueues',
    '/api/nothing',
    '/api//queues',
    '/api/queues/',
    '/api/queues//pending_tasks',
    '/api/queues/a/tasks/',
    '/api/queues/a/tasks/b/c',
    '/api/queues/a/running_tasks',
    '/api/constructor',
    '/api/../api/nothing',
    '//api/queues',
    '/%61pi/queues',
    '*',
    '/api/redis_info',
    '/api/metrics',
  ])('paths that lead nowhere are not found: %s', async (path, { send }) => {
    const { status, headers, text } = await send(path);
    expect({ status, text }).toEqual({ status: 404, text: 'not found\n' });
    expect(headers).toMatchObject(SECURITY_HEADERS);
  });

  test.for([
    '/api/queues?',
    '/api/queues?a=%',
    'http://localhost/api/queues',
    'HTTP://127.0.0.1:1/api/queues?x',
  ])('paths may be written in another way: %s', async (path, { send }) => {
    expect(await send(path)).toMatchObject({ status: 200, json: { queues: [] } });
  });

  test('paths treat a verb that the method does not have as a part of the id', async ({ add, send }) => {
    await add('b:archive');
    const path = '/api/queues/default/pending_tasks/b:archive';
    expect(await send(path, { method: 'DELETE' })).toMatchObject({ status: 204 });
  });

  test.each([
    ['POST', '/api/queues', 'GET, HEAD'],
    ['GET', '/api/tasks', 'POST'],
    ['PUT', '/api/queues/a', 'GET, DELETE, HEAD'],
    ['OPTIONS', '/api/servers', 'GET, HEAD'],
    ['PATCH', '/api/queues/a/tasks/b', 'GET, HEAD'],
    ['GET', '/api/queues/a/pending_tasks/b', 'DELETE'],
    ['GET', '/api/queues/a/pending_tasks:delete_all', 'DELETE'],
    ['POST', '/api/queues/a/completed_tasks/b', 'DELETE'],
  ])('paths reject other methods: %s %s', async (method, path, allow) => {
    const { send } = await serveTasks();
    const { headers, status } = await send(path, { method });
    expect(status).toBe(405);
    expect(headers).toMatchObject({ allow, ...SECURITY_HEADERS });
  });
});

describe('bodies', () => {
  test.each([
    ['', 400],
    ['{', 400],
    ['null', 400],
    ['[]', 400],
    ['"a"', 400],
    ['{}', 400],
    ['{"task_ids":"a"}', 400],
    ['{"task_ids":[1]}', 400],
    ['{"task_ids":null}', 400],
    ['{"task_ids":[],"more":1}', 400],
    ['{"task_ids":[],"__proto__":{"polluted":true}}', 400],
    ['{"task_ids":{"length":1}}', 400],
    ['{"task_ids":[]} x', 400],
    ['{"task_ids":[]}', 200],
    ['{"task_ids":["","a",""]}', 200],
    ['{"task_ids":["__proto__","constructor"]}', 200],
  ])('the response to the body %s is %i', async (body, status) => {
    const { add, send } = await serveTasks();
    await add('x');
    expect(await send(BATCH, { ...post, body })).toMatchObject({ status });
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test('bodies that are not UTF-8 are rejected', async ({ send }) => {
    const body = Buffer.from([...Buffer.from('{"task_ids":["'), 0xff, ...Buffer.from('"]}')]);
    expect(await send(BATCH, { ...post, body })).toMatchObject({ status: 400 });
  });

  test('bodies that are too long are rejected, with and without a Content-Length', async () => {
    const { send } = await serveTasks({ maxBodyBytes: 20 });
    const body = '{"task_ids":["aaaaaaaaaaaaaaaaaaaaa"]}';
    const answer = await send(BATCH, { ...post, body });
    expect(answer).toMatchObject({ status: 413, text: 'the body is longer than 20 bytes\n' });
    expect(answer.headers).toMatchObject({ connection: 'close' });
    const chunked = { ...post, body, headers: { 'transfer-encoding': 'chunked' } };
    expect(await send(BATCH, chunked)).toMatchObject({ status: 413 });
    expect(await send(BATCH, { ...post, body: '{"task_ids":["aaa"]}' })).toMatchObject({ status: 200 });
  });

  test('bodies that end early change nothing', async ({ broker, add, inspector }) => {
    await add('a');
    const reported = vi.fn();
    const handler = tasksHandler({ broker, onError: reported });
    const arrived = new EventEmitter();
    const send = await serve((request, response) => {
      handler(request, response);
      arrived.emit('request', response);
    });
    const { port } = await send('/api/queues');
    const coming = once(arrived, 'request') as Promise<[ServerResponse]>;
    const socket = connect(port, '127.0.0.1');
    socket.write(
      `POST ${BATCH} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 18\r\n\r\n{"task_ids":["a"`,
    );
    const [response] = await coming;
    const closed = once(response, 'close');
    socket.destroy();
    await closed;
    await settled();
    expect(reported).not.toHaveBeenCalled();
    expect(await inspector.getTaskInfo('default', 'a')).toMatchObject({ state: 'pending' });
  });

  test('bodies may have been read by the framework', async ({ broker, add }) => {
    await add('a');
    const send = await serve(behindParser(tasksHandler({ broker })));
    expect(await send(BATCH, { ...post, body: { task_ids: ['a'] } })).toMatchObject({
      json: { deleted_ids: ['a'], failed_ids: [] },
    });
    expect(await send(BATCH, { ...post, body: { task_ids: 'a' } })).toMatchObject({ status: 400 });
  });

  test('bodies that the framework has read and put elsewhere are reported as such', async ({ broker }) => {
    const handler = tasksHandler({ broker });
    const send = await serve((request, response) => {
      request.resume().once('end', () => setImmediate(handler, request, response));
    });
    const text = 'the request has no body, or a framework has read it before this handler\n';
    expect(await send(BATCH, { ...post, body: { task_ids: ['a'] } })).toMatchObject({ status: 400, text });
  });
});

describe('errors', () => {
  test('errors of a broker that is closed or unavailable are not the fault of the client', async () => {
    const { broker, send } = await serveTasks();
    const away = new EscapementError('ERR_BROKER_UNAVAILABLE', 'the broker has not answered');
    vi.spyOn(broker, 'queues').mockRejectedValueOnce(away);
    expect(await send('/api/queues')).toMatchObject({ status: 503, text: 'the broker has not answered\n' });
    await broker.close();
    expect(await send('/api/queues')).toMatchObject({ status: 503 });
  });

  test('errors that are unexpected are not sent to the client', async () => {
    const { broker, send, reported } = await serveReporting();
    const secret = Object.assign(new Error('secret'), { code: 'ERR_QUEUE_NOT_FOUND' });
    vi.spyOn(broker, 'queues').mockRejectedValueOnce(secret).mockRejectedValueOnce('also secret');
    expect(await send('/api/queues')).toMatchObject({ status: 500, text: 'internal error\n' });
    expect(await send('/api/queues')).toMatchObject({ status: 500, text: 'internal error\n' });
    expect(reported).toEqual([secret, 'also secret']);
  });

  test('a batch stops once the broker is unavailable', async ({ broker, send }) => {
    const away = new EscapementError('ERR_BROKER_UNAVAILABLE', 'no answer');
    const change = vi.spyOn(broker, 'change').mockRejectedValue(away);
    const ids = Array.from({ length: 1_000 }, (_, n) => String(n));
    const answer = await send(BATCH, { ...post, body: { task_ids: ids } });
    expect(answer).toMatchObject({ status: 200, json: { deleted_ids: [], failed_ids: ids } });
    expect(change.mock.calls.length).toBeLessThan(100);
  });
});
