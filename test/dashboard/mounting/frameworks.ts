import { timingSafeEqual } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import { serve } from '@hono/node-server';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { onTestFinished } from 'vitest';
import { dashboard, type Access, type DashboardOptions, type DashboardRequest } from 'escapement/dashboard';
import { snippetsUnder, transpile, type WITH_FRAMEWORKS } from '../../docs/snippets.ts';
import type { Broker } from 'escapement/tasks';

/** The frameworks of docs/dashboard.md that run in Node. */
type Framework = Exclude<keyof (typeof WITH_FRAMEWORKS)['docs/dashboard.md'], 'Bun and Deno'>;

/** What runs in an application beside the dashboard. */
const ANSWER = 'the application';

/** Starts an application with the dashboard of a broker at `/jobs`: mounted as the page does it, except in `node:http`. */
export const FRAMEWORKS: Readonly<Record<Framework | 'node:http', (broker: Broker) => Promise<Server>>> = {
  'node:http': (broker) => {
    const jobs = closedAfterTest({ broker, rootPath: '/jobs', authorize: mayUse });
    return listening((request, response) => jobs(request, response, () => response.end(ANSWER)));
  },

  Express: (broker) => {
    const app = express();
    app.use(express.json()); // a parser of bodies may come before
    runSnippet('Express', { app, broker });
    app.use((_request, response) => void response.send(ANSWER));
    return listening(app);
  },

  async Fastify(broker) {
    const app = fastify({ forceCloseConnections: true });
    runSnippet('Fastify', { app, broker });
    app.get('/', () => ANSWER);
    await app.listen({ port: 0, host: '127.0.0.1' });
    return app.server;
  },

  Koa: (broker) => {
    const app = new Koa();
    runSnippet('Koa', { app, broker });
    app.use((context) => void (context.body = ANSWER));
    const listener = app.callback();
    return listening((request, response) => void listener(request, response));
  },

  Hono: (broker) => {
    const app = new Hono();
    runSnippet('Hono', { app, broker });
    app.get('/', (context) => context.text(ANSWER));
    return Promise.resolve(serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server);
  },

  // A route of Next.js is functions of requests of the web, named after their methods. It removes three headers of each response.
  'Next.js': (broker) => {
    const route = runSnippet('Next.js', { broker }) as Record<
      string,
      (request: Request) => Promise<Response>
    >;
    const answer = async (request: Request): Promise<Response> => {
      if (!/^\/jobs(\/|$)/.test(new URL(request.url).pathname)) return new Response(ANSWER);
      const response = (await route[request.method]?.(request)) ?? new Response(null, { status: 405 });
      const removed = ['content-length', 'content-encoding', 'transfer-encoding'];
      for (const name of removed) response.headers.delete(name);
      return response;
    };
    return Promise.resolve(serve({ fetch: answer, port: 0, hostname: '127.0.0.1' }) as Server);
  },
};

/** Runs the block of docs/dashboard.md under a heading. @returns what it exports. */
function runSnippet(heading: Framework, variables: Readonly<Record<string, unknown>>): unknown {
  const [snippet] = snippetsUnder('docs/dashboard.md', heading);
  if (snippet === undefined) throw new Error(`docs/dashboard.md has no block under '${heading}'`);
  const exports = {};
  const all = { ...variables, authorize: mayUse, dashboard: closedAfterTest, exports };
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- it is code of ours, and this is its test
  const run = new Function(...Object.keys(all), transpile(snippet, 'commonjs')) as (
    ...values: unknown[]
  ) => void;
  run(...Object.values(all));
  return exports;
}

function closedAfterTest(options: DashboardOptions): ReturnType<typeof dashboard> {
  const jobs = dashboard(options);
  onTestFinished(() => jobs.close());
  return jobs;
}

function listening(listener: RequestListener): Promise<Server> {
  return Promise.resolve(createServer(listener).listen(0, '127.0.0.1'));
}

const ADMIN = Buffer.from(`Basic ${Buffer.from('admin:sesame').toString('base64')}`);
const GUEST = Buffer.from(`Basic ${Buffer.from('guest:guest').toString('base64')}`);

/** An administrator may do everything, a guest may read, others have to log in. */
function mayUse({ headers }: DashboardRequest): Access {
  const sent = Buffer.from(
    (headers instanceof Headers ? headers.get('authorization') : headers.authorization) ?? '',
  );
  const is = (login: Buffer): boolean => sent.length === login.length && timingSafeEqual(sent, login);
  if (is(ADMIN)) return true;
  return is(GUEST) ? 'read-only' : { challenge: 'Basic realm="jobs"' };
}
