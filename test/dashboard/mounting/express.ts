import type { Server } from 'node:http';
import express from 'express';
import { dashboard } from 'escapement/dashboard';
import { mayUse } from './login.ts';
import type { Broker } from 'escapement/tasks';

/** The dashboard at `/jobs` of an application of Express, which removes the prefix from the URL. A parser of bodies may come before. */
export function serveWithExpress(broker: Broker): Server {
  const jobs = dashboard({ broker, authorize: mayUse });
  const app = express();
  app.use(express.json());
  app.use('/jobs', jobs);
  app.use((_request, response) => void response.send('the application'));
  return app.listen(0, '127.0.0.1').on('close', () => {
    jobs.close();
  });
}
