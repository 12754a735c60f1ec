/** What keys and limits cost: the same tasks without, with 1 to 100 000 keys, and with limits that hold nothing back. */
import { EmbeddedBroker, Inspector, Client, Task, type Broker, type QueueLimits } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { Redis } from 'ioredis';
import { forceCollection } from '../lib/collector.ts';
import { scenario, type Scenario } from '../lib/kinds.ts';
import { spentBy } from '../lib/machine.ts';
import { baseline, contest, expectCount, metric, ours } from '../lib/part.ts';
import type { BenchCase, Contestant, Measurement, MetricDefinition } from '../lib/part.ts';
import { payloadOf } from '../redis/contestant.ts';
import { emptyRedis, missing, readCpuNs } from '../redis/bench-redis.ts';

const QUEUE = 'default';
const BATCH = 1_000;
const AT_ONCE = 100;
const LEASE_MS = 30_000;
/** The others wait meanwhile: 100 000 keys are there at each dequeue. */
const DONE_SHARE = 0.2;
const NS_PER_US = 1_000;

const US_A_TASK = 'µs/task';
const ENQUEUE = metric('enqueue, cpu', US_A_TASK);
const DONE = metric('dequeue and complete, cpu', US_A_TASK);
const REDIS_ENQUEUE = metric('enqueue, redis cpu', US_A_TASK);
const REDIS_DONE = metric('dequeue and complete, redis cpu', US_A_TASK);

/** Nothing reaches them. */
const LIMITS: QueueLimits = {
  concurrency: 1_000_000,
  rate: { tasks: 1_000_000_000, perMs: 1_000 },
  perKey: { concurrency: 1_000_000, rate: { tasks: 1_000_000_000, perMs: 1_000 } },
};

interface Flow {
  /** 0 for tasks without a key. */
  readonly keys: number;
  readonly limits?: QueueLimits;
}

const FLOWS: readonly Contestant<Flow>[] = [
  baseline('no keys, no limits', { keys: 0 }),
  ours('1 key', { keys: 1 }),
  ours('1 000 keys', { keys: 1_000 }),
  ours('100 000 keys', { keys: 100_000 }),
  ours('no keys, limits', { keys: 0, limits: LIMITS }),
  ours('1 key, limits', { keys: 1, limits: LIMITS }),
  ours('1 000 keys, limits', { keys: 1_000, limits: LIMITS }),
  ours('100 000 keys, limits', { keys: 100_000, limits: LIMITS }),
];

/** A broker, and the CPU time of the Redis behind it. */
interface OpenBroker {
  readonly broker: Broker;
  readonly redisUs: () => Promise<number>;
  readonly close: () => Promise<void>;
}

async function embedded(): Promise<OpenBroker> {
  const broker = await EmbeddedBroker.open();
  return { broker, redisUs: () => Promise.resolve(0), close: () => broker.close() };
}

async function onRedis(): Promise<OpenBroker> {
  const { host, port } = await emptyRedis();
  const connection = new Redis({ host, port });
  const broker = new RedisBroker({ url: `redis://${host}:${port}` });
  return {
    broker,
    redisUs: async () => (await readCpuNs(connection)) / NS_PER_US,
    close: async () => {
      connection.disconnect();
      await broker.close();
    },
  };
}

async function measure(
  open: () => Promise<OpenBroker>,
  { keys, limits }: Flow,
  size: number,
): Promise<Measurement> {
  const tasks = Array.from(
    { length: size },
    (_, n) => new Task('work', payloadOf(n), keys === 0 ? {} : { key: `tenant ${n % keys}` }),
  );
  const { broker, redisUs, close } = await open();
  try {
    if (limits !== undefined) await new Inspector({ broker }).setLimits(QUEUE, limits);
    const costOf = async (
      count: number,
      run: () => Promise<unknown>,
    ): Promise<readonly [us: number, redisUs: number]> => {
      forceCollection();
      const redisBeforeUs = await redisUs();
      const { cpuUs } = await spentBy(run);
      return [cpuUs / count, ((await redisUs()) - redisBeforeUs) / count];
    };
    const enqueue = await costOf(size, () => enqueueAll(broker, tasks));
    const share = Math.ceil(size * DONE_SHARE);
    const done = await costOf(share, () => completeAll(broker, share));
    const { counts } = await broker.queueStats(QUEUE);
    return {
      values: {
        [ENQUEUE.name]: enqueue[0],
        [DONE.name]: done[0],
        [REDIS_ENQUEUE.name]: enqueue[1],
        [REDIS_DONE.name]: done[1],
      },
      problem: expectCount(counts.pending, size - share, 'tasks wait'),
    };
  } finally {
    await close();
  }
}

async function enqueueAll(broker: Broker, tasks: readonly Task[]): Promise<void> {
  const client = new Client({ broker });
  for (let at = 0; at < tasks.length; at += BATCH) await client.enqueueMany(tasks.slice(at, at + BATCH));
}

async function completeAll(broker: Broker, count: number): Promise<void> {
  for (let left = count; left > 0; left -= AT_ONCE) {
    const leased = await broker.dequeue(QUEUE, Math.min(AT_ONCE, left), LEASE_MS);
    await Promise.all(leased.map((task) => broker.complete(task)));
  }
}

function flowCase(
  open: () => Promise<OpenBroker>,
  metrics: readonly MetricDefinition[],
  isThere: boolean,
  rounds?: number,
): BenchCase {
  return scenario({
    name: 'keys and limits: enqueued a thousand a call, dequeued and completed 100 at once',
    note: 'A fifth of the tasks is done, while the others wait. The limits hold nothing back.',
    rounds,
    size: { full: 100_000, quick: 1_000, of: 'tasks' },
    metrics,
    contestants: contest<Flow, Scenario>(FLOWS, (flow) =>
      isThere ? (size) => measure(open, flow, size) : { cannot: missing ?? '' },
    ),
  });
}

export const embeddedFlowCase = flowCase(embedded, [DONE, ENQUEUE], true);

export const redisFlowCase = flowCase(
  onRedis,
  [REDIS_DONE, REDIS_ENQUEUE, DONE, ENQUEUE],
  missing === undefined,
  3,
);
