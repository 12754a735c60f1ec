/** Tasks on one Redis: ours, BullMQ, bee-queue, and asynq. */
import { bulk, scenario } from './lib/kinds.ts';
import { atLeast, metric, TIME } from './lib/part.ts';
import type { BenchCase, BenchPart, MetricDefinition, Target } from './lib/part.ts';
import { P50, P99 } from './lib/work.ts';
import { flowRow } from './tasks/flow-row.ts';

const runs = () => import('./redis/runs.ts');

const CONTESTANTS = {
  bullmq: 'Queue.add, Queue.addBulk; one Worker; ended jobs are not kept, which is an option of the Worker.',
  'bee-queue':
    'Job.save, Queue.saveAll; no events, no delayed jobs, ended jobs are not kept. One queue for each side, as its ' +
    'documentation advises.',
  asynq:
    'version 0.25.1, in Go, in a process of its own, which may use all processors; the others share one thread of this ' +
    'process. Its connections and intervals are its defaults.',
  escapement: 'RedisBroker; Client.enqueue, Client.enqueueMany; one Server.',
};

const TIMES_BULLMQ = atLeast('escapement', TIME, 1.5, 'bullmq');
const TIMES_ASYNQ = atLeast('escapement', TIME, 1, 'asynq');

function rate(
  name: string,
  play: 'enqueued' | 'enqueuedInBulk' | 'processed' | 'both',
  targets: readonly Target[],
): BenchCase {
  return bulk({
    name,
    size: { full: 20_000, quick: 300, of: 'tasks' },
    details: [metric('redis cpu', 'ns/item')], // limits the rate of all processes together
    contestants: async () => (await runs()).rates(play),
    targets,
  });
}

const COSTS = [metric('commands sent'), metric('commands executed'), metric('bytes sent')];

function cost(
  name: string,
  full: number,
  metrics: readonly MetricDefinition[],
  play: 'waitingThenProcessed' | 'asTheyCome',
  absent?: Readonly<Record<string, string>>,
): BenchCase {
  return scenario({
    name: `what a task costs Redis: ${name}`,
    note:
      'For one task, from enqueued to done. Commands executed: those that scripts call included. Bytes: both ways. ' +
      'The costs of a run with a tenth of the tasks are subtracted, and with them connections and the loading of scripts.',
    rounds: 3,
    size: { full, quick: 200, of: 'tasks' },
    metrics,
    contestants: async () => (await runs()).costs(play, absent),
    // Less than one percent is no difference.
    targets: ['bullmq', 'bee-queue'].flatMap((other) =>
      ['commands sent', 'bytes sent'].map((each) => atLeast('escapement', each, 1.01, other)),
    ),
  });
}

export const part: BenchPart = {
  title: 'tasks that do nothing, on one local Redis',
  remarks: [
    'One redis-server, over TCP, without persistence, for all of them; emptied before each contestant. A task carries 64 ' +
      'bytes of JSON, which its handler decodes. A caller waits until its task is in Redis.',
    'All of them process a task at least once: it stays in Redis until it is done, and another worker gets it if its worker ' +
      'is lost: when its lock or lease expires (BullMQ, asynq and ours, 30 s), or when it has stalled (bee-queue, 5 s).',
    'Redis cpu: the CPU time that a task takes of the only thread that executes commands. All processes share it.',
    ...Object.entries(CONTESTANTS).map(([name, note]) => `${name}: ${note}`),
  ],
  cases: [
    rate('enqueued one by one, by 100 callers', 'enqueued', [TIMES_BULLMQ]),
    rate('enqueued a thousand a call', 'enqueuedInBulk', []),
    rate('processed 100 at once, all waiting', 'processed', [TIMES_BULLMQ, TIMES_ASYNQ]),
    rate('enqueued by 100 callers while 100 at once are processed', 'both', [TIMES_BULLMQ]),
    scenario({
      name: 'a thousand tasks a second: from the call that enqueues to the handler',
      note:
        'Enqueued at a fixed rate, without waiting for earlier tasks: about one at a time, because the host’s timers have a ' +
        'resolution of a millisecond.',
      size: { full: 5_000, quick: 200, of: 'tasks' },
      metrics: [metric(P50, 'µs'), metric(P99, 'µs')],
      contestants: async () => (await runs()).latencies(),
      targets: [atLeast('escapement', P50, 1), atLeast('escapement', P99, 1)],
    }),
    cost(
      'all waiting, then processed',
      10_000,
      [...COSTS, metric('memory waiting', 'bytes')],
      'waitingThenProcessed',
    ),
    cost('a thousand a second, processed as they come', 3_000, COSTS, 'asTheyCome', {
      asynq: 'it polls an empty queue about once a second, and takes all tasks that have come: as above.',
    }),
    scenario({
      name: 'a worker that has nothing to do',
      rounds: 1,
      size: { full: 20_000, quick: 200, of: 'ms' },
      metrics: [metric('commands executed', '/s'), metric('bytes', '/s')],
      contestants: async () => (await runs()).idling(),
    }),
    flowRow('redis', 3),
  ],
};
