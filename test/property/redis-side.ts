import { Redis } from 'ioredis';
import { systemClock } from 'escapement';
import { RedisBroker } from 'escapement/tasks/redis';
import { expect } from 'vitest';
import { QUEUES_KEY, QueueKeys } from '../../src/tasks/broker/redis/keys.ts';
import { freshDatabase } from '../redis/redis-case.ts';
import { MOMENT_MS } from './broker-actions.ts';
import type { BrokerSide, BrokerSideOptions } from './broker-side.ts';
import { checkRedis } from '../tasks/support/check-redis.ts';
import { dumpOf, type RedisDump } from '../tasks/support/redis-dump.ts';

const LOCK = /^asynq:\{.*?\}:unique:/u;

/** A database, and connections to it, for one history after the other. */
export class RedisSides implements AsyncDisposable {
  readonly #url: string;
  readonly #disposeDatabase: () => Promise<void>;
  readonly #redis: Redis;

  private constructor(url: string, dispose: () => Promise<void>) {
    this.#url = url;
    this.#disposeDatabase = dispose;
    this.#redis = new Redis(url);
  }

  static async start(): Promise<RedisSides> {
    const { url, dispose } = await freshDatabase();
    return new RedisSides(url, dispose);
  }

  /** One at a time. */
  readonly open = async ({ startMs, ...options }: BrokerSideOptions): Promise<BrokerSide> => {
    const keys = await this.#redis.keys('asynq:*');
    if (keys.length > 0) await this.#redis.del(...keys);
    const time = { ms: startMs };
    const now = (): number => time.ms;
    const clock = { ...systemClock, now, wallNow: now }; // what waits for Redis waits by the clock of the host
    const broker = new RedisBroker({ ...options, url: this.#url, clock });
    return new RedisSide(this.#redis, broker, time, options.archiveRetentionMs);
  };

  async [Symbol.asyncDispose](): Promise<void> {
    this.#redis.disconnect();
    await this.#disposeDatabase();
  }
}

/** A broker on Redis, driven as a fleet of servers would that never sleeps. */
class RedisSide implements BrokerSide {
  readonly broker: RedisBroker;
  readonly ties = 'id';
  readonly #redis: Redis;
  readonly #time: { ms: number };
  readonly #archiveRetentionMs: number;
  /** When locks are over: Redis's own clock does not count. */
  readonly #lockEnds = new Map<string, number>();

  constructor(redis: Redis, broker: RedisBroker, time: { ms: number }, archiveRetentionMs: number) {
    this.#redis = redis;
    this.broker = broker;
    this.#time = time;
    this.#archiveRetentionMs = archiveRetentionMs;
  }

  wallNow(): number {
    return this.#time.ms;
  }

  /** With the next change keys whose token has come enter the ring; and those tasks without key that were there before the first key. */
  async turns(queue: string): Promise<readonly string[]> {
    const { ring, parked, pending } = new QueueKeys(queue);
    const turns = await this.#redis.lrange(ring, '0', '-1');
    turns.push(...(await this.#redis.zrangebyscore(parked, '-inf', this.#time.ms)));
    const isMissing = !turns.includes('') && (await this.#redis.zscore(parked, '')) === null;
    return isMissing && (await this.#redis.exists(pending)) === 1 ? [...turns, ''] : turns;
  }

  async advance(ms: number): Promise<void> {
    const targetMs = this.#time.ms + ms;
    let sweptMs = -Infinity;
    for (;;) {
      const dump = await dumpOf(this.#redis);
      const nextMs = Math.min(...this.#dueMoments(dump));
      if (nextMs > targetMs) break;
      if (nextMs <= sweptMs) throw new Error(`what was due at ${nextMs} is there at ${sweptMs} still`);
      this.#time.ms = Math.max(this.#time.ms, nextMs);
      sweptMs = this.#time.ms;
      const queues = [...(dump.sets.get(QUEUES_KEY) ?? [])];
      await this.broker.forward(queues);
      await this.broker.reclaimSets(queues);
      await this.broker.deleteExpired(queues, 1_000);
    }
    this.#time.ms = targetMs;
    for (const [lock, endMs] of this.#lockEnds) if (endMs <= targetMs) await this.#redis.del(lock);
  }

  async check(): Promise<void> {
    const dump = await dumpOf(this.#redis);
    await this.#keepLocks(dump);
    checkRedis(dump);
    const queues = [...(dump.sets.get(QUEUES_KEY) ?? [])];
    const defects = await Promise.all(queues.map((queue) => this.broker.repair(queue, { apply: false })));
    expect(defects.flat()).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.broker.close();
  }

  #dueMoments({ sets, zsets }: RedisDump): number[] {
    return [...(sets.get(QUEUES_KEY) ?? [])].flatMap((queue) => {
      const { scheduled, retry, completed, aggregationSets, archived } = new QueueKeys(queue);
      const moments = [scheduled, retry, completed, aggregationSets, archived].flatMap((key) => {
        const scores = [...(zsets.get(key)?.values() ?? [])];
        const laterMs = key === archived ? this.#archiveRetentionMs : 0;
        return scores.map((score) => Number(score) * 1_000 + laterMs);
      });
      return moments;
    });
  }

  /** A lock that was just taken expires in the time of the test from now on. */
  async #keepLocks({ strings, ttls }: RedisDump): Promise<void> {
    for (const lock of this.#lockEnds.keys()) if (!strings.has(lock)) this.#lockEnds.delete(lock);
    for (const lock of strings.keys()) {
      if (!LOCK.test(lock)) continue;
      const ttlMs = ttls.get(lock);
      if (ttlMs === undefined) {
        if (!this.#lockEnds.has(lock)) throw new Error(`'${lock}' does not expire`);
        continue;
      }
      this.#lockEnds.set(lock, this.#time.ms + Math.ceil(ttlMs / MOMENT_MS) * MOMENT_MS);
      await this.#redis.persist(lock);
    }
  }
}
