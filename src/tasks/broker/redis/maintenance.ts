import { requireIntegerAtLeast } from '../../../core/validate.ts';
import { FREE_LOCK, GROUP_NAMES, TRIM } from './lua.ts';
import type { RedisAccess } from './redis-access.ts';
import { Script } from './script.ts';
import { listOf, nanosOf, numberOf, secondsDown, secondsUp } from './script-values.ts';
import { archiveLimits } from './settle.ts';

/**
 * Moves due tasks to the pending list, or into their group, whose name is added: asynq leaves it out, and no server aggregates
 * such a group until a new task enters it. Ids without a task, or whose task is elsewhere, are dropped.
 *
 * KEYS[1]  ZSET scheduled
 * KEYS[2]  ZSET retry
 * KEYS[3]  LIST pending
 * KEYS[4]  SET groups
 * ARGV[1]  now
 * ARGV[2]  now, in nanoseconds
 * ARGV[3]  score in a group
 * ARGV[4]  prefix of tasks
 * ARGV[5]  prefix of groups
 * ARGV[6]  number of tasks
 * ARGV[7]  channel of work
 *
 * Returns the number of tasks that were moved, and the number of ids that were read: there may be more if that is ARGV[6].
 */
export const FORWARD = new Script(`${GROUP_NAMES}
local SOURCES, PENDING, GROUPS, TASK, GROUP = { 'scheduled', 'retry' }, KEYS[3], KEYS[4], ARGV[4], ARGV[5]
local limit = tonumber(ARGV[6])
local due = {}
for source, state in ipairs(SOURCES) do
  local ids = {}
  if need('zset', KEYS[source]) > 0 then
    ids = redis.call('ZRANGEBYSCORE', KEYS[source], '-inf', ARGV[1], 'LIMIT', 0, limit - #due)
  end
  for _, id in ipairs(ids) do
    local task = readTask(TASK .. id, 'msg', 'state', 'group')
    local group = task[1] and task[2] == state and task[3] or ''
    if group ~= '' then need('zset', GROUP .. group) end
    due[#due + 1] = { id = id, task = task, source = source, state = state, group = group }
  end
end
if #due == 0 then return { 0, 0 } end
need('set', GROUPS)
local isIdle = need('list', PENDING) == 0
local moved, pushed, grown = 0, 0, {}
local function move(id, group, state)
  moved = moved + 1
  if group ~= '' then
    redis.call('ZADD', GROUP .. group, ARGV[3], id)
    redis.call('SADD', GROUPS, group)
    redis.call('HSET', TASK .. id, 'state', 'aggregating')
    if state == 'scheduled' then leaveLater(prefixOf(TASK), group, id) end
    grown[group] = true
  else
    redis.call('LPUSH', PENDING, id)
    redis.call('HSET', TASK .. id, 'state', 'pending', 'pending_since', ARGV[2])
    pushed = pushed + 1
  end
end
for _, one in ipairs(due) do
  redis.call('ZREM', KEYS[one.source], one.id)
  if one.task[1] and one.task[2] == one.state then move(one.id, one.group, one.state)
  elseif isGhost(one.task) then redis.call('DEL', TASK .. one.id) end
end
if pushed > 0 and isIdle then redis.pcall('PUBLISH', ARGV[7], '') end
for group in pairs(grown) do redis.pcall('PUBLISH', ARGV[7], group) end
return { moved, #due }
`);

/**
 * Removes completed tasks whose retention has ended, and archived ones that are too old or too many.
 *
 * KEYS[1]  ZSET completed
 * KEYS[2]  ZSET archived
 * ARGV[1]  now
 * ARGV[2]  prefix of tasks
 * ARGV[3]  number of tasks
 * ARGV[4]  tasks that were archived by then are given up
 * ARGV[5]  number of tasks that the archive keeps
 * ARGV[6]  channel of settled tasks
 *
 * Returns the number of tasks that were removed.
 */
export const DELETE_EXPIRED = new Script(`${FREE_LOCK}${TRIM}
local completed, archived = need('zset', KEYS[1]), need('zset', KEYS[2])
local limit, ids = tonumber(ARGV[3]), {}
if completed > 0 then ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, limit) end
giveUp(KEYS[1], 'completed', ARGV[2], ids)
if #ids > 0 then redis.pcall('PUBLISH', ARGV[6], table.concat(ids, '\\0')) end
if archived == 0 then return #ids end
return #ids + trim(KEYS[2], ARGV[2], ARGV[4], tonumber(ARGV[5]), limit - #ids)
`);

/** What one script moves at most: some milliseconds in which Redis does nothing else. */
const TASKS_PER_SCRIPT = 500;

/** The earliest first. O(due tasks). */
export async function forward(redis: RedisAccess, queues: readonly string[]): Promise<number> {
  const counts = await Promise.all([...new Set(queues)].map((queue) => forwardQueue(redis, queue)));
  return counts.reduce((sum, count) => sum + count, 0);
}

async function forwardQueue(redis: RedisAccess, queue: string): Promise<number> {
  const { scheduled, retry, pending, groups, taskPrefix, groupPrefix, workChannel } = redis.keysOf(queue);
  const keys = [scheduled, retry, pending, groups];
  let count = 0;
  for (let read = TASKS_PER_SCRIPT; read === TASKS_PER_SCRIPT;) {
    const nowMs = redis.wallNowMs;
    const times = [secondsDown(nowMs), nanosOf(nowMs), secondsUp(nowMs)];
    const args = [...times, taskPrefix, groupPrefix, TASKS_PER_SCRIPT, workChannel];
    const reply = listOf(await redis.run(FORWARD, keys, args));
    count += numberOf(reply[0]);
    read = numberOf(reply[1]);
  }
  return count;
}

export async function deleteExpired(
  redis: RedisAccess,
  queues: readonly string[],
  limit: number,
): Promise<number> {
  requireIntegerAtLeast('limit', 1, limit);
  let count = 0;
  for (const queue of new Set(queues)) {
    const { completed, archived, taskPrefix, settledChannel } = redis.keysOf(queue);
    const nowMs = redis.wallNowMs;
    const args = [secondsDown(nowMs), taskPrefix, limit, ...archiveLimits(redis, nowMs), settledChannel];
    count += numberOf(await redis.run(DELETE_EXPIRED, [completed, archived], args));
  }
  return count;
}
