import type { Server } from 'node:http';
import fastify from 'fastify';
import { dashboard } from 'escapement/dashboard';
import { mayUse } from './login.ts';
import type { Broker } from 'escapement/tasks';

/** The dashboard at `/jobs` of an application of Fastify. In a plugin of its own, so that only there bodies are left to the dashboard. */
export async function serveWithFastify(broker: Broker): Promise<Server> {
  const jobs = dashboard({ broker, rootPath: '/jobs', authorize: mayUse });
  const app = fastify({ forceCloseConnections: true });
  await app.register((plugin, _options, done) => {
    plugin.removeAllContentTypeParsers();
    plugin.addContentTypeParser('*', (_request, _payload, parsed) => {
      parsed(null);
    });
    for (const url of ['/jobs', '/jobs/*']) {
      plugin.all(url, (request, reply) => {
        reply.hijack();
        jobs(request.raw, reply.raw);
      });
    }
    done();
  });
  app.get('/', () => 'the application');
  app.addHook('onClose', () => {
    jobs.close();
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  return app.server;
}
