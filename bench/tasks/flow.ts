/** What keys and limits cost: the same tasks without, with 1 to 100 000 keys, and with limits that hold nothing back. */
import { EmbeddedBroker, Inspector, Client, Task, type Broker, type QueueLimits } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { Redis } from 'ioredis';
import { forceCollection } from '../lib/collector.ts';
import { closing } from '../lib/folder.ts';
import type { Scenario } from '../lib/kinds.ts';
import { spentBy } from '../lib/machine.ts';
import { liveBytes } from '../lib/memory.ts';
import { baseline, contest, expectCount, ours, type Contestant } from '../lib/part.ts';
import { batches } from '../lib/work.ts';
import { emptyRedis, readCpuNs, withRedis } from '../redis/bench-redis.ts';
import { payloadOf } from '../redis/contestant.ts';

const QUEUE = 'default';
const AT_ONCE = 100;
const LEASE_MS = 30_000;
/** The others wait meanwhile: 100 000 keys are there at each dequeue. */
const DONE_SHARE = 0.2;
const NS_PER_US = 1_000;

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

const BROKERS = {
  embedded: async () => {
    const broker = await EmbeddedBroker.open();
    return { broker, redisUs: () => Promise.resolve(0), close: () => broker.close() };
  },
  redis: async () => {
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
  },
} satisfies Record<string, () => Promise<OpenBroker>>;

function measure(open: () => Promise<OpenBroker>, { keys, limits }: Flow): Scenario {
  return (size) => {
    const tasks = Array.from(
      { length: size },
      (_, n) => new Task('work', payloadOf(n), keys === 0 ? {} : { key: `tenant ${n % keys}` }),
    );
    return closing(open(), async ({ broker, redisUs }) => {
      if (limits !== undefined) await new Inspector({ broker }).setLimits(QUEUE, limits);
      const costOf = async (name: string, count: number, run: () => Promise<unknown>) => {
        forceCollection();
        const redisBeforeUs = await redisUs();
        const { cpuUs } = await spentBy(run);
        const redisAfterUs = await redisUs();
        return {
          [`${name}, cpu`]: cpuUs / count,
          [`${name}, redis cpu`]: (redisAfterUs - redisBeforeUs) / count,
        };
      };
      const bytesBefore = await liveBytes();
      const enqueued = await costOf('enqueue', size, () => enqueueAll(broker, tasks));
      const memory = ((await liveBytes()) - bytesBefore) / size;
      const share = Math.ceil(size * DONE_SHARE);
      const done = await costOf('dequeue and complete', share, () => completeAll(broker, share));
      const { counts } = await broker.queueStats(QUEUE);
      return {
        values: { ...enqueued, ...done, memory },
        problem: expectCount(counts.pending, size - share, 'tasks wait'),
      };
    });
  };
}

async function enqueueAll(broker: Broker, tasks: readonly Task[]): Promise<void> {
  const client = new Client({ broker });
  for (const numbers of batches(tasks.length)) {
    await client.enqueueMany(numbers.map((number) => tasks[number] as Task));
  }
}

async function completeAll(broker: Broker, count: number): Promise<void> {
  for (const { length } of batches(count, AT_ONCE)) {
    const leased = await broker.dequeue(QUEUE, length, LEASE_MS);
    await Promise.all(leased.map((task) => broker.complete(task)));
  }
}

export function flows(broker: keyof typeof BROKERS): Contestant<Scenario>[] {
  return contest<Flow, Scenario>(FLOWS, (flow) => {
    const scenario = measure(BROKERS[broker], flow);
    return broker === 'redis' ? withRedis(scenario) : scenario;
  });
}
