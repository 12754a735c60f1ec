import { hasCode } from '../../../core/errors.ts';
import {
  decodeEnqueueEvent,
  decodeScheduleEntry,
  decodeServer,
  decodeWorker,
  encodeEnqueueEvent,
  encodeScheduleEntry,
  encodeServer,
  encodeWorker,
} from '../../wire/member-codec.ts';
import { EVENTS_KEPT, HISTORY_KEPT_MS } from '../broker-settings.ts';
import type { ServerState } from '../broker.ts';
import {
  SCHEDULERS_KEY,
  SERVERS_KEY,
  WORKERS_KEY,
  schedulerHistoryKey,
  schedulerKey,
  serverKey,
  workersKey,
} from './keys.ts';
import type { RedisAccess, RedisOperations } from './redis-access.ts';
import { secondsDown, secondsUp } from './replies.ts';
import { Script, type ScriptArgument } from './script.ts';

/* Servers and schedulers, which announce themselves again and again: an announcement that is not renewed expires. */

/**
 * Announces a server with its workers.
 *
 * KEYS[1]   STRING of the server
 * KEYS[2]   HASH of its workers
 * ARGV[1]   seconds until they expire
 * ARGV[2]   ServerInfo
 * ARGV[3…]  per worker: id of its task, WorkerInfo
 */
export const ANNOUNCE_SERVER = new Script(`
redis.call('SETEX', KEYS[1], ARGV[1], ARGV[2])
redis.call('DEL', KEYS[2])
for i = 3, #ARGV, 2 do redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) end
redis.call('EXPIRE', KEYS[2], ARGV[1])
`);

/**
 * Announces the entries of a scheduler. The last one becomes the first of the list, as in asynq.
 *
 * KEYS[1]   LIST of its entries
 * ARGV[1]   seconds until they expire
 * ARGV[2…]  per entry: SchedulerEntry
 */
export const ANNOUNCE_SCHEDULER = new Script(`
redis.call('DEL', KEYS[1])
for i = 2, #ARGV do redis.call('LPUSH', KEYS[1], ARGV[i]) end
redis.call('EXPIRE', KEYS[1], ARGV[1])
`);

/**
 * Records an event of a schedule entry, and keeps the latest ones.
 *
 * KEYS[1]  ZSET of its events
 * ARGV[1]  time of the event
 * ARGV[2]  SchedulerEnqueueEvent
 * ARGV[3]  number of events that are kept
 * ARGV[4]  seconds until all of them expire
 */
export const RECORD_EVENT = new Script(`
need('zset', KEYS[1])
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -ARGV[3] - 1)
redis.call('EXPIRE', KEYS[1], ARGV[4])
`);

export const MEMBERS = {
  async announceServer(redis, read, ttlMs) {
    const server = read();
    const { host, pid, id } = server;
    const keys = [serverKey(host, pid, id), workersKey(host, pid, id)] as const;
    const args: ScriptArgument[] = [secondsUp(ttlMs), Buffer.from(encodeServer(server))];
    for (const worker of server.workers) args.push(worker.taskId, Buffer.from(encodeWorker(server, worker)));
    await register(redis, SERVERS_KEY, keys[0], ttlMs);
    await register(redis, WORKERS_KEY, keys[1], ttlMs);
    await redis.run(ANNOUNCE_SERVER, keys, args);
  },

  async withdrawServer(redis, { host, pid, id }) {
    await withdraw(redis, SERVERS_KEY, serverKey(host, pid, id));
    await withdraw(redis, WORKERS_KEY, workersKey(host, pid, id));
  },

  async servers(redis) {
    const names = await alive(redis, SERVERS_KEY);
    return (await Promise.all(names.map((name) => readServer(redis, name)))).flat();
  },

  async announceScheduler(redis, id, read, ttlMs) {
    const entries = read().map((entry) => Buffer.from(encodeScheduleEntry(entry)));
    const key = schedulerKey(id);
    await register(redis, SCHEDULERS_KEY, key, ttlMs);
    await redis.run(ANNOUNCE_SCHEDULER, [key], [secondsUp(ttlMs), ...entries]);
  },

  withdrawScheduler: (redis, id) => withdraw(redis, SCHEDULERS_KEY, schedulerKey(id)),

  async scheduleEntries(redis) {
    const names = await alive(redis, SCHEDULERS_KEY);
    const lists = await Promise.all(
      names.map((name) => redis.send((client) => client.lrangeBuffer(name, '0', '-1'))),
    );
    return lists.flatMap((list) => readable(list.reverse(), decodeScheduleEntry));
  },

  async recordEnqueueEvent(redis, entryId, event) {
    const bytes = Buffer.from(encodeEnqueueEvent(event));
    const args = [secondsDown(event.atMs), bytes, EVENTS_KEPT, secondsUp(HISTORY_KEPT_MS)];
    await redis.run(RECORD_EVENT, [schedulerHistoryKey(entryId)], args);
  },

  async enqueueEvents(redis, entryId, page) {
    const [first, last] = [String((page.page - 1) * page.size), String(page.page * page.size - 1)];
    const key = schedulerHistoryKey(entryId);
    const events = await redis.send((client) => client.zrevrangeBuffer(key, first, last));
    return readable(events, decodeEnqueueEvent);
  },
} satisfies RedisOperations;

/** Returns the keys that have not expired. It only reads: the next announcement removes the others. */
function alive(redis: RedisAccess, registry: string): Promise<string[]> {
  const nowS = secondsDown(redis.wallNowMs);
  return redis.send((client) => client.zrangebyscore(registry, nowS, '+inf'));
}

async function register(redis: RedisAccess, registry: string, key: string, ttlMs: number): Promise<void> {
  const nowMs = redis.wallNowMs;
  await redis.send((client) =>
    Promise.all([
      client.zadd(registry, secondsUp(nowMs + ttlMs), key),
      client.zremrangebyscore(registry, '-inf', secondsDown(nowMs) - 1),
    ]),
  );
}

async function withdraw(redis: RedisAccess, registry: string, key: string): Promise<void> {
  await redis.send((client) => Promise.all([client.zrem(registry, key), client.del(key)]));
}

/** Returns one server; none if it has expired in the meantime. */
async function readServer(redis: RedisAccess, name: string): Promise<ServerState[]> {
  const workersName = name.replace(SERVERS_KEY, WORKERS_KEY);
  const [info, rows] = await redis.send((client) =>
    Promise.all([client.getBuffer(name), client.hvalsBuffer(workersName)]),
  );
  const workers = readable(rows, decodeWorker);
  return readable(info === null ? [] : [info], decodeServer).map((server) => ({ ...server, workers }));
}

/** A message that cannot be decoded, because a later version wrote it, does not hide the others. */
function readable<T>(messages: readonly Buffer[], decode: (message: Uint8Array) => T): T[] {
  return messages.flatMap((message) => {
    try {
      return [decode(message)];
    } catch (error) {
      if (hasCode(error, 'ERR_WIRE_MESSAGE')) return [];
      throw error;
    }
  });
}
