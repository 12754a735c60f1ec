import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect } from 'vitest';
import { tasksHandler } from 'escapement/tasks/http';
import { openBench } from '../support/bench.ts';
import { type Answer, type Request, type Send, serve, serveTasks, test } from './serve.ts';

const LIST = '/api/queues/default/pending_tasks';
const PAUSE = '/api/queues/default:pause';
const BATCH = `${LIST}:batch_delete`;
const ids = { task_ids: ['a'] };

/** A queue with one task, behind Basic credentials, which a browser sends with every request to the server. */
async function serveBehindPassword(allowedHosts?: readonly string[]): ReturnType<typeof serveTasks> {
  const served = await serveTasks({
    authorize: ({ headers }) => headers.authorization === 'Basic YTpi' || { challenge: 'Basic' },
    ...(allowedHosts && { allowedHosts }),
  });
  await served.add('a');
  const authorization = 'Basic YTpi';
  const send: Send = (path, request = {}) =>
    served.send(path, { ...request, headers: { authorization, ...request.headers } });
  return { ...served, send };
}

async function write(headers: Record<string, string>, allowedHosts?: readonly string[]): Promise<Answer> {
  const { send } = await serveBehindPassword(allowedHosts);
  return send(PAUSE, { method: 'POST', headers });
}

describe('a write', () => {
  const HOST = 'localhost:8080';

  test.each([
    ['a cross-site page', { 'sec-fetch-site': 'cross-site' }],
    ['a page of another host of the site', { 'sec-fetch-site': 'same-site' }],
    ['no page', { 'sec-fetch-site': 'none' }],
    ['a page with an empty Sec-Fetch-Site', { 'sec-fetch-site': '' }],
    ['a page with two values', { 'sec-fetch-site': 'same-origin, cross-site' }],
    ['a cross-site page with our origin', { 'sec-fetch-site': 'cross-site', origin: `http://${HOST}` }],
    ['another host', { origin: 'http://evil.example' }],
    ['another port', { origin: 'http://localhost:3000' }],
    ['no port', { origin: 'http://localhost' }],
    ['a host that begins as ours', { origin: 'http://localhost:8080.evil.example' }],
    ['a host that ends as ours', { origin: 'http://evil-localhost:8080' }],
    ['a sandbox', { origin: 'null' }],
    ['an empty origin', { origin: '' }],
    ['an origin with a path', { origin: `http://${HOST}/` }],
    ['an origin with a user', { origin: `http://evil@${HOST}` }],
    ['an origin of another scheme', { origin: `chrome-extension://${HOST}` }],
    ['two origins', { origin: `http://${HOST}, http://evil.example` }],
  ])('a write of %s changes nothing', async (_, headers) => {
    const { inspector, send } = await serveBehindPassword();
    const requests: [path: string, request: Request][] = [
      [PAUSE, { method: 'POST' }],
      [BATCH, { method: 'POST', body: ids }],
      [`${LIST}:archive_all`, { method: 'POST' }],
      [`${LIST}/a`, { method: 'DELETE' }],
      [`${LIST}:delete_all`, { method: 'DELETE' }],
    ];
    for (const [path, request] of requests) {
      const { status, text } = await send(path, { ...request, headers: { host: HOST, ...headers } });
      expect({ status, text }).toEqual({ status: 403, text: expect.stringMatching(/origin/i) as string });
    }
    expect(await inspector.getQueueInfo('default')).toMatchObject({ paused: false, pending: 1 });
  });

  test.each([
    ['no browser', {}],
    ['our page', { 'sec-fetch-site': 'same-origin' }],
    ['our page, behind a proxy', { 'sec-fetch-site': 'same-origin', origin: 'https://a' }],
    ['our page over plain HTTP', { origin: `http://${HOST}` }],
    ['our page behind TLS', { origin: 'https://localhost', host: 'localhost' }],
    ['our page behind TLS, with the port', { origin: 'https://localhost', host: 'LocalHost:443' }],
    ['our page at port 80', { origin: 'http://localhost', host: 'localhost:80' }],
    ['our page at an address', { origin: 'http://[::1]:8080', host: '[::1]:8080' }],
  ])('a write of %s is done', async (_, headers) => {
    expect(await write({ host: HOST, ...headers })).toMatchObject({ status: 204 });
  });

  test('a write is refused before the authorization of its client', async () => {
    const { send } = await serveTasks({ authorize: () => ({ challenge: 'Basic' }) });
    const { status, headers } = await send(PAUSE, { method: 'POST', headers: { origin: 'null' } });
    expect({ status, challenge: headers['www-authenticate'] }).toEqual({ status: 403, challenge: undefined });
  });

  test('a write is not attributed to the host in a proxy header', async () => {
    const headers = { host: HOST, origin: 'http://evil.example', 'x-forwarded-host': 'evil.example' };
    expect(await write(headers)).toMatchObject({ status: 403 });
    expect(await write({ ...headers, forwarded: 'host=evil.example' })).toMatchObject({ status: 403 });
  });
});

describe('the content type of a write', () => {
  test.each([
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'text/plain',
    'text/plain; application/json',
    'text/plain;charset=application/json',
    'application/jsonp',
    'application/json, text/plain',
    '',
  ])('the content type of a write cannot be one that a form sends: %j', async (type) => {
    const { inspector, send } = await serveBehindPassword();
    const headers = { 'content-type': type };
    expect(await send(BATCH, { method: 'POST', body: ids, headers })).toMatchObject({
      ...{ status: 415, text: 'the content type must be application/json\n' },
    });
    expect(await send(PAUSE, { method: 'POST', headers })).toMatchObject({ status: 415 });
    expect(await send(`${LIST}/a`, { method: 'DELETE', headers })).toMatchObject({ status: 415 });
    expect(await inspector.getQueueInfo('default')).toMatchObject({ paused: false, pending: 1 });
  });

  test.each(['application/json', 'application/json;charset=utf-8', 'Application/JSON ; charset=utf-8'])(
    'the content type of a write may be %s',
    async (type) => {
      const { send } = await serveBehindPassword();
      const headers = { 'content-type': type };
      expect(await send(BATCH, { method: 'POST', body: ids, headers })).toMatchObject({ status: 200 });
      expect(await send(PAUSE, { method: 'POST', headers })).toMatchObject({ status: 204 });
    },
  );

  test('the content type of a write may be absent only where no body is read: a page can send a Blob without a type', async () => {
    const { inspector, send } = await serveBehindPassword();
    const headers = { 'content-type': undefined };
    expect(await send(BATCH, { method: 'POST', body: ids, headers })).toMatchObject({ status: 415 });
    expect(await inspector.getQueueInfo('default')).toMatchObject({ pending: 1 });
    expect(await send(`${LIST}/a`, { method: 'DELETE', headers })).toMatchObject({ status: 204 });
  });

  test('the content type of a write is checked when the framework has parsed a form', async () => {
    const { broker, add, inspector } = await openBench();
    await add('a');
    const handler = tasksHandler({ broker });
    const send = await serve((request, response) => {
      const parsed = Object.assign(request, { body: ids });
      request.resume().on('end', () => setImmediate(handler, parsed, response));
    });
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const body = 'task_ids[]=a';
    expect(await send(BATCH, { method: 'POST', body, headers })).toMatchObject({ status: 415 });
    expect(await inspector.getQueueInfo('default')).toMatchObject({ pending: 1 });
  });
});

describe('the Host of a request', () => {
  test.each([
    'evil.example',
    'evil.example:8080',
    'localhost.evil.example',
    'evil-localhost',
    'localhost@evil.example',
    'localhost:evil',
    'localhost/evil.example',
    '127.0.0.1.evil.example',
    '2130706433',
    '0x7f000001',
    '127.1',
    '[::1',
    '[evil.example]',
    'a\\b',
    '*',
    '.',
    '.localhost.example',
  ])('the Host of a request is refused unless it is listed, reads included: %j', async (host) => {
    const { inspector, send } = await serveBehindPassword();
    const origin = `http://${host}`;
    const read = await send('/api/queues', { headers: { host } });
    expect(read).toMatchObject({ status: 403, text: expect.stringContaining('allowedHosts') as string });
    expect(await send('/api/nothing', { headers: { host } })).toMatchObject({ status: 403 });
    const rebound = { host, origin, 'sec-fetch-site': 'same-origin' };
    expect(await send(PAUSE, { method: 'POST', headers: rebound })).toMatchObject({ status: 403 });
    expect(await inspector.getQueueInfo('default')).toMatchObject({ paused: false });
  });

  test.each([
    'localhost',
    'LOCALHOST:1',
    'localhost.',
    'jobs.localhost:8080',
    '127.0.0.1:8080',
    '127.1.2.3',
    '[::1]:8080',
    '[::ffff:127.0.0.1]',
    '192.168.1.5:80',
    '203.0.113.5',
    '[2001:db8::1]',
  ])('the Host of a request may be a loopback name or an address: %s', async (host) => {
    const { send } = await serveBehindPassword();
    expect(await send('/api/queues', { headers: { host } })).toMatchObject({ status: 200 });
  });

  test.each([
    ['jobs.example', 200],
    ['JOBS.example:8443', 200],
    ['jobs.example.', 200],
    ['xn--mller-kva.example', 200],
    ['localhost', 200],
    ['a.jobs.example', 403],
    ['jobs.example.evil.example', 403],
  ])('the Host of a request is compared with the names that are listed: %s', async (host, status) => {
    const { send } = await serveBehindPassword(['Jobs.example', 'müller.example']);
    expect(await send('/api/queues', { headers: { host } })).toMatchObject({ status });
  });

  test('the Host of a request may be any name if the wildcard is allowed', async () => {
    const { send } = await serveBehindPassword(['*']);
    expect(await send('/api/queues', { headers: { host: 'evil.example' } })).toMatchObject({ status: 200 });
    expect(await write({ host: 'a', origin: 'http://b' }, ['*'])).toMatchObject({ status: 403 });
  });

  test('the Host of a request is not taken from the headers of a proxy', async () => {
    const { send } = await serveBehindPassword();
    const headers = { host: 'evil.example', 'x-forwarded-host': 'localhost' };
    expect(await send('/api/queues', { headers })).toMatchObject({ status: 403 });
    const passedOn = { host: 'localhost', 'x-forwarded-host': 'evil.example' };
    expect(await send('/api/queues', { headers: passedOn })).toMatchObject({ status: 200 });
  });

  test('the Host of a request is that of the URL if the URL has one', async () => {
    const { send } = await serveBehindPassword();
    const headers = { host: 'localhost' };
    expect(await send('http://evil.example/api/queues', { headers })).toMatchObject({ status: 403 });
    const reversed = { host: 'evil.example' };
    expect(await send('http://localhost/api/queues', { headers: reversed })).toMatchObject({ status: 200 });
  });

  test('the Host of a request is missing in old clients, which are refused', async ({ send }) => {
    const { port } = await send('/api/queues');
    const socket = connect(port, '127.0.0.1');
    socket.write('GET /api/queues HTTP/1.0\r\n\r\n');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 403 /);
    socket.destroy();
  });

  test('the Host of a request is not checked for paths outside the interface', async ({ broker }) => {
    const handler = tasksHandler({ broker });
    const send = await serve((request, response) => {
      handler(request, response, () => response.end('next'));
    });
    expect(await send('/other', { headers: { host: 'evil.example' } })).toMatchObject({ text: 'next' });
  });
});
