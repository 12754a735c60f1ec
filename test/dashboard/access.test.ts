import type { IncomingMessage } from 'node:http';
import { describe, expect, test, vi } from 'vitest';
import { dashboard, type Access, type DashboardOptions } from 'escapement/dashboard';
import { openBench } from '../tasks/support/bench.ts';
import { serveBench, tokenHeaders } from './serve-dashboard.ts';

const PAUSE = '/api/queues/default/pause';

describe('authorize', () => {
  test.each<[Access, number, number]>([
    [true, 200, 204],
    [false, 403, 403],
    ['read-only', 200, 403],
    [{ challenge: 'Basic realm="jobs"' }, 401, 401],
    [{ actions: ['pause'] }, 200, 204],
    [{ actions: ['resume', 'delete'] }, 200, 403],
    [{ actions: [] }, 200, 403],
  ])('a request with the access %j gets %i to read and %i to pause', async (access, read, write) => {
    let verdict: Access = true;
    const { add, send } = await serveBench({ authorize: () => verdict });
    await add('a');
    const headers = await tokenHeaders(send);
    verdict = access;
    for (const path of ['/', '/api/session', '/api/queues/default', '/api/health']) {
      expect([path, (await send(path)).status]).toEqual([path, read]);
    }
    for (const path of ['/api/nothing', '/api/%']) {
      expect([path, (await send(path)).status]).toEqual([path, read === 200 ? 404 : read]);
    }
    expect((await send(PAUSE, { method: 'POST', headers })).status).toBe(write);
  });

  test.each([
    ...[undefined, null, 1, 'yes', {}, { challenge: 1 }, { challenge: 'a\nb' }],
    ...[{ actions: ['all'] }, { actions: 'run' }],
  ])('a result of authorize that is no access is an error of the program: %j', async (verdict) => {
    const onError = vi.fn();
    const { send } = await serveBench({ authorize: () => verdict as never, onError });
    expect(await send('/api/session')).toMatchObject({ status: 500, json: { message: 'internal error' } });
    expect(onError.mock.calls[0]?.[0]).toBeInstanceOf(TypeError);
  });

  test('an authorize that fails is reported, and the response is 500', async () => {
    const onError = vi.fn();
    const { send } = await serveBench({ authorize: () => Promise.reject(new Error('secret')), onError });
    const { status, text } = await send('/');
    expect(status).toBe(500);
    expect(text).not.toContain('secret');
    expect(onError).toHaveBeenCalledOnce();
  });

  test('an authorize may be annotated for the kind of request that the program serves', async () => {
    const { broker } = await openBench();
    const node: DashboardOptions = {
      broker,
      authorize: (request: IncomingMessage) => request.url !== undefined,
    };
    const web: DashboardOptions = { broker, authorize: (request: Request) => request.headers.has('x-admin') };
    dashboard(node).close();
    const board = dashboard(web);
    const headers = { 'x-admin': '1' };
    expect((await board.fetch(new Request('http://jobs.example/api/servers', { headers }))).status).toBe(200);
    expect((await board.fetch(new Request('http://jobs.example/api/servers'))).status).toBe(403);
    board.close();
  });
});

test('a dashboard that is read-only refuses every change, whatever authorize allows', async () => {
  const { add, write, send } = await serveBench({ readOnly: true, authorize: () => true });
  await add('a');
  expect((await send('/api/session')).json).toMatchObject({ actions: [] });
  expect((await send('/api/queues/default/tasks/a')).json).toMatchObject({ actions: [] });
  const changes: [string, string, unknown?][] = [
    ['POST', PAUSE],
    ['POST', '/api/queues/default/resume'],
    ['DELETE', '/api/queues/default?force=1'],
    ['PUT', '/api/queues/default/limits', { concurrency: 1 }],
    ['DELETE', '/api/queues/default/limits'],
    ['POST', '/api/queues/default/tasks/change', { state: 'pending', change: 'delete' }],
    ...['run', 'archive', 'delete', 'cancel'].map((action): [string, string] => [
      ...(['POST', `/api/queues/default/tasks/a/${action}`] as const),
    ]),
    ['POST', '/api/search/change', { filter: {}, change: 'delete' }],
  ];
  for (const [method, path, body] of changes) {
    expect([path, (await write(method, path, body)).status]).toEqual([path, 403]);
  }
  expect((await send('/api/queues/default')).json).toMatchObject({ queue: { pending: 1 } });
});

describe('changes', () => {
  test.each<[string, Record<string, string | undefined>, number]>([
    ['as the page sends it', {}, 204],
    ['with an Origin that is that of the server', { 'sec-fetch-site': undefined, origin: 'SELF' }, 204],
    ['without Origin and Sec-Fetch-Site', { 'sec-fetch-site': undefined }, 403],
    ['from another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['without the token', { 'x-escapement-token': undefined }, 403],
    ['without the cookie', { cookie: undefined }, 403],
    ['with another token', { 'x-escapement-token': 'A'.repeat(43) }, 403],
    ['with empty tokens', { 'x-escapement-token': '', cookie: 'x-escapement-token=' }, 403],
    ['with a short token', { 'x-escapement-token': 'a', cookie: 'x-escapement-token=a' }, 403],
  ])('a change %s gets its answer', async (_, headers, status) => {
    const { add, send, write } = await serveBench();
    await add('a');
    const { port } = await send('/api/session');
    const given = Object.entries(headers).map(([name, value]) => [
      ...[name, value === 'SELF' ? `http://127.0.0.1:${port}` : value],
    ]);
    const answer = await write('POST', PAUSE, undefined, Object.fromEntries(given) as typeof headers);
    expect(answer.status).toBe(status);
  });

  test('a session keeps the token of its cookie, and a cookie of another dashboard does not disturb it', async () => {
    const { add, send } = await serveBench();
    await add('a');
    const headers = await tokenHeaders(send);
    const again = await send('/api/session', { headers });
    expect(again.headers['set-cookie']).toBeUndefined();
    expect(again.json).toMatchObject({ token: headers['x-escapement-token'] });
    const cookie = `x-escapement-token=${'B'.repeat(43)}; a=b; ${headers['cookie'] ?? ''}`;
    expect((await send(PAUSE, { method: 'POST', headers: { ...headers, cookie } })).status).toBe(204);
  });

  test('the cookie of a session is out of reach for scripts and other sites', async () => {
    const { send } = await serveBench();
    const [cookie] = (await send('/api/session')).headers['set-cookie'] ?? [];
    expect(cookie).toMatch(/^x-escapement-token=[\w-]{43}; HttpOnly; SameSite=Strict$/);
  });
});

describe('pages of other sites', () => {
  test('a page of another site cannot read the API, nor start a search', async () => {
    const { send } = await serveBench();
    for (const site of ['cross-site', 'same-site']) {
      const headers = { 'sec-fetch-site': site };
      expect(await send('/api/search?text=a', { headers })).toMatchObject({ status: 403 });
      expect(await send('/api/session', { headers })).toMatchObject({ status: 403 });
      expect(await send('/', { headers })).toMatchObject({ status: 200 }); // a link
    }
  });

  test.each<[string, Partial<DashboardOptions>, number]>([
    ['evil.example', {}, 403],
    ['jobs.example', { allowedHosts: ['jobs.example'] }, 200],
    ['evil.example', { authorize: () => true, allowedHosts: ['jobs.example'] }, 403],
    ['jobs.example', { authorize: () => true }, 200],
  ])('a request to the host %j with the options %j gets %i', async (host, options, status) => {
    const { send } = await serveBench(options);
    expect((await send('/api/session', { headers: { host } })).status).toBe(status);
    expect((await send('/', { headers: { host } })).status).toBe(status);
  });

  test.each<[string, Record<string, string>, number]>([
    ['no Host', {}, 200],
    ['the Host of another name', { host: 'evil.example' }, 403],
    ['the Host of an address', { host: '10.0.0.5:3000' }, 200],
  ])(
    'a request of fetch is judged by its Host, whatever host a framework writes into its URL: %s',
    async (_, headers, status) => {
      const { board } = await serveBench();
      const request = new Request('http://localhost:3000/api/session', { headers });
      expect((await board.fetch(request)).status).toBe(status);
    },
  );

  test('the origin of a change by fetch is that of its Host', async () => {
    const { add, board, send } = await serveBench();
    await add('a');
    const { cookie = '', 'x-escapement-token': token = '' } = await tokenHeaders(send);
    const statuses = ['http://10.0.0.5:3000', 'http://localhost:3000'].map(async (origin) => {
      const headers = { cookie, 'x-escapement-token': token, host: '10.0.0.5:3000', origin };
      return (await board.fetch(new Request(`http://localhost:3000${PAUSE}`, { method: 'POST', headers })))
        .status;
    });
    expect(await Promise.all(statuses)).toEqual([204, 403]);
  });
});
