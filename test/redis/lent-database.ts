import { Redis } from 'ioredis';
import { lackOf } from './find-redis.ts';
import type { FreshDatabase } from './redis-case.ts';

/** All that the tests write begins so. */
const OURS = 'asynq:*';

/** A database that is not ours: nothing but our own keys is ever removed from it. */
export class LentDatabase {
  readonly #url: string;
  #isTaken = false;

  constructor(url: string) {
    this.#url = url;
  }

  /** @throws Error - it cannot be reached, is of a server that is too old, or has something in it. */
  async requireUsable(): Promise<void> {
    await this.#use(async (redis) => {
      const [, version = 'unknown'] = /^redis_version:(.*?)\r?$/m.exec(await redis.info('server')) ?? [];
      const lack = lackOf('The server of REDIS_URL', version);
      if (lack !== undefined) throw new Error(lack);
      const keys = await redis.dbsize();
      if (keys > 0)
        throw new Error(`REDIS_URL is a database with ${keys} keys, and the tests need an empty one`);
    });
  }

  async take(): Promise<FreshDatabase> {
    if (this.#isTaken) throw new Error('there is one database at a time, as long as REDIS_URL is set');
    await this.requireUsable();
    this.#isTaken = true;
    return {
      url: this.#url,
      dispose: async () => {
        await this.#use(removeOurs);
        this.#isTaken = false;
      },
    };
  }

  async #use(work: (redis: Redis) => Promise<void>): Promise<void> {
    const redis = new Redis(this.#url, { lazyConnect: true, retryStrategy: () => null });
    // Every error is passed to the caller that waits.
    let failure: unknown;
    redis.on('error', (error) => (failure = error));
    try {
      await redis.connect().catch((error: unknown) => {
        throw new Error(`REDIS_URL cannot be used: ${String(failure ?? error)}`, { cause: error });
      });
      await work(redis);
    } finally {
      redis.disconnect();
    }
  }
}

async function removeOurs(redis: Redis): Promise<void> {
  for await (const keys of redis.scanStream({ match: OURS, count: 1_000 })) {
    const found = keys as string[];
    if (found.length > 0) await redis.del(...found);
  }
}
