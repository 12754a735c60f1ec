import type { Redis } from 'ioredis';

/** Keys as `DUMP` has them. */
export type Snapshot = ReadonlyMap<string, Buffer>;

export async function takeSnapshot(redis: Redis): Promise<Snapshot> {
  const keys = await redis.keys('*');
  return new Map(await Promise.all(keys.map(async (key) => [key, await redis.dumpBuffer(key)] as const)));
}

/** Expiry times are not kept: nothing expires during a test. */
export async function restoreSnapshot(redis: Redis, snapshot: Snapshot): Promise<void> {
  await redis.flushall();
  for (const [key, dump] of snapshot) await redis.restore(key, '0', dump);
}

/**
 * What asynq reads of all keys, without the time at which a task was archived, and so without the order of that set: the two
 * sides archive one after the other, and we round up to a second where asynq rounds down. Since when a task is pending is left
 * out, too: asynqmon does not write it when it runs a task, and shows no latency for it then.
 */
export async function readState(redis: Redis): Promise<Readonly<Record<string, unknown>>> {
  const keys = (await redis.keys('*')).filter((key) => !key.includes(':x:')).sort();
  return Object.fromEntries(
    await Promise.all(keys.map(async (key) => [key, await readKey(redis, key)] as const)),
  );
}

async function readKey(redis: Redis, key: string): Promise<unknown> {
  switch (await redis.type(key)) {
    case 'list':
      return redis.lrange(key, '0', '-1');
    case 'set':
      return (await redis.smembers(key)).sort();
    case 'zset':
      return key.endsWith(':archived')
        ? (await redis.zrange(key, '0', '-1')).sort()
        : redis.zrange(key, '0', '-1', 'WITHSCORES');
    case 'hash':
      return taskFields(await redis.hgetallBuffer(key));
    default:
      return key.endsWith(':paused') ? 'paused' : redis.get(key);
  }
}

function taskFields(fields: Readonly<Record<string, Buffer>>): Readonly<Record<string, string>> {
  const shown = Object.entries(fields).filter(([name]) => !name.startsWith('x:') && name !== 'pending_since');
  const text = shown.map(([name, value]) => [name, value.toString('hex')] as const);
  return Object.fromEntries(text);
}
