import { Cluster, Redis } from 'ioredis';
import { systemClock, type Clock } from 'escapement';
import { RedisBroker } from 'escapement/tasks/redis';
import { onTestFinished } from 'vitest';
import type { BrokerSetup } from '../../../conformance/broker/support.ts';
import { freshDatabase } from '../../../redis/redis-case.ts';
import type { RedisCluster } from '../../../redis/redis-cluster.ts';
import { checkQueues } from '../../support/check-redis.ts';
import { dumpOf } from '../../support/redis-dump.ts';

/** Longer than a machine stops, where a test is not about the time limit. */
export const PATIENT_MS = 60_000;

/** The host's clock, except that its wall time passes by jumps only: no test depends on how long it takes. */
class SteppedClock implements Clock {
  #wallMs = systemClock.wallNow();
  #aheadMs = 0;

  step(ms: number): void {
    this.#wallMs += ms;
    this.#aheadMs += ms;
  }

  now(): number {
    return systemClock.now() + this.#aheadMs;
  }

  wallNow(): number {
    return this.#wallMs;
  }

  setTimeout(callback: () => void, delayMs: number): ReturnType<Clock['setTimeout']> {
    return systemClock.setTimeout(callback, delayMs);
  }
}

/** A broker on Redis, and a client of the test's own. */
export interface RedisSetup extends BrokerSetup {
  readonly broker: RedisBroker;
  readonly redis: Redis;
  readonly url: string;
}

/** A broker on a real Redis, with nothing in it. */
export async function redisSetup(): Promise<RedisSetup> {
  const { url, dispose } = await freshDatabase();
  return setupOn(url, new Redis(url), dispose);
}

/** The same for the length of the test. @param isChecked - whether its queues are checked in the end. */
export async function redisForTest({ isChecked = false } = {}): Promise<RedisSetup> {
  const setup = await redisSetup();
  onTestFinished(() => setup.dispose());
  if (isChecked) onTestFinished(() => setup.check?.(), 60_000); // it reads every task
  return setup;
}

/** A broker on a cluster, of which everything is removed first. */
export async function clusterSetup({ url, nodes }: RedisCluster): Promise<RedisSetup> {
  await Promise.all(nodes.map((node) => node.ask('FLUSHALL')));
  const cluster = new Cluster(nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
  const keys = async (pattern: string): Promise<string[]> =>
    (await Promise.all(cluster.nodes('master').map((node) => node.keys(pattern)))).flat();
  const redis = Object.assign(cluster, { keys }) as unknown as Redis;
  return { ...setupOn(url, redis, () => Promise.resolve()), listsFirst: true };
}

/** Time passes by a jump of the broker's clock, and of what Redis lets expire. */
function setupOn(url: string, redis: Redis, dispose: () => Promise<void>): RedisSetup {
  const clock = new SteppedClock();
  const broker = new RedisBroker({ url, clock, timeoutMs: PATIENT_MS });
  return {
    broker,
    redis,
    url,
    precisionMs: 1_000,
    advance: async (ms) => {
      clock.step(ms);
      await expireSooner(redis, ms);
    },
    check: async () => {
      checkQueues(await dumpOf(redis));
    },
    dispose: async () => {
      await broker.close();
      redis.disconnect();
      await dispose();
    },
  };
}

async function expireSooner(redis: Redis, ms: number): Promise<void> {
  for (const key of await redis.keys('asynq:*')) {
    const leftMs = await redis.pttl(key);
    if (leftMs >= 0) await redis.pexpire(key, leftMs - ms);
  }
}
