/** How long a task takes when there are many: enqueued, processed, and both at once. */
import { TIME } from '../lib/measurement.ts';
import type { BulkCase, BulkRun } from '../lib/part.ts';
import type { Target } from '../lib/target.ts';
import { asynq } from './asynq.ts';
import { contest, emptyRedis } from './bench-redis.ts';
import { bullmq } from './bullmq.ts';
import type { OpenContestant, OpenOn, RedisContestant } from './contestant.ts';
import { OURS } from './ours.ts';

const CALLERS = 100;
const CONCURRENCY = 100;
const BATCH = 1_000;
const SIZE = { full: 20_000, quick: 300, of: 'tasks' };

const FASTER_THAN_BULLMQ = 1.5;

interface Play {
  readonly prepare: (contestant: OpenContestant, size: number) => Promise<void>;
  readonly run: (contestant: OpenContestant, size: number) => Promise<unknown>;
}

type OpenBulk = (size: number) => Promise<BulkRun>;

function openWith({ prepare, run }: Play, open: OpenOn): OpenBulk {
  return async (size) => {
    const contestant = await open(await emptyRedis());
    await prepare(contestant, size);
    let closing: Promise<void> | undefined;
    return {
      run: async () => {
        await run(contestant, size);
        return size;
      },
      check: () => contestant.problem(),
      close: () => (closing ??= contestant.close()),
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
    [timesBullmq(FASTER_THAN_BULLMQ)],
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
