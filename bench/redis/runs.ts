/** Rates, latencies, and what a task and an idle worker cost Redis. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { closing } from '../lib/folder.ts';
import type { OpenBulk, Scenario } from '../lib/kinds.ts';
import { contest, MS_PER_S, US_PER_MS, type Contestant } from '../lib/part.ts';
import { latencyValues } from '../lib/work.ts';
import { countOthers, countSent, emptyRedis, readCpuNs, readUsedMemory } from './bench-redis.ts';
import { withConnection, withRedis } from './bench-redis.ts';
import type { OpenContestant, OpenOn } from './contestant.ts';
import { contestants } from './contestants.ts';

const CALLERS = 100;
const CONCURRENCY = 100;
const BATCH = 1_000;
const PER_SECOND = 1_000;

/** The same for all contestants that can play. @param absent - by name, why some cannot play in this case. */
function play<Open>(
  openWith: (open: OpenOn) => Open,
  absent: Readonly<Record<string, string>> = {},
): Contestant<Open>[] {
  return contest<OpenOn, Open>(contestants(), (open, name) => {
    const cannot = absent[name];
    return cannot === undefined ? withRedis(openWith(open)) : { cannot };
  });
}

interface RatePlay {
  readonly prepare?: (contestant: OpenContestant, size: number) => Promise<unknown>;
  readonly run: (contestant: OpenContestant, size: number) => Promise<unknown>;
  readonly absent?: Readonly<Record<string, string>>;
}

const enqueueAll = (contestant: OpenContestant, size: number): Promise<unknown> =>
  contestant.enqueue(size, CALLERS);

async function processAll(contestant: OpenContestant, size: number): Promise<void> {
  await contestant.start(CONCURRENCY);
  await contestant.handled(size);
}

const RATES = {
  enqueued: { run: enqueueAll },
  enqueuedInBulk: {
    run: (contestant, size) => contestant.enqueueBulk(size, BATCH),
    absent: { asynq: 'it has no call for many tasks.' },
  },
  processed: { prepare: enqueueAll, run: processAll },
  both: {
    prepare: (contestant) => contestant.start(CONCURRENCY),
    run: (contestant, size) => Promise.all([enqueueAll(contestant, size), contestant.handled(size)]),
  },
} satisfies Record<string, RatePlay>;

export function rates(name: keyof typeof RATES): Contestant<OpenBulk>[] {
  const { prepare, run, absent }: RatePlay = RATES[name];
  return play<OpenBulk>(
    (open) => async (size) => {
      const redis = await emptyRedis();
      const contestant = await open(redis);
      const connection = new Redis({ ...redis });
      await prepare?.(contestant, size);
      const cpuBeforeNs = await readCpuNs(connection);
      let cpuNs = Number.NaN;
      return {
        run: async () => {
          await run(contestant, size);
          cpuNs = (await readCpuNs(connection)) - cpuBeforeNs; // adds a fraction of a millisecond, for all contestants
        },
        check: () => contestant.problem(),
        details: () => ({ 'redis cpu': cpuNs / size }),
        close: () => {
          connection.disconnect();
          return contestant.close();
        },
      };
    },
    absent,
  );
}

export function latencies(): Contestant<Scenario>[] {
  return play(
    (open) => async (size) =>
      closing(open(await emptyRedis()), async (contestant) => {
        await contestant.start(CONCURRENCY);
        const latenciesMs = await contestant.latenciesMs(size, PER_SECOND);
        return { values: latencyValues(latenciesMs, US_PER_MS), problem: contestant.problem() };
      }),
  );
}

/** The smaller run, as a share of the larger one: the difference has no connections and no loading of scripts. */
const SMALL_SHARE = 0.1;

type CostPlay = (
  contestant: OpenContestant,
  size: number,
  onWaiting: () => Promise<void>,
) => Promise<unknown>;

type Costs = Readonly<Record<string, number>>;

const COSTS = {
  waitingThenProcessed: async (contestant, size, onWaiting) => {
    await enqueueAll(contestant, size);
    await onWaiting();
    await processAll(contestant, size);
  },
  asTheyCome: async (contestant, size) => {
    await contestant.start(CONCURRENCY);
    await contestant.latenciesMs(size, PER_SECOND);
  },
} satisfies Record<string, CostPlay>;

/** Counts for all tasks together, and for closing, which writes the last results. */
async function countAll(open: OpenOn, costPlay: CostPlay, size: number): Promise<Costs> {
  const redis = await emptyRedis();
  return withConnection(redis, async (connection) => {
    let memory = 0;
    const { commands, bytes } = await countOthers(connection, () =>
      closing(open(redis), (contestant) =>
        costPlay(contestant, size, async () => {
          memory = await readUsedMemory(connection);
        }),
      ),
    );
    return { 'commands executed': commands, 'bytes sent': bytes, 'memory waiting': memory };
  });
}

/** A run of its own, because the monitor's output counts as bytes too. */
async function countAllSent(open: OpenOn, costPlay: CostPlay, size: number): Promise<Costs> {
  const redis = await emptyRedis();
  const play = (): Promise<unknown> =>
    closing(open(redis), (contestant) => costPlay(contestant, size, () => Promise.resolve()));
  return { 'commands sent': await withConnection(redis, (connection) => countSent(connection, play)) };
}

export function costs(
  name: keyof typeof COSTS,
  absent?: Readonly<Record<string, string>>,
): Contestant<Scenario>[] {
  return play<Scenario>(
    (open) => async (size) => {
      const count = async (tasks: number): Promise<Costs> => ({
        ...(await countAllSent(open, COSTS[name], tasks)),
        ...(await countAll(open, COSTS[name], tasks)),
      });
      const small = Math.ceil(size * SMALL_SHARE);
      const few = await count(small);
      const many = await count(size);
      const each = Object.entries(many).map(([of, value]) => [of, (value - (few[of] ?? 0)) / (size - small)]);
      return { values: Object.fromEntries(each) as Costs };
    },
    absent,
  );
}

/** A lower rate is within the noise. */
const LEAST_RATE = 0.01;
/** Share of the time that the worker gets before, for its connections. */
const SETTLE_SHARE = 0.1;

export function idling(): Contestant<Scenario>[] {
  return play((open) => async (ms) => {
    const redis = await emptyRedis();
    return closing(open(redis), async (contestant) => {
      await contestant.start(CONCURRENCY);
      await sleep(ms * SETTLE_SHARE);
      const { commands, bytes } = await withConnection(redis, (connection) =>
        countOthers(connection, () => sleep(ms)),
      );
      const perSecond = (count: number): number => Math.max((count * MS_PER_S) / ms, LEAST_RATE);
      return { values: { 'commands executed': perSecond(commands), bytes: perSecond(bytes) } };
    });
  });
}
