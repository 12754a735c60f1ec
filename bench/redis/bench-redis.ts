/** The Redis of a run: a process that persists nothing, emptied for each contestant, and what it counts. */
import { Redis } from 'ioredis';
import { findRedis } from '../../test/redis/find-redis.ts';
import { RedisProcess } from '../../test/redis/redis-process.ts';
import type { Cannot } from '../lib/part.ts';
import type { RedisAddress } from './contestant.ts';

const HOST = '127.0.0.1';

let starting: Promise<RedisProcess> | undefined;

/** Not that of `REDIS_URL`, which others may use. */
const isInstalled = !('lack' in findRedis({ env: { ...process.env, REDIS_URL: '' } }));

/** Returns `open` if Redis is installed, or why no contestant can take part. */
export function withRedis<Open>(open: Open): Open | Cannot {
  return isInstalled ? open : { cannot: 'neither `redis-server` nor `valkey-server` is on the PATH.' };
}

/** Removes all keys and scripts. The server ends with this process. */
export async function emptyRedis(): Promise<RedisAddress> {
  const { port } = await (starting ??= RedisProcess.start());
  const redis = { host: HOST, port };
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

interface Counters {
  /** Commands executed, those called by scripts included. */
  readonly commands: number;
  /** In and out. */
  readonly bytes: number;
}

const FIELD = /^(\w+):([\d.]+)\r?$/gm;
const NS_PER_SECOND = 1e9;

function parseInfo(info: string): ReadonlyMap<string, number> {
  return new Map([...info.matchAll(FIELD)].map(([, name = '', value = '']) => [name, Number(value)]));
}

/** @returns what Redis counts while `action` runs, without the commands and bytes of reading the counters. */
export async function countOthers(redis: Redis, action: () => Promise<unknown>): Promise<Counters> {
  const first = await readCounters(redis);
  const before = await readCounters(redis);
  await action();
  const after = await readCounters(redis);
  const others = (counter: keyof Counters): number => {
    const own = before[counter] - first[counter];
    return after[counter] - before[counter] - own;
  };
  return { commands: others('commands'), bytes: others('bytes') };
}

async function readFields(redis: Redis, section: string): Promise<(name: string) => number> {
  const fields = parseInfo(await redis.info(section));
  return (name) => fields.get(name) ?? Number.NaN;
}

async function readCounters(redis: Redis): Promise<Counters> {
  const field = await readFields(redis, 'stats');
  return {
    commands: field('total_commands_processed'),
    bytes: field('total_net_input_bytes') + field('total_net_output_bytes'),
  };
}

export async function readUsedMemory(redis: Redis): Promise<number> {
  return (await readFields(redis, 'memory'))('used_memory');
}

/** CPU time of the main thread of Redis, in nanoseconds: that thread executes all commands and scripts. */
export async function readCpuNs(redis: Redis): Promise<number> {
  const field = await readFields(redis, 'cpu');
  return (field('used_cpu_sys_main_thread') + field('used_cpu_user_main_thread')) * NS_PER_SECOND;
}

/** @returns the number of commands that clients send while `action` runs, without those that scripts call. */
export async function countSent(redis: Redis, action: () => Promise<unknown>): Promise<number> {
  const end = `end of the count ${process.hrtime.bigint()}`;
  const monitor = await redis.monitor();
  let count = 0;
  const counted = new Promise<void>((resolve) => {
    monitor.on('monitor', (_time: string, words: readonly string[], source: string) => {
      if (words.includes(end)) resolve();
      else if (source !== 'lua') count++;
    });
  });
  await action();
  await redis.echo(end);
  await counted;
  monitor.disconnect();
  return count;
}
