import type { LeasedTask } from '../broker.ts';
import { FLOW_KNOWN_MS, takeSome } from './dequeue.ts';
import type { RedisAccess, RedisOperations } from './redis-access.ts';
import { itemsOf, nanosOf, numberOf, secondsDown, secondsUp } from './replies.ts';
import { MOST_CHANGED, MOST_READ, MOST_REPLY_BYTES, NEXT_EPOCH, Script } from './script.ts';
import { archiveLimits } from './settle.ts';

/**
 * Moves due tasks to the pending list, or into their group, whose name is added: asynq leaves it out, and no server aggregates
 * such a group until a new task enters it. Ids without a task, or whose task is elsewhere, are dropped.
 *
 * ARGV[1]  now
 * ARGV[2]  now, in nanoseconds
 * ARGV[3]  score in a group
 * ARGV[4]  number of tasks
 *
 * Returns the number of tasks that were moved, and the number of ids that were read: there may be more if that is ARGV[4].
 */
export const FORWARD = new Script(`
local limit, due = tonumber(ARGV[4]), {}
for _, state in ipairs({ 'scheduled', 'retry' }) do
  local source, ids = PREFIX .. state, {}
  if need('zset', source) > 0 then
    ids = redis.call('ZRANGEBYSCORE', source, '-inf', ARGV[1], 'LIMIT', 0, limit - #due)
  end
  for _, id in ipairs(ids) do
    local task = readTask(id, 'msg', 'state', 'group')
    local group = task[1] and task[2] == state and task[3] or ''
    if group ~= '' then need('zset', GROUP .. group) end
    due[#due + 1] = { id = id, task = task, source = source, state = state, group = group }
  end
end
if #due == 0 then return { 0, 0 } end
need('set', GROUPS)
- local isIdle = need('list', PENDING) == 0
+ need('list', PENDING, ACTIVE)
+ needFlow()
local moved, pushed, grown = 0, 0, {}
local function move(id, group, state)
  moved = moved + 1
  if group ~= '' then
    redis.call('ZADD', GROUP .. group, ARGV[3], id)
    redis.call('SADD', GROUPS, group)
    redis.call('HSET', TASK .. id, 'state', 'aggregating')
    if state == 'scheduled' then leaveLater(group, id) end
    grown[group] = true
  else
-     redis.call('LPUSH', PENDING, id)
+     enter(id, readTask(id, 'x:key')[1] or '', false)
    makePending(id, ARGV[2])
    pushed = pushed + 1
  end
end
for _, one in ipairs(due) do
  redis.call('ZREM', one.source, one.id)
  if one.task[1] and one.task[2] == one.state then move(one.id, one.group, one.state)
  elseif isGhost(one.task) then redis.call('DEL', TASK .. one.id) end
end
- if pushed > 0 and isIdle then redis.pcall('PUBLISH', WORK, '') end
+ finishEntering()
for group in pairs(grown) do redis.pcall('PUBLISH', WORK, group) end
return { moved, #due }
`);

/**
 * `freeLostPlaces()`: frees the places of tasks that have no lease: a Go server, which has no places, has recovered them. It
 * checks a thousand runs.
 */
const LOST_PLACES = `
+ local function freeLostPlaces()
+   local members = redis.call('ZRANDMEMBER', RUNS, 1000)
+   if #members == 0 then return end
+   local ids, keys, lost, lostKeys, ended = {}, {}, {}, {}, {}
+   for i, member in ipairs(members) do keys[i], ids[i] = splitMember(member) end
+   local scores = redis.call('ZMSCORE', LEASE, unpack(ids))
+   for i, id in ipairs(ids) do
+     if not scores[i] then
+       local at = #lost + 1
+       lost[at], lostKeys[at], ended[at] = id, keys[i], members[i]
+     end
+   end
+   if #lost == 0 then return end
+   redis.call('ZREM', RUNS, unpack(ended)) -- with what is no run, which another program has written
+   freePlaces(lost, lostKeys)
+ end
`;

/**
 * Lets parked keys enter the ring that no limit holds back: a process that changed the limits has been killed before it had moved all of
 * them. It checks a thousand keys.
 */
const FREE_KEYS = `
+ local function freeKeys()
+   local size = redis.call('LLEN', RING)
+   writeAnyway(PARKED)
+   checkParked(redis.call('ZRANDMEMBER', PARKED, 1000))
+   wake(size)
+ end
`;

/**
 * Leases tasks again whose lease ended long ago, and active ones without a lease, which asynq's recoverer never finds because it
 * reads only the leases. Leases of tasks that are not active, and active ids without a task, are dropped.
 *
 * ARGV[1]  number of tasks, at most 1000
 * ARGV[2]  when the new leases end
 * ARGV[3]  bytes after which no more tasks are taken
 * ARGV[4]  leases that ended by then
 *
 * Returns what DEQUEUE returns.
 */
export const RECOVER = new Script(`${LOST_PLACES}${FREE_KEYS}${NEXT_EPOCH}
local limit, score, bytes, PIECE = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), 1000
need('list', ACTIVE)
need('zset', LEASE)
+ needFlow()
+ freeLostPlaces()
+ freeKeys()
local ids, seen = {}, {}
local function find(id)
  if not seen[id] and #ids < limit then ids[#ids + 1] = id end
  seen[id] = true
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', LEASE, '-inf', ARGV[4], 'LIMIT', 0, limit)) do find(id) end
local active = redis.call('LRANGE', ACTIVE, 0, -1)
for first = 1, #active, PIECE do
  if #ids >= limit then break end
  local some = { unpack(active, first, math.min(first + PIECE - 1, #active)) }
  local scores = redis.call('ZMSCORE', LEASE, unpack(some))
  for n, id in ipairs(some) do if not scores[n] then find(id) end end
end
if #ids == 0 then return {} end
local epoch = nextEpoch()
local reply, count = { epoch, #ids == limit and 1 or 0 }, 0
for _, id in ipairs(ids) do
  if bytes <= 0 then
    reply[2] = 1
    break
  end
  local task = readTask(id, 'msg', 'x:recoveries', 'state')
  redis.call('LREM', ACTIVE, 0, id)
  if task[1] and task[3] == 'active' then
    redis.call('LPUSH', ACTIVE, id)
    redis.call('ZADD', LEASE, score, id)
    redis.call('HSET', TASK .. id, 'x:lease', whole(epoch + count) .. ':' .. score)
+     takePlace(id, readTask(id, 'x:key')[1]) -- a Go server has not given it one
    count = count + 1
    bytes = bytes - #task[1]
    local at = #reply
    reply[at + 1], reply[at + 2], reply[at + 3] = id, task[1], task[2] or 0
  else
    redis.call('ZREM', LEASE, id)
    if isGhost(task) then redis.call('DEL', TASK .. id) end
  end
end
if count > 0 then redis.call('SET', EPOCH, whole(epoch + count - 1)) end
return reply
`);

/**
 * Removes completed tasks whose retention has ended, and archived ones that are too old or too many.
 *
 * ARGV[1]  now
 * ARGV[2]  number of tasks
 * ARGV[3]  tasks that were archived by then are given up
 * ARGV[4]  number of tasks that the archive keeps
 *
 * Returns the number of tasks that were removed.
 */
export const DELETE_EXPIRED = new Script(`
local completed, archived = need('zset', COMPLETED), need('zset', ARCHIVED)
local limit, ids = tonumber(ARGV[2]), {}
if completed > 0 then ids = redis.call('ZRANGEBYSCORE', COMPLETED, '-inf', ARGV[1], 'LIMIT', 0, limit) end
giveUp(COMPLETED, 'completed', ids)
if #ids > 0 then redis.pcall('PUBLISH', SETTLED, table.concat(ids, '\\0')) end
if archived == 0 then return #ids end
return #ids + trim(ARGV[3], tonumber(ARGV[4]), limit - #ids)
`);

export const MAINTENANCE = {
  /** The earliest first. O(due tasks). */
  async forward(redis, queues) {
    const counts = await Promise.all([...new Set(queues)].map((queue) => forwardQueue(redis, queue)));
    return counts.reduce((sum, count) => sum + count, 0);
  },

  async recover(redis, queues, graceMs, leaseMs) {
    const recovered: LeasedTask[] = [];
    for (const queue of new Set(queues)) {
      await redis.isInFlow(queue, FLOW_KNOWN_MS); // `runIn` uses it
      const some = await takeSome(redis, queue, MOST_READ, (count) => {
        const nowMs = redis.wallNowMs;
        const args = [count, secondsUp(nowMs + leaseMs), MOST_REPLY_BYTES, secondsDown(nowMs - graceMs)];
        return redis.runIn(queue, RECOVER, args);
      });
      recovered.push(...some);
    }
    return recovered;
  },

  async deleteExpired(redis, queues, limit) {
    let count = 0;
    for (const queue of new Set(queues)) {
      const nowMs = redis.wallNowMs;
      const args = [secondsDown(nowMs), limit, ...archiveLimits(redis, nowMs)];
      count += numberOf(await redis.runIn(queue, DELETE_EXPIRED, args));
    }
    return count;
  },
} satisfies RedisOperations;

async function forwardQueue(redis: RedisAccess, queue: string): Promise<number> {
  let count = 0;
  for (let read = MOST_CHANGED; read === MOST_CHANGED;) {
    const nowMs = redis.wallNowMs; // before `readFlow`: if clocks agree, a first task with a key that is enqueued later is not due by then
    if (!redis.wasInFlow(queue)) await redis.readFlow(queue);
    const args = [secondsDown(nowMs), nanosOf(nowMs), secondsUp(nowMs), MOST_CHANGED];
    const reply = itemsOf(await redis.runIn(queue, FORWARD, args));
    count += numberOf(reply[0]);
    read = numberOf(reply[1]);
  }
  return count;
}
