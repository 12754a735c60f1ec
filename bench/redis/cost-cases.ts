/** What a task costs Redis, from enqueued to done. */
import type { MetricDefinition, ScenarioCase, ScenarioOutcome } from '../lib/part.ts';
import type { Target } from '../lib/target.ts';
import { asynq } from './asynq.ts';
import { beeQueue } from './bee-queue.ts';
import { contest, emptyRedis, withConnection, withContestant } from './bench-redis.ts';
import { bullmq } from './bullmq.ts';
import type { OpenContestant, OpenOn, RedisContestant } from './contestant.ts';
import { OURS } from './ours.ts';
import { ClientCommands, countOthers, readCounters } from './redis-counters.ts';

const CALLERS = 100;
const CONCURRENCY = 100;
const PER_SECOND = 1_000;

const SENT: MetricDefinition = { name: 'commands sent', unit: '' };
const EXECUTED: MetricDefinition = { name: 'commands executed', unit: '' };
const BYTES: MetricDefinition = { name: 'bytes sent', unit: '' };
const MEMORY: MetricDefinition = { name: 'memory waiting', unit: 'bytes' };
/** Less than one percent is the same. */
const BELOW = 1.01;
/** The smaller run, as a share of the larger one. What is between the two are tasks alone: no connecting, no loading of scripts. */
const SMALL_SHARE = 0.1;

type Play = (contestant: OpenContestant, size: number, onWaiting: () => Promise<void>) => Promise<unknown>;

type Costs = Readonly<Record<string, number>>;

const waitingThenProcessed: Play = async (contestant, size, onWaiting) => {
  await contestant.enqueue(size, CALLERS);
  await onWaiting();
  await contestant.start(CONCURRENCY);
  await contestant.handled(size);
};

const asTheyCome: Play = async (contestant, size) => {
  await contestant.start(CONCURRENCY);
  await contestant.latenciesMs(size, PER_SECOND);
};

/** Of all tasks together; with the closing, which writes what was done last. */
async function countAll(open: OpenOn, play: Play, size: number): Promise<Costs> {
  const redis = await emptyRedis();
  return withConnection(redis, async (connection) => {
    let memory = 0;
    const { commands, bytes } = await countOthers(connection, () =>
      withContestant(open, redis, (contestant) =>
        play(contestant, size, async () => {
          memory = (await readCounters(connection)).usedMemory;
        }),
      ),
    );
    return { [EXECUTED.name]: commands, [BYTES.name]: bytes, [MEMORY.name]: memory };
  });
}

/** By itself, because what a monitor is told are bytes too. */
async function countSent(open: OpenOn, play: Play, size: number): Promise<Costs> {
  const redis = await emptyRedis();
  return withConnection(redis, async (connection) => {
    const commands = await ClientCommands.watch(connection);
    await withContestant(open, redis, (contestant) => play(contestant, size, () => Promise.resolve()));
    await commands.stop(connection);
    return { [SENT.name]: commands.count };
  });
}

async function costsOf(open: OpenOn, play: Play, size: number): Promise<ScenarioOutcome> {
  const count = async (tasks: number): Promise<Costs> => ({
    ...(await countSent(open, play, tasks)),
    ...(await countAll(open, play, tasks)),
  });
  const small = Math.ceil(size * SMALL_SHARE);
  const few = await count(small);
  const many = await count(size);
  const each = Object.entries(many).map(([name, value]) => [
    name,
    (value - (few[name] ?? 0)) / (size - small),
  ]);
  return { values: Object.fromEntries(each) as Costs, problem: undefined };
}

function below(against: string, metric: MetricDefinition): Target {
  return { kind: 'ratio', contestant: OURS, metric: metric.name, atLeast: BELOW, against };
}

const NOTE =
  'Of one task, from enqueued to done. Commands executed: also those that scripts call. Bytes: both ways. ' +
  'What a run of a tenth of the tasks costs is subtracted, and with it connections and the loading of scripts.';

type OpenCosts = (size: number) => Promise<ScenarioOutcome>;

const POLLS = { cannot: 'it asks an empty queue about once a second, and takes what has come: as above.' };

function costCase(
  name: string,
  play: Play,
  metrics: readonly MetricDefinition[],
  full: number,
  canPlay: (contestant: RedisContestant) => boolean = () => true,
): ScenarioCase {
  return {
    kind: 'scenario',
    name: `what a task costs Redis: ${name}`,
    note: NOTE,
    rounds: 3,
    size: { full, quick: 200, of: 'tasks' },
    metrics,
    contestants: contest<OpenCosts>((contestant, open) =>
      canPlay(contestant) ? (size) => costsOf(open, play, size) : POLLS,
    ),
    targets: [bullmq, beeQueue].flatMap((other) => [below(other.name, SENT), below(other.name, BYTES)]),
  };
}

export const costCases: readonly ScenarioCase[] = [
  costCase('all waiting, then processed', waitingThenProcessed, [SENT, EXECUTED, BYTES, MEMORY], 10_000),
  costCase(
    'a thousand a second, processed as they come',
    asTheyCome,
    [SENT, EXECUTED, BYTES],
    3_000,
    ({ name }) => name !== asynq.name,
  ),
];
