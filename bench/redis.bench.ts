/** Tasks on one Redis: ours, BullMQ, bee-queue, and asynq itself. */
import type { BenchPart } from './lib/part.ts';
import { CONTESTANTS } from './redis/bench-redis.ts';
import { costCases } from './redis/cost-cases.ts';
import { idleCase } from './redis/idle-case.ts';
import { latencyCase } from './redis/latency-case.ts';
import { rateCases } from './redis/rate-cases.ts';

export const part: BenchPart = {
  title: 'tasks that do nothing, on one local Redis',
  remarks: [
    'One redis-server, over TCP, that writes nothing to a disk, for all of them; emptied for whoever comes next. A task carries 64 ' +
      'bytes of JSON, which its handler reads. Who enqueues waits until its task is in Redis.',
    'All of them process a task at least once: it stays in Redis until it is done, and somebody else gets it when its worker is ' +
      'gone: when its lock or lease is over (BullMQ, asynq and ours, 30 s), or when it has stalled (bee-queue, 5 s).',
    'Redis cpu: what a task takes of the one thread that does everything in Redis. That is what processes share, however many there are.',
    ...CONTESTANTS.map(({ name, note }) => `${name}: ${note}`),
  ],
  cases: [...rateCases, latencyCase, ...costCases, idleCase],
};
