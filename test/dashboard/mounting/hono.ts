import type { Server } from 'node:http';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { dashboard } from 'escapement/dashboard';
import { mayUse } from './login.ts';
import type { Broker } from 'escapement/tasks';

/** The dashboard at `/jobs` of an application of Hono, by `fetch`: the same in Bun, Deno and Next.js. */
export function serveWithHono(broker: Broker): Server {
  const jobs = dashboard({ broker, rootPath: '/jobs', authorize: mayUse });
  const app = new Hono();
  app.all('/jobs', (context) => jobs.fetch(context.req.raw));
  app.all('/jobs/*', (context) => jobs.fetch(context.req.raw));
  app.get('/', (context) => context.text('the application'));
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server;
  return server.on('close', () => {
    jobs.close();
  });
}
