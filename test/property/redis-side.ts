import { Redis } from 'ioredis';
import { systemClock, type Clock } from 'escapement';
import { RedisBroker } from 'escapement/tasks/redis';
import { expect } from 'vitest';
import { QUEUES_KEY, QueueKeys } from '../../src/tasks/broker/redis/keys.ts';
import { freshDatabase } from '../redis/redis-case.ts';
import type { BrokerSide, BrokerSideOptions } from './broker-side.ts';
import { checkRedis } from '../tasks/support/check-redis.ts';
import { dumpOf, type RedisDump } from '../tasks/support/redis-dump.ts';
import { fromBrokerTime, SCALE, ScaledBroker, toBrokerTime } from './scaled-broker.ts';

const LOCK = /^asynq:\{.*?\}:unique:/u;

/** The time of the test, as a broker that keeps seconds has it. */
class ScaledClock implements Clock {
  ms = 0;

  now(): number {
    return this.ms * SCALE;
  }

  wallNow(): number {
    return toBrokerTime(this.ms);
  }

  setTimeout(callback: () => void, delayMs: number): ReturnType<Clock['setTimeout']> {
    return systemClock.setTimeout(callback, delayMs);
  }
}

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
    const clock = new ScaledClock();
    clock.ms = startMs;
    const archiveRetentionMs = options.archiveRetentionMs * SCALE;
    const broker = new RedisBroker({ ...options, archiveRetentionMs, url: this.#url, clock });
    return new RedisSide(this.#redis, broker, clock, options.archiveRetentionMs);
  };

  async [Symbol.asyncDispose](): Promise<void> {
    this.#redis.disconnect();
    await this.#disposeDatabase();
  }
}

/** A broker on Redis, driven as a fleet of servers would that never sleeps. */
class RedisSide implements BrokerSide {
  readonly broker: ScaledBroker;
  readonly ties = 'id';
  readonly #inner: RedisBroker;
  readonly #redis: Redis;
  readonly #clock: ScaledClock;
  readonly #archiveRetentionMs: number;
  /** When locks are over: Redis's own clock does not count. */
  readonly #lockEnds = new Map<string, number>();

  constructor(redis: Redis, inner: RedisBroker, clock: ScaledClock, archiveRetentionMs: number) {
    this.#redis = redis;
    this.#inner = inner;
    this.#clock = clock;
    this.#archiveRetentionMs = archiveRetentionMs;
    this.broker = new ScaledBroker(inner);
  }

  wallNow(): number {
    return this.#clock.ms;
  }

  /** With the next change keys whose token has come enter the ring; and those tasks without key that were there before the first key. */
  async turns(queue: string): Promise<readonly string[]> {
    const { ring, parked, pending } = new QueueKeys(queue);
    const turns = await this.#redis.lrange(ring, '0', '-1');
    turns.push(...(await this.#redis.zrangebyscore(parked, '-inf', this.#clock.wallNow())));
    const isMissing = !turns.includes('') && (await this.#redis.zscore(parked, '')) === null;
    return isMissing && (await this.#redis.exists(pending)) === 1 ? [...turns, ''] : turns;
  }

  async advance(ms: number): Promise<void> {
    const targetMs = this.#clock.ms + ms;
    let sweptMs = -Infinity;
    for (;;) {
      const dump = await dumpOf(this.#redis);
      const nextMs = Math.min(...this.#dueMoments(dump));
      if (nextMs > targetMs) break;
      if (nextMs <= sweptMs) throw new Error(`what was due at ${nextMs} is there at ${sweptMs} still`);
      this.#clock.ms = Math.max(this.#clock.ms, nextMs);
      sweptMs = this.#clock.ms;
      const queues = [...(dump.sets.get(QUEUES_KEY) ?? [])];
      await this.#inner.forward(queues);
      await this.#inner.reclaimSets(queues);
      await this.#inner.deleteExpired(queues, 1_000);
    }
    this.#clock.ms = targetMs;
    for (const [lock, endMs] of this.#lockEnds) if (endMs <= targetMs) await this.#redis.del(lock);
  }

  async check(): Promise<void> {
    const dump = await dumpOf(this.#redis);
    await this.#keepLocks(dump);
    checkRedis(dump);
    const queues = [...(dump.sets.get(QUEUES_KEY) ?? [])];
    const defects = await Promise.all(queues.map((queue) => this.#inner.repair(queue, { apply: false })));
    expect(defects.flat()).toEqual([]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#inner.close();
  }

  #dueMoments({ sets, zsets }: RedisDump): number[] {
    return [...(sets.get(QUEUES_KEY) ?? [])].flatMap((queue) => {
      const { scheduled, retry, completed, aggregationSets, archived } = new QueueKeys(queue);
      const moments = [scheduled, retry, completed, aggregationSets, archived].flatMap((key) => {
        const scores = [...(zsets.get(key)?.values() ?? [])];
        const laterMs = key === archived ? this.#archiveRetentionMs : 0;
        return scores.map((score) => fromBrokerTime(Number(score) * 1_000) + laterMs);
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
      this.#lockEnds.set(lock, this.#clock.ms + Math.ceil(ttlMs / SCALE));
      await this.#redis.persist(lock);
    }
  }
}
