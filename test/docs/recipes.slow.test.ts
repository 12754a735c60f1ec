/** The recipes of docs/recipes.md that need a framework, each on a Redis and with the real framework. */
import { request } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Inspector } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { freePort } from '../free-port.ts';
import { findRedis } from '../redis/find-redis.ts';
import { freshDatabase } from '../redis/redis-case.ts';
import { listens, startApplication, type Application } from './application.ts';
import { snippetsUnder, transpile, type Snippet, type WITH_FRAMEWORKS } from './snippets.ts';

const PAGE = 'docs/recipes.md';

type Framework = keyof (typeof WITH_FRAMEWORKS)[typeof PAGE];

/** Those that serve HTTP by themselves, and the others. */
const SERVERS = ['Express', 'Fastify', 'Hono'] as const satisfies Framework[];
const MAINS: Readonly<Record<Exclude<Framework, (typeof SERVERS)[number]>, string>> = {
  // Next.js calls the function of a route with a request of the web.
  'Next.js': `
import { POST } from './app/api/users/route.js';
import config from './next.config.mjs';
const body = JSON.stringify({ email: 'ada@example.com' });
const response = await POST(new Request('http://127.0.0.1/api/users', { method: 'POST', body }));
console.log(response.status, Object.keys(await response.json()), config);
await globalThis.broker.close();`,
  NestJS: `
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { JobsModule, Mailer } from './module.mjs';
const app = await NestFactory.createApplicationContext(JobsModule, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
await app.get(Mailer).welcome('Ada');`,
};

/** The program of a section, and the file of the connection that it imports. */
function filesOf(framework: Framework, main: string): Record<string, string> {
  const shared = snippetsUnder(PAGE, 'Two processes on Redis').filter(({ file }) => file === 'jobs.mjs');
  const files = [...shared, ...snippetsUnder(PAGE, framework)].map((snippet: Snippet) => {
    return [snippet.file ?? 'module.mjs', transpile(snippet)] as const;
  });
  return { ...Object.fromEntries(files), 'main.mjs': main };
}

async function emptyRedis(): Promise<{ url: string; inspector: Inspector }> {
  const { url, dispose } = await freshDatabase();
  const broker = new RedisBroker({ url });
  onTestFinished(async () => {
    await broker.close();
    await dispose();
  });
  return { url, inspector: new Inspector({ broker }) };
}

/** Starts a server on a free port, with a timeout for each request. */
async function startServer(
  framework: Framework,
  redis: string,
  timeoutMs: number,
): Promise<{ app: Application; url: string }> {
  const port = await freePort();
  const files = filesOf(framework, `import './module.mjs';`);
  const source = files['module.mjs'] ?? '';
  files['module.mjs'] = source.replace('3000', String(port)).replace('10_000', String(timeoutMs));
  const app = startApplication(files, [process.execPath, 'main.mjs'], { REDIS_URL: redis });
  await listens(port, app);
  return { app, url: `http://127.0.0.1:${port}` };
}

const JSON_TYPE = { 'content-type': 'application/json' };

const enqueue = (url: string): Promise<Response> =>
  fetch(`${url}/users`, {
    method: 'POST',
    headers: JSON_TYPE,
    body: JSON.stringify({ email: 'ada@example.com' }),
  });

/** Sends a request whose body never ends. @returns the status of the response. */
function sendForever(url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { ...JSON_TYPE, 'content-length': 100 };
    const sent = request(`${url}/users`, { method: 'POST', headers }, (response) => {
      response.resume();
      sent.destroy();
      resolve(response.statusCode);
    });
    sent.on('error', reject).write('{');
  });
}

describe.skipIf('lack' in findRedis())('the recipe for a framework', () => {
  test.each(SERVERS)(
    '%s enqueues a task, answers a slow request with 504, and ends at SIGTERM',
    async (framework) => {
      const { url: redis, inspector } = await emptyRedis();
      const { app, url } = await startServer(framework, redis, 5_000); // a busy machine enqueues within it
      const response = await enqueue(url);
      expect(response.status).toBe(202);
      const { id } = (await response.json()) as { id: string };
      const tasks = await inspector.list('default', 'pending');
      expect(tasks.map((task) => [task.id, task.type, task.json()])).toEqual([
        [id, 'email:welcome', { to: 'ada@example.com' }],
      ]);
      expect(await sendForever(url)).toBe(504);
      app.process.kill('SIGTERM');
      expect(await app.ended).toMatchObject({ code: 0, stderr: '' });
    },
  );

  test('Express answers 503 while Redis is down', async () => {
    const { url } = await startServer('Express', `redis://127.0.0.1:${await freePort()}`, 20_000);
    expect((await enqueue(url)).status).toBe(503);
  });

  test('Next.js enqueues a task in a route', async () => {
    const { url: redis, inspector } = await emptyRedis();
    const files = filesOf('Next.js', MAINS['Next.js']);
    const app = startApplication(files, [process.execPath, 'main.mjs'], { REDIS_URL: redis });
    const { stdout, stderr, code } = await app.ended;
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
    expect(stdout.toString()).toBe("202 [ 'id' ] { serverExternalPackages: [ 'escapement', 'ioredis' ] }\n");
    expect(await inspector.list('default', 'pending')).toHaveLength(1);
  });

  test('NestJS runs the task that it has enqueued, and closes the broker at SIGTERM', async () => {
    const { url: redis } = await emptyRedis();
    const files = filesOf('NestJS', MAINS.NestJS);
    const app = startApplication(files, [process.execPath, 'main.mjs'], { REDIS_URL: redis });
    app.process.stdout?.once('data', () => app.process.kill('SIGTERM'));
    const { stdout, stderr } = await app.ended;
    expect({ stdout: stdout.toString(), stderr }).toEqual({ stdout: 'welcome, Ada\n', stderr: '' });
    expect(app.process.signalCode).toBe('SIGTERM'); // NestJS sends it to itself again, after its hooks
  });
});
