import { Redis } from 'ioredis';

/** Calls a server of ours with a client of its own. */
export async function withRedis<T>(url: string, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { retryStrategy: () => null });
  redis.on('error', () => {
    // The caller receives the error.
  });
  try {
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}
