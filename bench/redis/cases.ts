/** Rates, latencies, and what a task and an idle worker cost Redis. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { closing } from '../lib/folder.ts';
import { latencyValues, P50, P99 } from '../lib/latencies.ts';
import { bulk, scenario, type BulkRun, type Scenario } from '../lib/kinds.ts';
import { atLeast, contest, isCannot, metric, TIME, US_PER_MS } from '../lib/part.ts';
import type { BenchCase, Cannot, Contestant, Measurement, MetricDefinition } from '../lib/part.ts';
import type { Target } from '../lib/result.ts';
import { asynq } from './asynq.ts';
import { ClientCommands, countOthers, emptyRedis, missing, readCounters, readCpuNs } from './bench-redis.ts';
import { withConnection } from './bench-redis.ts';
import type { OpenContestant, OpenOn, RedisContestant } from './contestant.ts';
import { beeQueue, bullmq, CONTESTANTS, OURS } from './contestants.ts';

const CALLERS = 100;
const CONCURRENCY = 100;
const BATCH = 1_000;
const PER_SECOND = 1_000;
const MS_PER_SECOND = 1_000;

/** The same case for all contestants that can play it. Their notes are remarks of the part. */
function play<Open>(
  openWith: (open: OpenOn) => Open,
  cannotPlay: (contestant: RedisContestant) => Cannot | undefined = () => undefined,
): Contestant<Open>[] {
  const able = CONTESTANTS.map((contestant) => {
    const open = missing === undefined ? contestant.open : { cannot: missing };
    return {
      name: contestant.name,
      role: contestant.role,
      open: isCannot(open) ? open : (cannotPlay(contestant) ?? open),
    };
  });
  return contest<OpenOn, Open>(able, openWith);
}

const FASTER_THAN_BULLMQ = 1.5;

/** CPU time of Redis limits the rate of all processes together. */
const REDIS_CPU = metric('redis cpu', 'ns/item');

interface RatePlay {
  readonly prepare?: (contestant: OpenContestant, size: number) => Promise<void>;
  readonly run: (contestant: OpenContestant, size: number) => Promise<unknown>;
}

const enqueueAll = (contestant: OpenContestant, size: number): Promise<void> =>
  contestant.enqueue(size, CALLERS);

async function processAll(contestant: OpenContestant, size: number): Promise<void> {
  await contestant.start(CONCURRENCY);
  await contestant.handled(size);
}

function rateCase(
  name: string,
  { prepare, run }: RatePlay,
  targets: readonly Target[],
  cannotPlay?: (contestant: RedisContestant) => Cannot | undefined,
): BenchCase {
  const openWith =
    (open: OpenOn) =>
    async (size: number): Promise<BulkRun> => {
      const redis = await emptyRedis();
      const contestant = await open(redis);
      const connection = new Redis({ ...redis });
      await prepare?.(contestant, size);
      const cpuBeforeNs = await readCpuNs(connection);
      let cpuNs = Number.NaN;
      let closing: Promise<void> | undefined;
      return {
        run: async () => {
          await run(contestant, size);
          cpuNs = (await readCpuNs(connection)) - cpuBeforeNs; // adds a fraction of a millisecond, for all contestants
        },
        check: () => contestant.problem(),
        details: () => ({ [REDIS_CPU.name]: cpuNs / size }),
        close: () => {
          connection.disconnect();
          return (closing ??= contestant.close());
        },
      };
    };
  return bulk({
    name,
    size: { full: 20_000, quick: 300, of: 'tasks' },
    details: [REDIS_CPU],
    contestants: play(openWith, cannotPlay),
    targets,
  });
}

const TIMES_BULLMQ = atLeast(OURS, TIME, FASTER_THAN_BULLMQ, bullmq.name);
const TIMES_ASYNQ = isCannot(asynq.open) ? [] : [atLeast(OURS, TIME, 1, asynq.name)];

export const rateCases = [
  rateCase('enqueued one by one, by 100 callers', { run: enqueueAll }, [TIMES_BULLMQ]),
  rateCase(
    'enqueued a thousand a call',
    { run: (contestant, size) => contestant.enqueueBulk(size, BATCH) },
    [], // measured without a target
    ({ hasNoBulk = false }) => (hasNoBulk ? { cannot: 'it has no call for many tasks.' } : undefined),
  ),
  rateCase('processed 100 at once, all waiting', { prepare: enqueueAll, run: processAll }, [
    TIMES_BULLMQ,
    ...TIMES_ASYNQ,
  ]),
  rateCase(
    'enqueued by 100 callers while 100 at once are processed',
    {
      prepare: (contestant) => contestant.start(CONCURRENCY),
      run: (contestant, size) => Promise.all([enqueueAll(contestant, size), contestant.handled(size)]),
    },
    [TIMES_BULLMQ],
  ),
];

async function measureLatencies(open: OpenOn, size: number): Promise<Measurement> {
  return closing(await open(await emptyRedis()), async (contestant) => {
    await contestant.start(CONCURRENCY);
    const latenciesMs = await contestant.latenciesMs(size, PER_SECOND);
    return { values: latencyValues(latenciesMs, US_PER_MS), problem: contestant.problem() };
  });
}

export const latencyCase = scenario({
  name: 'a thousand tasks a second: from the call that enqueues to the handler',
  note:
    'Enqueued at a fixed rate, without waiting for earlier tasks: about one at a time, because the host’s timers have a ' +
    'resolution of a millisecond.',
  size: { full: 5_000, quick: 200, of: 'tasks' },
  metrics: [metric(P50, 'µs'), metric(P99, 'µs')],
  contestants: play((open) => (size) => measureLatencies(open, size)),
  targets: [atLeast(OURS, P50, 1), atLeast(OURS, P99, 1)],
});

const SENT = metric('commands sent');
const EXECUTED = metric('commands executed');
const BYTES = metric('bytes sent');
const MEMORY = metric('memory waiting', 'bytes');
/** Less than one percent is no difference. */
const BELOW = 1.01;
/** The smaller run, as a share of the larger one: the difference has no connections and no loading of scripts. */
const SMALL_SHARE = 0.1;

type CostPlay = (
  contestant: OpenContestant,
  size: number,
  onWaiting: () => Promise<void>,
) => Promise<unknown>;

type Costs = Readonly<Record<string, number>>;

const waitingThenProcessed: CostPlay = async (contestant, size, onWaiting) => {
  await enqueueAll(contestant, size);
  await onWaiting();
  await processAll(contestant, size);
};

const asTheyCome: CostPlay = async (contestant, size) => {
  await contestant.start(CONCURRENCY);
  await contestant.latenciesMs(size, PER_SECOND);
};

/** Counts for all tasks together, and for closing, which writes the last results. */
async function countAll(open: OpenOn, costPlay: CostPlay, size: number): Promise<Costs> {
  const redis = await emptyRedis();
  return withConnection(redis, async (connection) => {
    let memory = 0;
    const { commands, bytes } = await countOthers(connection, async () =>
      closing(await open(redis), (contestant) =>
        costPlay(contestant, size, async () => {
          memory = (await readCounters(connection)).usedMemory;
        }),
      ),
    );
    return { [EXECUTED.name]: commands, [BYTES.name]: bytes, [MEMORY.name]: memory };
  });
}

/** A run of its own, because the monitor's output counts as bytes too. */
async function countSent(open: OpenOn, costPlay: CostPlay, size: number): Promise<Costs> {
  const redis = await emptyRedis();
  return withConnection(redis, async (connection) => {
    const commands = await ClientCommands.watch(connection);
    await closing(await open(redis), (contestant) => costPlay(contestant, size, () => Promise.resolve()));
    await commands.stop(connection);
    return { [SENT.name]: commands.count };
  });
}

async function costsOf(open: OpenOn, costPlay: CostPlay, size: number): Promise<Measurement> {
  const count = async (tasks: number): Promise<Costs> => ({
    ...(await countSent(open, costPlay, tasks)),
    ...(await countAll(open, costPlay, tasks)),
  });
  const small = Math.ceil(size * SMALL_SHARE);
  const few = await count(small);
  const many = await count(size);
  const each = Object.entries(many).map(([name, value]): [string, number] => [
    name,
    (value - (few[name] ?? 0)) / (size - small),
  ]);
  return { values: Object.fromEntries(each), problem: undefined };
}

function costCase(
  name: string,
  costPlay: CostPlay,
  metrics: readonly MetricDefinition[],
  full: number,
  cannotPlay?: (contestant: RedisContestant) => Cannot | undefined,
): BenchCase {
  return scenario({
    name: `what a task costs Redis: ${name}`,
    note:
      'For one task, from enqueued to done. Commands executed: those that scripts call included. Bytes: both ways. ' +
      'The costs of a run with a tenth of the tasks are subtracted, and with them connections and the loading of scripts.',
    rounds: 3,
    size: { full, quick: 200, of: 'tasks' },
    metrics,
    contestants: play<Scenario>((open) => (size) => costsOf(open, costPlay, size), cannotPlay),
    targets: [bullmq, beeQueue].flatMap((other) =>
      [SENT, BYTES].map((each) => atLeast(OURS, each.name, BELOW, other.name)),
    ),
  });
}

const POLLS = {
  cannot: 'it polls an empty queue about once a second, and takes all tasks that have come: as above.',
};

export const costCases = [
  costCase('all waiting, then processed', waitingThenProcessed, [SENT, EXECUTED, BYTES, MEMORY], 10_000),
  costCase(
    'a thousand a second, processed as they come',
    asTheyCome,
    [SENT, EXECUTED, BYTES],
    3_000,
    ({ name }) => (name === asynq.name ? POLLS : undefined),
  ),
];

const COMMANDS = 'commands executed';
const IDLE_BYTES = 'bytes';
/** A lower rate is within the noise. */
const LEAST = 0.01;
/** Share of the time that the worker gets before, for its connections. */
const SETTLE_SHARE = 0.1;

async function idle(open: OpenOn, ms: number): Promise<Measurement> {
  const redis = await emptyRedis();
  return closing(await open(redis), async (contestant) => {
    await contestant.start(CONCURRENCY);
    await sleep(ms * SETTLE_SHARE);
    return withConnection(redis, async (connection) => {
      const { commands, bytes } = await countOthers(connection, () => sleep(ms));
      const perSecond = (count: number): number => Math.max((count * MS_PER_SECOND) / ms, LEAST);
      return {
        values: { [COMMANDS]: perSecond(commands), [IDLE_BYTES]: perSecond(bytes) },
        problem: undefined,
      };
    });
  });
}

export const idleCase = scenario({
  name: 'a worker that has nothing to do',
  rounds: 1,
  size: { full: 20_000, quick: 200, of: 'ms' },
  metrics: [metric(COMMANDS, '/s'), metric(IDLE_BYTES, '/s')],
  contestants: play((open) => (ms) => idle(open, ms)),
});
