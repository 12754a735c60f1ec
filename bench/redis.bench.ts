/** Tasks on one Redis: ours, BullMQ, bee-queue, and asynq. */
import type { BenchPart } from './lib/part.ts';
import { costCases, idleCase, latencyCase, rateCases } from './redis/cases.ts';
import { CONTESTANTS } from './redis/contestants.ts';
import { redisFlowCase } from './tasks/flow-cases.ts';

export const part: BenchPart = {
  title: 'tasks that do nothing, on one local Redis',
  remarks: [
    'One redis-server, over TCP, without persistence, for all of them; emptied before each contestant. A task carries 64 ' +
      'bytes of JSON, which its handler decodes. A caller waits until its task is in Redis.',
    'All of them process a task at least once: it stays in Redis until it is done, and another worker gets it if its worker ' +
      'is lost: when its lock or lease expires (BullMQ, asynq and ours, 30 s), or when it has stalled (bee-queue, 5 s).',
    'Redis cpu: the CPU time that a task takes of the only thread that executes commands. All processes share it.',
    ...CONTESTANTS.map(({ name, note }) => `${name}: ${note ?? ''}`),
  ],
  cases: [...rateCases, latencyCase, ...costCases, idleCase, redisFlowCase],
};
