/** The dashboard in frameworks, as docs/dashboard.md describes it. */
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { QueueDetailJson, SessionJson } from '../../../src/dashboard/dashboard-json.ts';
import { openBench, type Bench } from '../../tasks/support/bench.ts';
import { serveWithExpress } from './express.ts';
import { serveWithFastify } from './fastify.ts';
import { serveWithHono } from './hono.ts';
import { serveWithNode } from './node-http.ts';
import type { Broker } from 'escapement/tasks';

const FRAMEWORKS: Record<string, (broker: Broker) => Server | Promise<Server>> = {
  'node:http': serveWithNode,
  Express: serveWithExpress,
  Fastify: serveWithFastify,
  Hono: serveWithHono,
};

const loginOf = (login: string): Record<string, string> => ({
  authorization: `Basic ${Buffer.from(login).toString('base64')}`,
});
const ADMIN = loginOf('admin:sesame');

/** @returns where the application is. */
async function start(framework: string, bench: Bench): Promise<string> {
  const server = await FRAMEWORKS[framework]?.(bench.broker);
  if (server === undefined) throw new Error(`'${framework}' is not known here`);
  if (!server.listening) await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Headers of a change that the page sends. */
async function sessionHeaders(url: string, login: Record<string, string>): Promise<Record<string, string>> {
  const response = await fetch(`${url}/jobs/api/session`, { headers: login });
  const { token } = (await response.json()) as SessionJson;
  const [cookie = ''] = response.headers.getSetCookie()[0]?.split(';') ?? [];
  return { ...login, cookie, 'x-escapement-token': token, origin: url };
}

describe.each(Object.keys(FRAMEWORKS))('in %s', (framework) => {
  test('the page and its files are below the prefix, and the application beside it', async () => {
    const url = await start(framework, await openBench());
    expect(await (await fetch(url)).text()).toBe('the application');
    const page = await fetch(`${url}/jobs`, { headers: ADMIN });
    expect([page.status, page.url]).toEqual([200, `${url}/jobs/`]);
    const [, script = ''] = /<script[^>]* src="([^"]+)"/.exec(await page.text()) ?? [];
    const file = await fetch(new URL(script, page.url), { headers: ADMIN });
    expect([file.status, file.headers.get('content-type')]).toEqual([
      200,
      expect.stringContaining('javascript'),
    ]);
  });

  test('everything needs the login', async () => {
    const url = await start(framework, await openBench());
    for (const path of ['/jobs/', '/jobs/api/session', '/jobs/api/queues/default', '/jobs/nowhere.js']) {
      const response = await fetch(`${url}${path}`);
      expect([response.status, response.headers.get('www-authenticate')]).toEqual([
        401,
        'Basic realm="jobs"',
      ]);
    }
  });

  test('changes reach the broker, with and without a body, and a guest may make none', async () => {
    const bench = await openBench();
    await bench.add('a');
    const url = await start(framework, bench);
    const api = `${url}/jobs/api/queues/default`;
    const headers = await sessionHeaders(url, ADMIN);
    expect((await fetch(`${api}/pause`, { method: 'POST', headers })).status).toBe(204);
    const json = { ...headers, 'content-type': 'application/json' };
    const body = JSON.stringify({ concurrency: 3 });
    expect((await fetch(`${api}/limits`, { method: 'PUT', headers: json, body })).status).toBe(204);
    const detail = (await (await fetch(api, { headers })).json()) as QueueDetailJson;
    expect(detail).toMatchObject({ queue: { isPaused: true }, limits: { concurrency: 3 } });
    const guest = await sessionHeaders(url, loginOf('guest:guest'));
    expect((await fetch(`${api}/resume`, { method: 'POST', headers: guest })).status).toBe(403);
    expect((await fetch(`${api}/resume`, { method: 'POST', headers: ADMIN })).status).toBe(403); // no token
  });

  test('the stream sends what is live, until the client leaves', async () => {
    const bench = await openBench();
    await bench.add('a');
    const url = await start(framework, bench);
    const controller = new AbortController();
    const { signal } = controller;
    const response = await fetch(`${url}/jobs/api/live`, { headers: ADMIN, signal });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    const reader = response.body?.getReader();
    let text = '';
    while (!/^data: \{.*"default"/m.test(text))
      text += Buffer.from((await reader?.read())?.value ?? []).toString();
    controller.abort();
    await expect(reader?.read()).rejects.toThrow();
  });
});
