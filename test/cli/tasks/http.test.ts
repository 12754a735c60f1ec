import { dashboard } from 'escapement/dashboard';
import { Task } from 'escapement/tasks';
import type { TasksHandlerOptions } from 'escapement/tasks/http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { HttpTarget } from '../../../src/cli/tasks/target/http-target.ts';
import { openBench, START_MS } from '../../tasks/support/bench.ts';
import { freePort } from '../../free-port.ts';
import { endOf, startCommand } from '../support/command.ts';
import {
  announceServer,
  openTarget,
  refusal,
  type Result,
  serve,
  serveTasks,
  tasksCommand,
  WAYS,
} from './support/tasks-command.ts';

const stats = (uri: string, ...words: string[]): Promise<Result> =>
  tasksCommand(['stats', '-u', uri, ...words]);

describe('the HTTP API', () => {
  it('the HTTP API is reached wherever it is mounted', async () => {
    const { add, broker } = await openBench();
    await add('a');
    const uri = await serveTasks({ broker, rootPath: '/admin' });
    for (const path of ['/admin', '/admin/', '/admin/api', '/admin/api/']) {
      const { stdout, code } = await stats(`${uri}${path}`);
      expect(stdout).toContain('│ default │');
      expect(code).toBe(0);
    }
    expect(await stats(uri)).toEqual(refusal(`there is no tasks API at ${uri} (HTTP 404)`));
  });

  it.each(['{}', 'null', '[]', '"queues"', '{"nonsense":1}', '<html>Welcome</html>'])(
    'a command reports that a server that responds to everything with %s does not serve the HTTP API',
    async (body) => {
      const uri = await serve((_, response) => response.end(body));
      const commands = [
        ...['stats', 'queue inspect q', 'queue history q', 'queue limits q', 'queue keys q', 'server ls'],
        ...['task ls -q q -s retry', 'task inspect -q q -i a', 'task run -q q -i a'],
        'task runall -q q -s retry',
      ];
      for (const command of commands) {
        const result = await tasksCommand([...command.split(' '), '-u', uri]);
        expect(result).toEqual(refusal(`${uri} does not respond as the tasks API. Is it mounted there?`));
      }
    },
  );

  it.each([
    ['stats', '{"queues":[{"name":"mail","counts":{"waiting":1}}]}'], // bull-board
    ['queue ls', '{"queues":[{"name":"mail","counts":{"waiting":1}}]}'],
    ['queue ls', '{"queues":[null]}'],
    ['queue inspect q', '{"current":null,"history":[]}'],
    ['server ls', '{"servers":["a"]}'],
    ['task ls -q q -s retry', '{"tasks":[{"id":1}]}'],
  ])(
    'tasks %s reports that a server with other lists does not serve the HTTP API: %s',
    async (words, body) => {
      const uri = await serve((_, response) => response.end(body));
      for (const more of [[], ['--json']]) {
        const result = await tasksCommand([...words.split(' '), '-u', uri, ...more]);
        expect(result).toEqual(refusal(`${uri} does not respond as the tasks API. Is it mounted there?`));
      }
    },
  );

  it('many requests to the HTTP API at once cause no warning of the process', async () => {
    const { broker } = await openBench();
    const api = new HttpTarget(new URL(await serveTasks({ broker })), {});
    const warnings: Error[] = [];
    const hear = (warning: Error): unknown => warnings.push(warning);
    process.on('warning', hear);
    await Promise.all(Array.from({ length: 20 }, () => api.request('GET', '/servers')));
    process.off('warning', hear);
    expect(warnings).toEqual([]);
  });

  it('the HTTP API receives the credentials', async () => {
    const { broker } = await openBench();
    const authorize: TasksHandlerOptions['authorize'] = ({ headers }) =>
      headers.authorization === 'Bearer secret' || { challenge: 'Bearer' };
    const uri = await serveTasks({ broker, authorize });
    expect((await stats(uri, '--token', 'secret')).code).toBe(0);
    expect((await stats(uri, '--http_header', 'Authorization: Bearer secret')).code).toBe(0);
    const environment = { ESCAPEMENT_TOKEN: 'secret', ESCAPEMENT_URI: uri };
    expect((await tasksCommand(['stats'], { environment })).code).toBe(0);
    const refused = await stats(uri, '--token', 'wrong');
    expect(refused).toEqual(refusal(`${uri} refuses: unauthorized (HTTP 401)`));
  });

  it('a change over a read-only HTTP API is an error', async () => {
    const { add, broker } = await openBench();
    await add('a');
    const uri = await serveTasks({ broker, readOnly: true });
    const paused = await tasksCommand(['queue', 'pause', 'default', '-u', uri]);
    expect(paused).toEqual(refusal('POST is not allowed here (HTTP 405)'));
  });

  it('the HTTP API is not at the URL of a dashboard, which responds in JSON', async () => {
    const { broker } = await openBench();
    const uri = await serve(dashboard({ broker, rootPath: '/jobs', authorize: () => true }));
    expect(await stats(`${uri}/jobs`)).toEqual(refusal(`there is no tasks API at ${uri}/jobs (HTTP 404)`));
    const closed = await serve(dashboard({ broker, rootPath: '/jobs', authorize: () => false }));
    expect(await stats(`${closed}/jobs`)).toEqual(refusal(`${closed}/jobs refuses: forbidden (HTTP 403)`));
  });

  it.each([
    ['Fastify', '{"message":"Route GET:/api/queues not found","error":"Not Found","statusCode":404}'],
    ['NestJS', '{"message":"Cannot GET /api/queues","error":"Not Found","statusCode":404}'],
    ['Express', '<!DOCTYPE html>\n<pre>Cannot GET /api/queues</pre>'],
    ['Hono', '404 Not Found'],
    ['Koa', 'Not Found'],
    ['Go', '404 page not found\n'],
    ['FastAPI', '{"detail":"Not Found"}'],
    ['another server', ''],
  ])('a 404 of %s shows that the HTTP API is not there', async (_, text) => {
    const uri = await serve((_request, response) => response.writeHead(404).end(text));
    const none = refusal(`there is no tasks API at ${uri} (HTTP 404)`);
    expect(await stats(uri)).toEqual(none);
    for (const words of ['queue pause a b', 'task inspect -q q -i a', 'task cancel -q q a']) {
      expect(await tasksCommand([...words.split(' '), '-u', uri])).toEqual(none);
    }
  });

  it.each(['queue not found\n', 'task not found\n', 'asynq: queue not found\n'])(
    'a 404 of asynqmon’s own server is about one task: %j',
    async (text) => {
      const uri = await serve((_request, response) => response.writeHead(404).end(text));
      const result = await tasksCommand(['task', 'inspect', '-q', 'q', '-i', 'a', '-u', uri]);
      expect(result).toEqual(refusal(`${text.trim()} (HTTP 404)`));
    },
  );

  it('a server that fails is reported in one line', async () => {
    const failing = await serve((_, response) => response.writeHead(502).end('<html>Bad gateway</html>'));
    expect((await stats(failing)).stderr).toBe(`escapement: ${failing} refuses (HTTP 502)\n`);
    const moved = await serve((_, response) => response.writeHead(302, { location: '/' }).end());
    expect((await stats(moved)).stderr).toBe(`escapement: ${moved} redirects to another URL (HTTP 302)\n`);
    const hostile = await serve((_, response) => response.writeHead(400).end('a\u001b[2J\u009b\nb'));
    expect((await stats(hostile)).stderr).toBe('escapement: a\\x1b[2J\\x9b (HTTP 400)\n');
  });

  it('a queue of asynqmon’s own server, which has no limits, is shown without', async () => {
    const states = ['active', 'pending', 'aggregating', 'scheduled', 'retry', 'archived', 'completed'];
    const numbers = { size: 0, groups: 0, latency_msec: 0, memory_usage_bytes: 0, processed: 0, failed: 0 };
    const counts = Object.fromEntries(states.map((state) => [state, 0]));
    const timestamp = new Date(START_MS).toISOString();
    const current = { queue: 'default', paused: false, timestamp, ...numbers, ...counts };
    const uri = await serve(({ url }, response) =>
      response.end(JSON.stringify(url === '/api/queues' ? { queues: [current] } : { current, history: [] })),
    );
    expect((await tasksCommand(['queue', 'ls', '-u', uri])).stdout).toContain('│ default │');
    const { stdout, stderr, code } = await tasksCommand(['queue', 'inspect', 'default', '-u', uri]);
    expect([stderr, code]).toEqual(['', 0]);
    expect(stdout).toContain('limits       none');
    expect(stdout).not.toContain('held');
  });

  it('an unreachable HTTP API is reported in one line without the password', async () => {
    const uri = `http://user:secret@127.0.0.1:${await freePort()}/admin`;
    const { stdout, stderr, code } = await tasksCommand(['queue', 'pause', 'a', 'b', '-u', uri]);
    expect(stderr).toMatch(
      /^escapement: cannot reach http:\/\/127\.0\.0\.1:\d+\/admin: [^\n]*ECONNREFUSED[^\n]*\n$/,
    );
    expect(stderr).not.toContain('secret');
    expect([stdout, code]).toEqual(['', 2]);
  });

  it('a request to the HTTP API can be interrupted with Ctrl-C', async () => {
    let asked: () => void = () => undefined;
    const whenAsked = new Promise<void>((resolve) => (asked = resolve));
    const uri = await serve(() => {
      asked(); // and no answer
    });
    const child = startCommand(['tasks', 'stats', '-u', uri]);
    onTestFinished(() => void child.kill('SIGKILL'));
    const result = endOf(child);
    await whenAsked;
    child.kill('SIGINT');
    expect(await result).toEqual({ stdout: '', stderr: '', code: 130 });
  });

  it('a request to the HTTP API has a time limit', async () => {
    const uri = await serve((request, response) => {
      if (request.url === '/api/queues') response.write('{'); // and no more
    });
    const api = new HttpTarget(new URL(uri), {}, new AbortController().signal, 100);
    const late = `cannot reach ${uri}: no response within 100 ms`;
    await expect(api.request('GET', '/queues')).rejects.toThrow(late);
    await expect(api.request('GET', '/servers')).rejects.toHaveProperty('code', 'ERR_BROKER_UNAVAILABLE');
  });

  it('a request to the HTTP API in progress does not outlast its command', async () => {
    const api = new HttpTarget(new URL(await serve(() => undefined)), {});
    const request = api.request('GET', '/queues');
    await api.close();
    await expect(request).rejects.toMatchObject({ code: 'ERR_BROKER_CLOSED' });
  });

  it('the names . and .. are rejected, because the HTTP API has no path for them', async () => {
    const { broker } = await openBench();
    const uri = await serveTasks({ broker });
    for (const name of ['.', '..']) {
      const { stderr, code } = await tasksCommand(['queue', 'rm', name, '-u', uri]);
      expect(stderr).toContain('is not available over the HTTP API');
      expect(code).toBe(2);
    }
  });
});

/** Clears the screen, three ways, rings, begins another line, and turns the direction of writing. */
const HOSTILE = 'a/b:run\u001b[2J\u009b2J\u0007\r\n\u2028?#%2F"\\\u202e\u2066\u200f\u061c';
const CONTROL = /[^\P{Cc}\n]|[\u2028\u2029\p{Bidi_Control}]/u;

describe.each(WAYS)('text of users, over %s', (way) => {
  it('text of users has no effect on a terminal, and still identifies its task', async () => {
    const bench = await openTarget(way);
    const { broker, client, command, inspector, json } = bench;
    const payload = Buffer.from(`"${HOSTILE}"`);
    const headers = { [HOSTILE]: HOSTILE };
    const task = new Task(HOSTILE, payload, { taskId: HOSTILE, queue: HOSTILE, key: HOSTILE, headers });
    await client.enqueue(task);
    await client.enqueue(task, { taskId: 'grouped', group: HOSTILE });
    await announceServer(bench, HOSTILE);
    const entry = { id: HOSTILE, spec: HOSTILE, taskType: HOSTILE, payload, options: [HOSTILE] };
    const times = { nextEnqueueAtMs: START_MS, prevEnqueueAtMs: START_MS };
    await broker.announceScheduler(HOSTILE, () => [{ ...entry, ...times }], 600_000);
    await broker.recordEnqueueEvent(HOSTILE, { taskId: HOSTILE, atMs: START_MS });
    const q = ['-q', HOSTILE];
    const reading = [
      ['stats'],
      ['queue', 'ls'],
      ['queue', 'inspect', HOSTILE],
      ['queue', 'history', HOSTILE],
      ['queue', 'keys', HOSTILE],
      ['queue', 'limits', HOSTILE],
      ['task', 'ls', ...q, '-s', 'pending'],
      ['task', 'ls', ...q, '-s', 'aggregating', '-g', HOSTILE],
      ['task', 'inspect', ...q, '-i', HOSTILE],
      ['server', 'ls'],
      ['cron', 'ls'],
      ['cron', 'history', HOSTILE],
      ['group', 'ls', ...q],
      ['dash', '--once'],
    ];
    for (const words of reading) {
      const { stdout, stderr, code } = await command(...words);
      expect([stderr, code], words.join(' ')).toEqual(['', 0]);
      expect(stdout, words.join(' ')).not.toMatch(CONTROL);
      if (words[0] === 'dash') continue;
      const again = await command(...words, '--json');
      expect(again.stdout, words.join(' ')).not.toMatch(CONTROL);
      expect(JSON.stringify(JSON.parse(again.stdout))).toContain(JSON.stringify(HOSTILE).slice(1, -1));
    }
    expect((await json('task', 'inspect', ...q, '-i', HOSTILE)).json).toMatchObject({ id: HOSTILE });
    for (const words of [
      ['queue', 'pause', HOSTILE],
      ['task', 'archive', ...q, '-i', HOSTILE],
      ['task', 'run', ...q, '-i', HOSTILE],
      ['task', 'delete', ...q, '-i', HOSTILE],
      ['task', 'runall', ...q, '-s', 'aggregating', '-g', HOSTILE],
    ]) {
      const { stdout, stderr, code } = await command(...words);
      expect([stderr, code], words.join(' ')).toEqual(['', 0]);
      expect(stdout).not.toMatch(CONTROL);
    }
    expect(await inspector.getQueueInfo(HOSTILE)).toMatchObject({ paused: true, pending: 1, size: 1 });
  });

  it('text of users has no effect on a terminal in errors either', async () => {
    const { add, command } = await openTarget(way);
    await add('a');
    for (const words of [
      ['queue', 'inspect', HOSTILE],
      ['task', 'inspect', '-q', 'default', '-i', HOSTILE],
      ['task', 'delete', '-q', 'default', '-i', HOSTILE, '-i', HOSTILE],
      ['group', 'ls', '-q', HOSTILE],
    ]) {
      const { stderr, code } = await command(...words);
      expect(stderr).toContain('a/b:run\\x1b[2J\\x9b2J');
      expect(stderr).not.toMatch(CONTROL);
      expect(code).toBe(2);
    }
  });
});

const now = new Date(START_MS).toISOString();
const server = {
  ...{ id: 's1', host: HOSTILE, pid: HOSTILE, concurrency: HOSTILE, status: HOSTILE, start_time: now },
  ...{ queue_priorities: { [HOSTILE]: HOSTILE }, strict_priority_enabled: false, active_workers: [] },
};

it('a hostile HTTP API has no effect on a terminal through the status of a server', async () => {
  const uri = await serve((_, response) => response.end(JSON.stringify({ servers: [server] })));
  const { stdout, code } = await tasksCommand(['server', 'ls', '-u', uri]);
  expect(stdout).toContain('a/b:run\\x1b[2J\\x9b2J\\x07\\r\\n\\u2028?#%2F"\\\\\\u202e\\u2066\\u200f\\u061c');
  expect(stdout).not.toMatch(CONTROL);
  expect(stdout.trimEnd().split('\n')).toHaveLength(5); // a table of one row
  expect(code).toBe(0);
});

it('hostile arguments have no effect on a terminal', async () => {
  const { stderr } = await tasksCommand([HOSTILE]);
  expect(stderr).toContain('a/b:run\\x1b[2J');
  expect(stderr).not.toMatch(CONTROL);
});
