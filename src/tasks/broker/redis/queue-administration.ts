import { DAY_MS, utcDay } from '../../../core/units.ts';
import { HISTORY_DAYS } from '../broker-settings.ts';
import { queueNotEmpty, queueNotFound, queueState } from '../broker-errors.ts';
import { requireQueue } from './inspection.ts';
import { QUEUES_KEY } from './keys.ts';
import type { RedisAccess, RedisOperations } from './redis-access.ts';
import { itemsOf, numberOf, Script, secondsDown } from './script.ts';

/**
 * Pauses a queue. A queue that was removed in the meantime does not come back paused.
 *
 * KEYS[2]  SET of all queues; see RedisAccess.keysWithQueues
 * ARGV[1]  now
 *
 * Returns 1, 0 if it is already paused, or -1 if there is no such queue.
 */
export const PAUSE = new Script(`
if KEYS[2] then need('set', KEYS[2]) end
if KEYS[2] and redis.call('SISMEMBER', KEYS[2], queueName()) == 0 then return -1 end
return redis.call('SETNX', PAUSED, ARGV[1])
`);

/** Ends a pause. Returns 1, or 0 if it is not paused. */
export const RESUME = new Script(`
local size = need('list', PENDING) + need('list', RING) + need('zset', PARKED)
if redis.call('DEL', PAUSED) == 0 then return 0 end
if size > 0 then redis.pcall('PUBLISH', WORK, '') end
return 1
`);

/**
 * Removes some tasks of a queue in any state, with their locks; none if it has active tasks.
 *
 * ARGV[1]  number of tasks
 *
 * Returns the number of tasks that were removed, or -1 if the queue has active tasks.
 */
export const CLEAR_SOME = new Script(`
local ZSETS, limit = { SCHEDULED, RETRY, ARCHIVED, COMPLETED }, tonumber(ARGV[1])
if need('list', ACTIVE) > 0 then return -1 end
need('list', PENDING)
need('zset', SETS, unpack(ZSETS))
need('set', GROUPS)
needFlow()
local groups = redis.call('SRANDMEMBER', GROUPS, limit)
local sets = redis.call('ZRANGE', SETS, 0, limit - 1)
for _, group in ipairs(groups) do need('zset', GROUP .. group) end
for _, set in ipairs(sets) do need('zset', set) end
local removed = {}
local function remove(ids)
  for _, id in ipairs(ids) do
    freeLockOf(id)
    redis.call('DEL', TASK .. id)
    removed[#removed + 1] = id
  end
end
local function clear(zset)
  local ids = redis.call('ZRANGE', zset, 0, limit - #removed - 1)
  if #removed == limit or #ids == 0 then return end
  redis.call('ZREMRANGEBYRANK', zset, 0, #ids - 1)
  remove(ids)
end
remove(takePending(limit))
for _, zset in ipairs(ZSETS) do clear(zset) end
for _, group in ipairs(groups) do
  clear(GROUP .. group)
  if redis.call('EXISTS', GROUP .. group, SCHEDULED) == 0 then
    redis.call('SREM', GROUPS, group)
    redis.call('DEL', LATER .. group)
  end
end
for _, set in ipairs(sets) do
  clear(set)
  if redis.call('EXISTS', set) == 0 then redis.call('ZREM', SETS, set) end
end
if #removed > 0 then redis.pcall('PUBLISH', SETTLED, table.concat(removed, '\\0')) end
return #removed
`);

/**
 * Removes a queue without tasks, with every key that it has: counts, pause, ticks, limits. asynq leaves some of them behind.
 *
 * KEYS[2]   SET of all queues; see RedisAccess.keysWithQueues
 * ARGV[1…]  days that may have counts, as in the keys of counts
 *
 * Returns the number of active tasks and of all tasks: the queue was removed if there are none.
 */
export const REMOVE_QUEUE = new Script(`
local ZSETS = { SCHEDULED, RETRY, ARCHIVED, COMPLETED }
local active = need('list', ACTIVE)
needFlow()
local waiting = tonumber(redis.call('GET', WAITING)) or 0
local size = active + need('list', PENDING) + math.max(waiting, redis.call('HLEN', FIRSTS) - redis.call('HEXISTS', FIRSTS, ''))
local groups = need('set', GROUPS) > 0 and redis.call('SMEMBERS', GROUPS) or {}
for _, zset in ipairs(ZSETS) do size = size + need('zset', zset) end
for _, group in ipairs(groups) do size = size + need('zset', GROUP .. group) end
need('zset', SETS)
for _, set in ipairs(redis.call('ZRANGE', SETS, 0, -1)) do size = size + need('zset', set) end
if KEYS[2] then need('set', KEYS[2]) end
if size > 0 then return { active, size } end
for _, group in ipairs(groups) do redis.call('DEL', LATER .. group) end
for _, day in ipairs(ARGV) do redis.call('DEL', PROCESSED .. ':' .. day, FAILED .. ':' .. day) end
redis.call('DEL', ACTIVE, PENDING, GROUPS, SETS, LEASE, PAUSED, PROCESSED, FAILED, EPOCH, TICKS, unpack(ZSETS))
redis.call('DEL', LIMITS, WAITING, FIRSTS, RING, PARKED, RUNS, RATES)
if KEYS[2] then redis.call('SREM', KEYS[2], queueName()) end
return { 0, 0 }
`);

/** What one script removes at most: some milliseconds in which Redis does nothing else. */
const TASKS_PER_SCRIPT = 500;

/** Days that may have counts: from tomorrow, for a process whose clock is ahead, to a day that is certainly too old. */
const DAYS_COUNTED = HISTORY_DAYS + 3;

export const QUEUE_ADMINISTRATION = {
  async pause(redis, queue) {
    await requireQueue(redis, queue);
    const reply = await redis.run(PAUSE, redis.keysWithQueues(queue), [secondsDown(redis.wallNowMs)]);
    if (reply === -1) throw queueNotFound(queue);
    if (reply !== 1) throw queueState(queue, 'paused already');
  },

  async resume(redis, queue) {
    await requireQueue(redis, queue);
    if ((await redis.runIn(queue, RESUME, [])) !== 1) throw queueState(queue, 'not paused');
  },

  /** Removes the tasks first, in pieces: an interruption leaves a queue with fewer tasks, and no other trace. */
  async removeQueue(redis, queue, { force }) {
    await requireQueue(redis, queue);
    const nowMs = redis.wallNowMs;
    const days = Array.from({ length: DAYS_COUNTED }, (_, at) => utcDay(nowMs + (1 - at) * DAY_MS));
    for (;;) {
      if (force) await clear(redis, queue);
      const reply = itemsOf(await redis.run(REMOVE_QUEUE, redis.keysWithQueues(queue), days));
      const [active = 0, size = 0] = reply.map(numberOf);
      if (size === 0) break;
      if (active > 0) throw queueNotEmpty(queue, 'active');
      if (!force) throw queueNotEmpty(queue, size);
    }
    if (redis.isCluster) await unregister(redis, queue);
    redis.forget(queue);
  },
} satisfies RedisOperations;

/** In a cluster this is a separate step. A task that was added in between registers the queue again. */
async function unregister(redis: RedisAccess, queue: string): Promise<void> {
  const keys = redis.keysOf(queue);
  const lists = [keys.active, keys.pending, keys.scheduled, keys.retry, keys.archived, keys.completed];
  lists.push(keys.groups, keys.aggregationSets, keys.limits, keys.waiting);
  await redis.send((client) => client.srem(QUEUES_KEY, queue));
  const isThere = await redis.send((client) => client.exists(...lists));
  if (isThere > 0) await redis.send((client) => client.sadd(QUEUES_KEY, queue));
}

async function clear(redis: RedisAccess, queue: string): Promise<void> {
  for (let removed = TASKS_PER_SCRIPT; removed === TASKS_PER_SCRIPT;) {
    removed = numberOf(await redis.runIn(queue, CLEAR_SOME, [TASKS_PER_SCRIPT]));
    if (removed < 0) throw queueNotEmpty(queue, 'active');
  }
}
