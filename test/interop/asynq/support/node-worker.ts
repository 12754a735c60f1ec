import { Redis } from 'ioredis';
import { Server, type ServerOptions } from '../../../../src/tasks.ts';
import { RedisBroker } from '../../../../src/tasks-redis.ts';
import { handlerWith } from './handle.ts';

/* node-worker.ts URL OPTIONS: serves until it is killed, and prints what its handlers say, a line of JSON each. */

const [, , url = '', options = '{}'] = process.argv;
const redis = new Redis(url);
const server = new Server({
  broker: new RedisBroker({ url }),
  retryDelayMs: () => 100,
  pollIntervalMs: 50,
  delayedTaskCheckIntervalMs: 100,
  ...(JSON.parse(options) as Partial<ServerOptions>),
});
await server.start(
  handlerWith({
    tell: (event) => {
      if (event.type !== 'count') process.stdout.write(`${JSON.stringify(event)}\n`);
    },
    count: (id) => redis.hincrby('runs', id, 1),
  }),
);
process.stdout.write('{"event":"serving"}\n');
