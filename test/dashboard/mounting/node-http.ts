import { createServer, type Server } from 'node:http';
import { dashboard } from 'escapement/dashboard';
import { mayUse } from './login.ts';
import type { Broker } from 'escapement/tasks';

/** The dashboard at `/jobs` of a server of `node:http`. What is not below it goes to the application. */
export function serveWithNode(broker: Broker): Server {
  const jobs = dashboard({ broker, rootPath: '/jobs', authorize: mayUse });
  const server = createServer((request, response) => {
    jobs(request, response, () => response.end('the application'));
  });
  return server
    .on('close', () => {
      jobs.close();
    })
    .listen(0, '127.0.0.1');
}
