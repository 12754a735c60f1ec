/** The dashboard in frameworks, as docs/dashboard.md describes it. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { QueueDetailJson, SessionJson } from '../../../src/dashboard/dashboard-json.ts';
import { listens, startApplication } from '../../docs/application.ts';
import { snippetsUnder } from '../../docs/snippets.ts';
import { freePort } from '../../free-port.ts';
import { openBench, type Bench } from '../../tasks/support/bench.ts';
import { FRAMEWORKS } from './frameworks.ts';

const loginOf = (login: string): Record<string, string> => ({
  authorization: `Basic ${Buffer.from(login).toString('base64')}`,
});
const ADMIN = loginOf('admin:sesame');

/** @returns where the application is. */
async function start(framework: keyof typeof FRAMEWORKS, bench: Bench): Promise<string> {
  const server = await FRAMEWORKS[framework](bench.broker);
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

describe.each(Object.keys(FRAMEWORKS) as (keyof typeof FRAMEWORKS)[])('in %s', (framework) => {
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

  test('every path of a mounted dashboard needs the login', async () => {
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
    expect(detail).toMatchObject({ queue: { paused: true }, limits: { concurrency: 3 } });
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

/** Commands of test/runtimes that run a file. */
const RUNTIMES = {
  Bun: ['bun'],
  Deno: ['deno', 'run', '--quiet', '--node-modules-dir=manual', '--allow-read', '--allow-env', '--allow-net'],
};

test.each(Object.entries(RUNTIMES))(
  '%s serves the page and a stream, by its line of the page',
  async (name, command) => {
    const [snippet] = snippetsUnder('docs/dashboard.md', 'Bun and Deno');
    const line = snippet?.source.split('\n').find((each) => each.startsWith(`${name}.`)) ?? '';
    const port = await freePort();
    const source = `import { dashboard } from 'escapement/dashboard';
import { EmbeddedBroker } from 'escapement/tasks';
const broker = await EmbeddedBroker.open();
${line.replace('8411', String(port))}\n`;
    const [program = '', ...words] = command;
    const path = join(import.meta.dirname, '../../runtimes/node_modules/.bin', program);
    const app = startApplication({ 'main.mjs': source }, [path, ...words, 'main.mjs']);
    await listens(port, app);
    const page = await fetch(`http://127.0.0.1:${port}/`);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const controller = new AbortController();
    const { body } = await fetch(`http://127.0.0.1:${port}/api/live`, { signal: controller.signal });
    expect(Buffer.from((await body?.getReader().read())?.value ?? []).toString()).toContain('retry:');
    controller.abort();
    expect((await fetch(`http://127.0.0.1:${port}/api/session`)).status).toBe(200); // it goes on without the client
    app.process.kill('SIGTERM');
    expect((await app.ended).stderr).not.toContain('Error');
  },
);
