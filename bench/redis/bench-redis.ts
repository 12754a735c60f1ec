/** The Redis of a run: a process of its own that keeps nothing, emptied for whoever comes next. */
import { Redis } from 'ioredis';
import { requireRedisProgram } from '../../test/redis/find-redis.ts';
import { RedisProcess } from '../../test/redis/redis-process.ts';
import type { Contestant } from '../lib/part.ts';
import { asynq } from './asynq.ts';
import { beeQueue } from './bee-queue.ts';
import { bullmq } from './bullmq.ts';
import type { Cannot, OpenContestant, OpenOn, RedisAddress, RedisContestant } from './contestant.ts';
import { ours } from './ours.ts';

export const CONTESTANTS: readonly RedisContestant[] = [bullmq, beeQueue, asynq, ours];

const HOST = '127.0.0.1';

let starting: Promise<RedisProcess> | undefined;

/** Without Redis nobody can take part. */
function hasRedis(): boolean {
  try {
    requireRedisProgram();
    return true;
  } catch {
    return false;
  }
}

const missing = hasRedis() ? undefined : 'neither `redis-server` nor `valkey-server` is on the PATH.';

/** It ends with this process. */
async function address(): Promise<RedisAddress> {
  const { port } = await (starting ??= RedisProcess.start());
  return { host: HOST, port };
}

/** As if it had just been started: no keys, no scripts. */
export async function emptyRedis(): Promise<RedisAddress> {
  const redis = await address();
  await withConnection(redis, async (connection) => {
    await connection.flushall();
    await connection.script('FLUSH');
  });
  return redis;
}

export async function withConnection<R>(
  redis: RedisAddress,
  action: (connection: Redis) => Promise<R>,
): Promise<R> {
  const connection = new Redis({ ...redis });
  try {
    return await action(connection);
  } finally {
    connection.disconnect();
  }
}

export async function withContestant<R>(
  open: OpenOn,
  redis: RedisAddress,
  action: (contestant: OpenContestant) => Promise<R>,
): Promise<R> {
  const contestant = await open(redis);
  try {
    return await action(contestant);
  } finally {
    await contestant.close();
  }
}

/** The same case for all of them. */
export function contest<Open>(
  openWith: (contestant: RedisContestant, open: OpenOn) => Open | Cannot,
): Contestant<Open>[] {
  return CONTESTANTS.map((contestant) => ({
    name: contestant.name,
    role: contestant.role,
    open: openOr(contestant, openWith),
  }));
}

function openOr<Open>(
  contestant: RedisContestant,
  openWith: (contestant: RedisContestant, open: OpenOn) => Open | Cannot,
): Open | Cannot {
  if (missing !== undefined) return { cannot: missing };
  if (typeof contestant.open !== 'function') return contestant.open;
  return openWith(contestant, contestant.open);
}
