import { queueNotEmpty, queueNotFound, queueState } from '../broker-errors.ts';
import { placesOf, requireQueue } from './inspection.ts';
import { QUEUES_KEY, type QueueKeys } from './keys.ts';
import { FREE_LOCK } from './lua.ts';
import type { RedisAccess } from './redis-access.ts';
import { Script } from './script.ts';
import { listOf, numberOf, secondsDown } from './script-values.ts';

/* What an inspector does to a whole queue. */

/**
 * Pauses a queue. A queue that was removed in the meantime does not come back paused.
 *
 * KEYS[1]  STRING paused
 * KEYS[2]  SET of all queues; absent in a cluster, where it is on another node
 * ARGV[1]  now
 * ARGV[2]  name of the queue
 *
 * Returns 1, 0 if it is already paused, or -1 if there is no such queue.
 */
export const PAUSE = new Script(`
if KEYS[2] then need('set', KEYS[2]) end
if KEYS[2] and redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 0 then return -1 end
return redis.call('SETNX', KEYS[1], ARGV[1])
`);

/**
 * Ends a pause.
 *
 * KEYS[1]  STRING paused
 * KEYS[2]  LIST pending
 * ARGV[1]  channel of work
 *
 * Returns 1, or 0 if it is not paused.
 */
export const RESUME = new Script(`
local waiting = need('list', KEYS[2])
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
if waiting > 0 then redis.pcall('PUBLISH', ARGV[1], '') end
return 1
`);

/**
 * Removes some tasks of a queue in any state, with their locks; none if it has active tasks.
 *
 * KEYS[1]  LIST active
 * KEYS[2]  LIST pending
 * KEYS[3]  ZSET scheduled
 * KEYS[4]  ZSET retry
 * KEYS[5]  ZSET archived
 * KEYS[6]  ZSET completed
 * KEYS[7]  SET groups
 * KEYS[8]  ZSET of sets
 * ARGV[1]  prefix of groups
 * ARGV[2]  prefix of tasks
 * ARGV[3]  number of tasks
 * ARGV[4]  channel of settled tasks
 *
 * Returns the number of tasks that were removed, or -1 if the queue has active tasks.
 */
export const CLEAR_SOME = new Script(`${FREE_LOCK}
local PENDING, GROUPS, SETS, GROUP, TASK = KEYS[2], KEYS[7], KEYS[8], ARGV[1], ARGV[2]
local LATER = string.sub(GROUP, 1, -3) .. 'x:later:'
local limit = tonumber(ARGV[3])
if need('list', KEYS[1]) > 0 then return -1 end
need('list', PENDING)
need('zset', KEYS[3], KEYS[4], KEYS[5], KEYS[6], SETS)
need('set', GROUPS)
local groups = redis.call('SRANDMEMBER', GROUPS, limit)
local sets = redis.call('ZRANGE', SETS, 0, limit - 1)
for _, group in ipairs(groups) do need('zset', GROUP .. group) end
for _, set in ipairs(sets) do need('zset', set) end
local gone = {}
local function remove(ids)
  for _, id in ipairs(ids) do
    freeLockOf(TASK .. id, id)
    redis.call('DEL', TASK .. id)
    gone[#gone + 1] = id
  end
end
local function clear(zset)
  local ids = redis.call('ZRANGE', zset, 0, limit - #gone - 1)
  if #gone == limit or #ids == 0 then return end
  redis.call('ZREMRANGEBYRANK', zset, 0, #ids - 1)
  remove(ids)
end
local ids = redis.call('LRANGE', PENDING, -limit, -1)
redis.call('LTRIM', PENDING, 0, -limit - 1)
remove(ids)
for i = 3, 6 do clear(KEYS[i]) end
for _, group in ipairs(groups) do
  clear(GROUP .. group)
  if redis.call('EXISTS', GROUP .. group, KEYS[3]) == 0 then
    redis.call('SREM', GROUPS, group)
    redis.call('DEL', LATER .. group)
  end
end
for _, set in ipairs(sets) do
  clear(set)
  if redis.call('EXISTS', set) == 0 then redis.call('ZREM', SETS, set) end
end
if #gone > 0 then redis.pcall('PUBLISH', ARGV[4], table.concat(gone, '\\0')) end
return #gone
`);

/**
 * Removes a queue without tasks, with every key that it has: counts, pause, ticks. asynq leaves some of them behind.
 *
 * KEYS[1…8]  those of CLEAR_SOME
 * KEYS[9…]   all other keys of the queue
 * ARGV[1]    prefix of groups
 * ARGV[2]    SET of all queues; '' in a cluster, where it is on another node
 * ARGV[3]    name of the queue
 *
 * Returns the number of active tasks and of all tasks: the queue was removed if there are none.
 */
export const REMOVE_QUEUE = new Script(`
local active = need('list', KEYS[1])
local size = active + need('list', KEYS[2])
local groups = need('set', KEYS[7]) > 0 and redis.call('SMEMBERS', KEYS[7]) or {}
for i = 3, 6 do size = size + need('zset', KEYS[i]) end
for _, group in ipairs(groups) do size = size + need('zset', ARGV[1] .. group) end
need('zset', KEYS[8])
for _, set in ipairs(redis.call('ZRANGE', KEYS[8], 0, -1)) do size = size + need('zset', set) end
if ARGV[2] ~= '' then need('set', ARGV[2]) end
if size == 0 then
  local LATER = string.sub(ARGV[1], 1, -3) .. 'x:later:'
  for _, group in ipairs(groups) do redis.call('DEL', LATER .. group) end
  redis.call('DEL', unpack(KEYS))
  if ARGV[2] ~= '' then redis.call('SREM', ARGV[2], ARGV[3]) end
end
return { active, size }
`);

/** What one script removes at most: some milliseconds in which Redis does nothing else. */
const TASKS_PER_SCRIPT = 500;

const DAY_MS = 86_400_000;
/** Days whose counts are kept, and one for a process whose clock is ahead. */
const DAYS_COUNTED = 91;

export async function pause(redis: RedisAccess, queue: string): Promise<void> {
  await requireQueue(redis, queue);
  const { paused } = redis.keysOf(queue);
  const keys = redis.isCluster ? [paused] : [paused, QUEUES_KEY];
  const reply = await redis.run(PAUSE, keys, [secondsDown(redis.wallNowMs), queue]);
  if (reply === -1) throw queueNotFound(queue);
  if (reply !== 1) throw queueState(queue, 'paused already');
}

export async function resume(redis: RedisAccess, queue: string): Promise<void> {
  await requireQueue(redis, queue);
  const { paused, pending, workChannel } = redis.keysOf(queue);
  const reply = await redis.run(RESUME, [paused, pending], [workChannel]);
  if (reply !== 1) throw queueState(queue, 'not paused');
}

/** Removes the tasks first, in pieces: an interruption leaves a queue with fewer tasks, and no other trace. */
export async function removeQueue(redis: RedisAccess, queue: string, force: boolean): Promise<void> {
  const keys = redis.keysOf(queue);
  await requireQueue(redis, queue);
  const places = placesOf(keys);
  const all = [...places, ...otherKeys(redis, keys)];
  for (;;) {
    if (force) await clear(redis, keys, places, queue);
    const args = [keys.groupPrefix, redis.isCluster ? '' : QUEUES_KEY, queue];
    const [active = 0, size = 0] = listOf(await redis.run(REMOVE_QUEUE, all, args)).map(numberOf);
    if (size === 0) break;
    if (active > 0) throw queueNotEmpty(queue, 'active tasks');
    if (!force) throw queueNotEmpty(queue, `${size} tasks`);
  }
  if (redis.isCluster) await unregister(redis, queue, places);
}

/** In a cluster this is a separate step. A task that was added in between registers the queue again. */
async function unregister(redis: RedisAccess, queue: string, places: readonly string[]): Promise<void> {
  await redis.send((client) => client.srem(QUEUES_KEY, queue));
  const isThere = await redis.send((client) => client.exists(...places));
  if (isThere > 0) await redis.send((client) => client.sadd(QUEUES_KEY, queue));
}

async function clear(
  redis: RedisAccess,
  { groupPrefix, taskPrefix, settledChannel }: QueueKeys,
  places: readonly string[],
  queue: string,
): Promise<void> {
  for (;;) {
    const args = [groupPrefix, taskPrefix, TASKS_PER_SCRIPT, settledChannel];
    const removed = numberOf(await redis.run(CLEAR_SOME, places, args));
    if (removed < 0) throw queueNotEmpty(queue, 'active tasks');
    if (removed < TASKS_PER_SCRIPT) return;
  }
}

function otherKeys(redis: RedisAccess, keys: QueueKeys): string[] {
  const others = [keys.lease, keys.paused, keys.processed, keys.failed, keys.epoch, keys.ticks];
  const nowMs = redis.wallNowMs;
  for (let daysAgo = -1; daysAgo <= DAYS_COUNTED; daysAgo++) {
    const ms = nowMs - daysAgo * DAY_MS;
    others.push(keys.processedOn(ms), keys.failedOn(ms));
  }
  return others;
}
