/** How long a task takes when there are many: enqueued, processed, and both at once. */
import { Redis } from 'ioredis';
import { TIME } from '../lib/measurement.ts';
import type { BulkCase, BulkRun, MetricDefinition } from '../lib/part.ts';
import type { Target } from '../lib/target.ts';
import { asynq } from './asynq.ts';
import { contest, emptyRedis } from './bench-redis.ts';
import { bullmq } from './bullmq.ts';
import type { OpenContestant, OpenOn, RedisContestant } from './contestant.ts';
import { OURS } from './ours.ts';
import { readCpuNs } from './redis-counters.ts';

const CALLERS = 100;
const CONCURRENCY = 100;
const BATCH = 1_000;
const SIZE = { full: 20_000, quick: 300, of: 'tasks' };

const FASTER_THAN_BULLMQ = 1.5;

/** What one Redis can do at most, however many processes ask it. */
const REDIS_CPU: MetricDefinition = { name: 'redis cpu', unit: 'ns/item' };

interface Play {
  readonly prepare: (contestant: OpenContestant, size: number) => Promise<void>;
  readonly run: (contestant: OpenContestant, size: number) => Promise<unknown>;
}

type OpenBulk = (size: number) => Promise<BulkRun>;

function openWith({ prepare, run }: Play, open: OpenOn): OpenBulk {
  return async (size) => {
    const redis = await emptyRedis();
    const contestant = await open(redis);
    const connection = new Redis({ ...redis });
    await prepare(contestant, size);
    const cpuBeforeNs = await readCpuNs(connection);
    let cpuNs = Number.NaN;
    let closing: Promise<void> | undefined;
    return {
      run: async () => {
        await run(contestant, size);
        cpuNs = (await readCpuNs(connection)) - cpuBeforeNs; // a fraction of a millisecond, for all of them
        return size;
      },
      check: () => contestant.problem(),
      details: () => ({ [REDIS_CPU.name]: cpuNs / size }),
      close: () => {
        connection.disconnect();
        return (closing ??= contestant.close());
      },
    };
  };
}

const nothing = (): Promise<void> => Promise.resolve();
const enqueueAll = (contestant: OpenContestant, size: number): Promise<void> =>
  contestant.enqueue(size, CALLERS);

async function processAll(contestant: OpenContestant, size: number): Promise<void> {
  await contestant.start(CONCURRENCY);
  await contestant.handled(size);
}

const enqueueOneByOne: Play = { prepare: nothing, run: enqueueAll };
const enqueueTogether: Play = {
  prepare: nothing,
  run: (contestant, size) => contestant.enqueueBulk(size, BATCH),
};
const processWaiting: Play = { prepare: enqueueAll, run: processAll };
const enqueueAndProcess: Play = {
  prepare: (contestant) => contestant.start(CONCURRENCY),
  run: (contestant, size) => Promise.all([enqueueAll(contestant, size), contestant.handled(size)]),
};

function timesBullmq(atLeast: number): Target {
  return { kind: 'ratio', contestant: OURS, metric: TIME, atLeast, against: bullmq.name };
}
const asynqTargets: readonly Target[] =
  typeof asynq.open === 'function'
    ? [{ kind: 'ratio', contestant: OURS, metric: TIME, atLeast: 1, against: asynq.name }]
    : [];

function rateCase(
  name: string,
  play: Play,
  targets: readonly Target[],
  canPlay: (contestant: RedisContestant) => boolean = () => true,
): BulkCase {
  return {
    kind: 'bulk',
    name,
    size: SIZE,
    details: [REDIS_CPU],
    contestants: contest<OpenBulk>((contestant, open) =>
      canPlay(contestant) ? openWith(play, open) : { cannot: 'it has no call for many tasks.' },
    ),
    targets,
  };
}

export const rateCases: readonly BulkCase[] = [
  rateCase('enqueued one by one, by 100 callers', enqueueOneByOne, [timesBullmq(FASTER_THAN_BULLMQ)]),
  rateCase(
    'enqueued a thousand a call',
    enqueueTogether,
    [], // stated, and nothing was promised
    ({ hasNoBulk = false }) => !hasNoBulk,
  ),
  rateCase('processed 100 at once, all waiting', processWaiting, [
    timesBullmq(FASTER_THAN_BULLMQ),
    ...asynqTargets,
  ]),
  rateCase('enqueued by 100 callers while 100 at once are processed', enqueueAndProcess, [
    timesBullmq(FASTER_THAN_BULLMQ),
  ]),
];
