import { describe, expect, test, vi } from 'vitest';
import { EscapementError } from 'escapement';
import { Server, Task } from 'escapement/tasks';
import { pathSegment } from '../../src/dashboard/dashboard-json.ts';
import { behindParser, serve } from '../tasks/http/serve.ts';
import { serveBench, tokenHeaders } from './serve-dashboard.ts';

const SECURITY_HEADERS = {
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
};

const NAMES = [
  ...'a/b a:b a%b a?b#c a\\b ä\u{1f980} . .. ~ ~a ~.. ~~. ../api'.split(' '),
  ...['__proto__', 'constructor', 'change', 'tasks'],
  ...['<img src=x onerror=alert(1)>', '"\'`;--', 'a\0b\r\n\x1b[2J\u202e', 'a\u2028', 'x'.repeat(6_000)],
];

describe('names', () => {
  test.each(NAMES.map((name) => [name.slice(0, 30), name]))(
    'a queue and a task may have any name: %j',
    async (_, name = '') => {
      const { client, send, write, inspector } = await serveBench();
      const options = { queue: name, taskId: name, key: name.slice(0, 20) };
      await client.enqueue(new Task('<script>', { a: name }, options));
      const part = pathSegment(name);
      const { pathname } = new URL(`http://localhost/api/queues/${part}/tasks/${part}`);
      expect(pathname.split('/')).toHaveLength(6);
      const queue = await send(`/api/queues/${part}`);
      expect(queue).toMatchObject({ status: 200, json: { queue: { queue: name } } });
      const answer = await send(`/api/queues/${part}/tasks/${part}`);
      expect(answer).toMatchObject({ status: 200, json: { id: name, queue: name, type: '<script>' } });
      const json = { 'content-type': 'application/json; charset=utf-8' };
      expect(answer.headers).toMatchObject({ ...SECURITY_HEADERS, ...json });
      expect((await send(`/api/queues/${part}/keys`)).json).toMatchObject([{ key: name.slice(0, 20) }]);
      const query = new URLSearchParams({ id: name, queue: name });
      if (name.length <= 1_000)
        expect((await send(`/api/search?${query.toString()}`)).text).toContain('"matched":1');
      expect((await write('POST', `/api/queues/${part}/tasks/${part}/archive`)).status).toBe(204);
      expect(await inspector.getTaskInfo(name, name)).toMatchObject({ state: 'archived' });
    },
  );

  test.each([...NAMES.slice(0, -1), 'shown', 'toString'].map((name) => [name]))(
    'a server may work on a queue of any name: %j',
    async (name) => {
      const { add, broker, send } = await serveBench();
      await add('a', { queue: name });
      const queues = { [name]: 1, other: 2 };
      const server = new Server({ broker, queues });
      await server.start(() => undefined);
      expect((await send('/api/servers')).json).toMatchObject([{ queues }]);
      const { json } = await send(`/api/queues/${pathSegment(name)}`);
      expect(json).toMatchObject({ queue: { hasServer: true } });
      server.stop();
      await server.shutdown();
    },
  );

  test.each(['%', '%zz', '%e0%a4', '%ff', '%20', '%00', 'a%7D:b'])(
    'an invalid name of a queue is refused: %s',
    async (name) => {
      const { send } = await serveBench();
      const { status } = await send(`/api/queues/${name}`);
      expect([400, 404]).toContain(status);
    },
  );
});

describe('paths', () => {
  test.each([
    ...'/nothing /api /api/ /api/nothing /api//servers /api/queues/ /apiservers // /package.json *'.split(
      ' ',
    ),
    ...'/api/queues/a/tasks/b/c/d /../../etc/passwd /..%2f..%2fetc%2fpasswd /api/constructor'.split(' '),
    ...'/__proto__ /index.html/ /%69ndex.html //evil.example/ /\\evil.example'.split(' '),
  ])('a path that leads nowhere is not found: %s', async (path) => {
    const { send } = await serveBench();
    const { status, headers } = await send(path);
    expect(status).toBe(404);
    expect(headers).toMatchObject(SECURITY_HEADERS);
  });

  test.each([
    ['POST', '/', 'GET, HEAD'],
    ['PUT', '/api/session', 'GET, HEAD'],
    ['OPTIONS', '/api/servers', 'GET, HEAD'],
    ['GET', '/api/queues/a/pause', 'POST'],
    ['PATCH', '/api/queues/a', 'GET, DELETE, HEAD'],
  ])('another method is refused: %s %s', async (method, path, allow) => {
    const { write } = await serveBench();
    expect(await write(method, path)).toMatchObject({ status: 405, headers: { allow } });
  });

  test('an invalid page, size or state is refused', async () => {
    const { add, send } = await serveBench();
    await add('a');
    for (const query of ['page=0', 'page=-1', 'page=1e3', 'size=1001', 'size=x', 'page=99999999999999']) {
      expect(await send(`/api/queues/default/tasks?${query}`)).toMatchObject({ status: 400 });
    }
    for (const query of ['state=none', 'state=aggregating', 'state=__proto__']) {
      expect(await send(`/api/queues/default/tasks?${query}`)).toMatchObject({ status: 400 });
    }
    expect(await send('/api/history?span=__proto__')).toMatchObject({ status: 400 });
    expect(await send('/api/history?queue=__proto__')).toMatchObject({ status: 200, json: { atMs: [] } });
  });
});

describe('bodies', () => {
  const CHANGE = '/api/queues/default/tasks/change';

  test.each([
    ['', 400],
    ['{', 400],
    ['null', 400],
    ['[]', 400],
    ['{"state":"pending"}', 400],
    ['{"state":"pending","change":"__proto__"}', 400],
    ['{"state":"pending","change":"delete","__proto__":{"polluted":true}}', 400],
    ['{"state":"aggregating","change":"delete"}', 400],
    ['{"state":"pending","change":"run"}', 409],
    ['{"state":"pending","change":"delete"}', 200],
  ])('the response to the body %s is %i', async (body, status) => {
    const { add, write } = await serveBench();
    await add('a');
    expect((await write('POST', CHANGE, body)).status).toBe(status);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test('a body that is too long, or is not JSON by its type, is refused', async () => {
    const { add, write } = await serveBench();
    await add('a');
    const long = JSON.stringify({ state: 'pending', change: 'delete', group: 'x'.repeat(1_000_000) });
    expect((await write('POST', CHANGE, long)).status).toBe(413);
    expect((await write('POST', CHANGE, long, { 'transfer-encoding': 'chunked' })).status).toBe(413);
    expect((await write('POST', CHANGE, '{}', { 'content-type': 'text/plain' })).status).toBe(415);
  });

  test('invalid limits are refused, and a queue that does not exist gets no limits', async () => {
    const { add, write, inspector } = await serveBench();
    await add('a');
    const limits = '/api/queues/default/limits';
    expect((await write('PUT', limits, { concurrency: 0 })).status).toBe(400);
    expect((await write('PUT', limits, { concurrency: 1, more: 1 })).status).toBe(400);
    expect((await write('PUT', '/api/queues/missing/limits', { concurrency: 1 })).status).toBe(404);
    expect(await inspector.queues()).toEqual(['default']);
  });
});

describe('contents', () => {
  test('of a large payload a list has the beginning, and the task has a megabyte', async () => {
    const { client, send } = await serveBench();
    await client.enqueue(new Task('a', Buffer.alloc(3_000_000, 'ä'), { taskId: 'a' }));
    const { json } = await send('/api/queues/default/tasks');
    const [task] = (json as { tasks: { payload: { text: string } }[] }).tasks;
    expect(task?.payload).toMatchObject({ bytes: 3_000_000, isCut: true, text: 'ä'.repeat(250) });
    const whole = (await send('/api/queues/default/tasks/a')).json as { payload: { text: string } };
    expect(whole.payload.text).toHaveLength(500_000);
  });

  test('errors that are unexpected are reported, and not sent to the client', async () => {
    const onError = vi.fn();
    const { broker, send } = await serveBench({ onError });
    const servers = vi.spyOn(broker, 'servers').mockRejectedValue(new Error('secret'));
    expect(await send('/api/servers')).toMatchObject({ status: 500, json: { message: 'internal error' } });
    expect(onError).toHaveBeenCalledWith(expect.objectContaining({ message: 'secret' }), expect.anything());
    servers.mockRejectedValue(new EscapementError('ERR_BROKER_UNAVAILABLE', 'away'));
    const json = { message: 'away', code: 'ERR_BROKER_UNAVAILABLE' };
    expect(await send('/api/servers')).toMatchObject({ status: 503, json });
  });

  test.each([undefined, null, 'text'])('a broker that rejects with %j gets 500', async (reason) => {
    const onError = vi.fn();
    const { board, broker, send } = await serveBench({ onError });
    vi.spyOn(broker, 'servers').mockRejectedValue(reason);
    expect(await send('/api/servers')).toMatchObject({ status: 500, json: { message: 'internal error' } });
    expect((await board.fetch(new Request('http://localhost/api/servers'))).status).toBe(500);
    expect(onError.mock.calls.map(([error]: unknown[]) => error)).toEqual([reason, reason]);
  });
});

describe('mounting', () => {
  test('a dashboard is found under its prefix only, and passes other paths on', async () => {
    const { board } = await serveBench({ rootPath: '/jobs/' });
    const send = await serve((request, response) =>
      board(request, response, () => response.writeHead(418).end()),
    );
    for (const path of ['/', '/job', '/jobsapi/servers', '/api/servers', '/other/jobs/']) {
      expect((await send(path)).status).toBe(418);
    }
    expect((await send('/jobs/api/servers')).status).toBe(200);
    expect(await send('/jobs?a=b')).toMatchObject({ status: 302, headers: { location: './jobs/?a=b' } });
    expect((await send('/jobs/')).status).toBe(200);
    expect((await send('/jobs/missing.js')).status).toBe(404);
  });

  test('a framework may remove the prefix from the URL, as Express does', async () => {
    const { board } = await serveBench();
    const send = await serve((request, response) => {
      const { url = '' } = request;
      board(Object.assign(request, { originalUrl: url, url: url.replace(/^\/a\/jobs\/?/, '/') }), response);
    });
    expect(await send('/a/jobs')).toMatchObject({ status: 302, headers: { location: './jobs/' } });
    expect((await send('/a/jobs/')).status).toBe(200);
    expect((await send('/a/jobs/api/servers')).status).toBe(200);
  });

  test('a framework may have read the body', async () => {
    const { add, board } = await serveBench();
    await add('a');
    const send = await serve(behindParser(board));
    const headers = await tokenHeaders(send);
    const body = { state: 'pending', change: 'archive' };
    const request = { method: 'POST', headers, body };
    expect(await send('/api/queues/default/tasks/change', request)).toMatchObject({ json: { changed: 1 } });
  });

  test('fetch serves the page, the API, changes and streams', async () => {
    const { add, board } = await serveBench({ rootPath: '/jobs' });
    await add('a');
    const at = (path: string, init?: RequestInit): Promise<Response> =>
      board.fetch(new Request(`http://localhost${path}`, init));
    expect((await at('/jobs')).headers.get('location')).toBe('./jobs/');
    expect(await (await at('/jobs/')).text()).toContain('<!doctype html>');
    expect((await at('/elsewhere')).status).toBe(404);
    expect((await at('/jobs/api/session', { method: 'HEAD' })).body).toBeNull();
    const session = await at('/jobs/api/session');
    const { token } = (await session.json()) as { token: string };
    const headers = {
      ...{ origin: 'http://localhost', 'content-type': 'application/json', 'x-escapement-token': token },
      cookie: session.headers.get('set-cookie')?.split(';')[0] ?? '',
    };
    const body = JSON.stringify({ state: 'pending', change: 'archive' });
    const changed = await at('/jobs/api/queues/default/tasks/change', { method: 'POST', headers, body });
    expect(await changed.json()).toEqual({ changed: 1 });
    const long = { method: 'POST', headers, body: 'x'.repeat(1_000_001) };
    expect((await at('/jobs/api/queues/default/tasks/change', long)).status).toBe(413);
    expect(await (await at('/jobs/api/search?id=a')).text()).toContain('"isDone":true');
    const reader = (await at('/jobs/api/live')).body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('retry: 1000\n\n');
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toContain('"queueCount":1');
    const rest = reader?.read();
    board.close();
    for (let last = await rest; last?.done === false; last = await reader?.read());
    expect((await at('/jobs/api/live')).status).toBe(503);
  });

  test('a stream of fetch ends at once if its request was aborted before the dashboard got it', async () => {
    const { board } = await serveBench();
    const request = new Request('http://localhost/api/live', { signal: AbortSignal.abort() });
    expect(await (await board.fetch(request)).text()).toBe('');
  });
});
