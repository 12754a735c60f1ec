/** `escapement dashboard`, run in this process. */
import { Client, EmbeddedBroker, Inspector, Task } from 'escapement/tasks';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { addDashboard } from '../../src/cli/dashboard/dashboard.ts';
import type { LiveJson, SessionJson, TaskDetailJson } from '../../src/dashboard/dashboard-json.ts';
import { folderOfTest } from '../folder.ts';
import { listen } from '../listen.ts';
import { redisForTest } from '../tasks/broker/redis/setup.ts';
import { openBench } from '../tasks/support/bench.ts';
import { FakeStream, runPart, serve, serveTasks } from './tasks/support/tasks-command.ts';

interface Running {
  /** Where it is; empty if it has ended before. */
  readonly url: string;
  /** Ends it as Ctrl-C does. @returns the exit code. */
  readonly end: () => Promise<number>;
  readonly out: FakeStream;
  readonly err: FakeStream;
  readonly opened: readonly string[];
}

/** Starts the command on a free port. It ends with the test at the latest. */
async function start(
  words: readonly string[],
  environment: Record<string, string> = {},
  controller = new AbortController(),
): Promise<Running> {
  const [out, err] = [new FakeStream(false), new FakeStream(false)];
  const opened: string[] = [];
  const openBrowser = (url: string): void => void opened.push(url);
  const state = { hasEnded: false };
  const { signal } = controller;
  const running = runPart(
    (program, terminal) => addDashboard(program, terminal, { environment, openBrowser }),
    ['dashboard', '--port', '0', ...words],
    { out, err, signal },
  ).finally(() => (state.hasEnded = true));
  const end = async (): Promise<number> => {
    controller.abort(new Error('interrupted'));
    return (await running).code;
  };
  onTestFinished(async () => {
    await end();
  });
  const urlIn = (): string => /^http:\S+\//.exec(out.written)?.[0] ?? '';
  while (urlIn() === '' && !state.hasEnded) await new Promise((resolve) => setImmediate(resolve));
  return { url: urlIn(), end, out, err, opened };
}

async function read<T>(url: string, path: string, headers: Record<string, string> = {}): Promise<T> {
  const response = await fetch(`${url}api/${path}`, { headers });
  expect(response.status).toBe(200);
  return (await response.json()) as T;
}

/** Sends a change as the page does. @returns the status and the message of an error. */
async function write(url: string, method: string, path: string): Promise<[status: number, message?: string]> {
  const session = await fetch(`${url}api/session`);
  const { token } = (await session.json()) as SessionJson;
  const cookie = session.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  const headers = { cookie, 'x-escapement-token': token, 'sec-fetch-site': 'same-origin' };
  const response = await fetch(`${url}api/${path}`, { method, headers });
  const text = await response.text();
  return text === ''
    ? [response.status]
    : [response.status, (JSON.parse(text) as { message: string }).message];
}

const basic = (login: string): Record<string, string> => ({
  authorization: `Basic ${Buffer.from(login).toString('base64')}`,
});

/** A folder with a task that waits, which no process has open. */
async function folderWithTask(): Promise<string> {
  const folder = folderOfTest();
  const broker = await EmbeddedBroker.open({ dataPath: folder });
  await new Client({ broker }).enqueue(new Task('work', { a: 1 }, { taskId: 'a' }));
  await broker.close();
  return folder;
}

describe('escapement dashboard: where the tasks are', () => {
  test('the tasks of a folder are shown read-only, and with --write they can be changed', async () => {
    const folder = await folderWithTask();
    const reader = await start(['--path', folder]);
    expect(reader.out.written).toContain(`${reader.url} shows ${folder}, read-only`);
    expect(await read<SessionJson>(reader.url, 'session')).toMatchObject({ title: folder, actions: [] });
    expect(await read<TaskDetailJson>(reader.url, 'queues/default/tasks/a')).toMatchObject({ type: 'work' });
    expect((await write(reader.url, 'POST', 'queues/default/tasks/a/archive'))[0]).toBe(403);
    expect(await reader.end()).toBe(0);
    const writer = await start(['--path', folder, '--write']);
    expect(await write(writer.url, 'POST', 'queues/default/tasks/a/archive')).toEqual([204]);
    expect(await writer.end()).toBe(0);
    const broker = await EmbeddedBroker.open({ dataPath: folder });
    expect((await broker.task('default', 'a')).state).toBe('archived');
    await broker.close();
  });

  test('the tasks of another process are shown over its HTTP API, and changed', async () => {
    const { add, broker, inspector } = await openBench();
    await add('a', { processInMs: 60_000 });
    const { url } = await start(['-u', await serveTasks({ broker, rootPath: '/admin' }, '/admin')]);
    expect(await read<TaskDetailJson>(url, 'queues/default/tasks/a')).toMatchObject({ state: 'scheduled' });
    expect((await read<SessionJson>(url, 'session')).actions).toContain('run');
    expect(await write(url, 'POST', 'queues/default/tasks/a/run')).toEqual([204]);
    expect(await inspector.getTaskInfo('default', 'a')).toMatchObject({ state: 'pending' });
    expect(await write(url, 'POST', 'queues/default/pause')).toEqual([204]);
    expect(await write(url, 'POST', 'queues/nowhere/pause')).toEqual([404, expect.any(String)]);
    expect(await write(url, 'DELETE', 'queues/default?force=1')).toEqual([
      409,
      expect.stringContaining('HTTP'),
    ]);
  });

  test('a queue whose name a URL cannot have is refused over the HTTP API', async () => {
    const { broker } = await openBench();
    const { url } = await start(['-u', await serveTasks({ broker })]);
    for (const path of ['queues/~.', 'queues/~./keys', 'queues/~./tasks']) {
      const response = await fetch(`${url}api/${path}`);
      expect([path, response.status]).toEqual([path, 409]);
    }
  });

  test('a process that is lost is unavailable until it is back', async () => {
    const { broker } = await openBench();
    const origin = await serveTasks({ broker });
    const { url } = await start(['-u', origin]);
    await broker.close();
    const [status] = await write(url, 'POST', 'queues/default/pause');
    expect(status).toBeGreaterThanOrEqual(502);
  });

  test.runIf(inject('redis').isThere)('the tasks of Redis are shown, and changed', async () => {
    const { broker, url: redisUrl } = await redisForTest();
    await new Client({ broker }).enqueue(new Task('work', { a: 1 }, { taskId: 'a' }));
    const { url, end } = await start(['-u', redisUrl]);
    expect(await read<TaskDetailJson>(url, 'queues/default/tasks/a')).toMatchObject({ state: 'pending' });
    expect(await write(url, 'POST', 'queues/default/tasks/a/archive')).toEqual([204]);
    const task = await new Inspector({ broker }).getTaskInfo('default', 'a');
    expect(task.state).toBe('archived');
    expect(await end()).toBe(0);
  });
});

describe('the access to escapement dashboard', () => {
  test('with a password every request needs the login', async () => {
    const folder = await folderWithTask();
    const environment = { ESCAPEMENT_DASHBOARD_PASSWORD: 'sesame' };
    const { url } = await start(['--path', folder], environment);
    for (const headers of [
      {},
      basic('admin:wrong'),
      basic('root:sesame'),
      basic(''),
      { authorization: 'x' },
    ]) {
      for (const path of ['', 'api/session', 'api/queues/default']) {
        const response = await fetch(`${url}${path}`, { headers: headers });
        expect(response.status).toBe(401);
        expect(response.headers.get('www-authenticate')).toBe('Basic realm="escapement", charset="UTF-8"');
      }
    }
    expect(await read<SessionJson>(url, 'session', basic('admin:sesame'))).toMatchObject({ title: folder });
  });

  test('the user and the password may be options, and have precedence over the environment', async () => {
    const folder = await folderWithTask();
    const environment = { ESCAPEMENT_DASHBOARD_USER: 'eve', ESCAPEMENT_DASHBOARD_PASSWORD: 'wrong' };
    const words = ['--path', folder, '--user', 'grüße', '--password', 'a:b'];
    const { url } = await start(words, environment);
    await read(url, 'session', basic('grüße:a:b'));
  });

  test('--read-only refuses every change', async () => {
    const { add, broker } = await openBench();
    await add('a');
    const { url, out } = await start(['-u', await serveTasks({ broker }), '--read-only']);
    expect(out.written).toContain('read-only');
    expect((await write(url, 'POST', 'queues/default/tasks/a/archive'))[0]).toBe(403);
  });

  test.each([
    [['--demo', '--host', '0.0.0.0'], /--host 0\.0\.0\.0: other machines would reach .* --password/],
    [['--demo', '--host', 'example.com'], /needs --password/],
    [['--demo', '--user', 'me'], /needs a password/],
    [['--demo', '--password', ''], /a password that is not empty/],
    [['--demo', '--uri', 'redis://127.0.0.1'], /--demo and --uri cannot be used together/],
    [['--demo', '--path', '/tmp'], /--demo and --path cannot be used together/],
    [['--write'], /--write is for --path/],
    [['--path', '/nowhere/at/all'], /no such folder/],
    [['--path', '/tmp', '-u', 'redis://127.0.0.1'], /--path and --uri cannot be used together/],
    [['--port', '65536'], /from 0 to 65535/],
    [['-u', 'redis://127.0.0.1:1'], /cannot reach Redis at 127\.0\.0\.1:1/],
    [['-u', 'http://127.0.0.1:1'], /cannot reach http:\/\/127\.0\.0\.1:1/],
  ])('%j is refused with exit code 2, and nothing is served', async (words, message) => {
    const { url, err, out, end } = await start(words);
    expect([url, out.written, await end()]).toEqual(['', '', 2]);
    expect(err.written).toMatch(message);
  });
});

test('--open opens the address that is printed', async () => {
  const { url, opened, out } = await start(['--path', await folderWithTask(), '--open']);
  expect(opened).toEqual([url]);
  expect(out.written.trim().split('\n')).toHaveLength(1);
  expect(await (await fetch(url)).text()).toContain('<!doctype html>');
});

test('a port that is in use is reported', async () => {
  const port = await listen(() => undefined);
  const { err, end } = await start(['--path', await folderWithTask(), '--port', String(port)]);
  expect(await end()).toBe(2);
  expect(err.written).toContain(`port ${port} of 127.0.0.1 is in use; choose another --port`);
});

test('Ctrl-C ends open streams', async () => {
  const { url, end } = await start(['--path', await folderWithTask()]);
  const reader = (await fetch(`${url}api/live`)).body?.getReader();
  let sent = '';
  while (!/^data: .+\n/m.test(sent)) sent += Buffer.from((await reader?.read())?.value ?? []).toString();
  const live = JSON.parse(/^data: (.+)$/m.exec(sent)?.[1] ?? '') as LiveJson;
  expect(live.queues.map(({ queue }) => queue)).toEqual(['default']);
  expect(await end()).toBe(0);
  await expect(drained(reader)).rejects.toThrow();
});

async function drained(reader: ReadableStreamDefaultReader<Uint8Array> | undefined): Promise<void> {
  while ((await reader?.read())?.done === false);
  throw new Error('the stream has ended');
}

test('Ctrl-C ends the dashboard command also while it waits for the HTTP API', async () => {
  const interrupting = new AbortController();
  const uri = await serve(() => {
    interrupting.abort(new Error('interrupted')); // and there is no response
  });
  const { end, err, out } = await start(['-u', uri], {}, interrupting);
  expect(await end()).toBe(130);
  expect([out.written, err.written]).toEqual(['', '']);
});
