import { Script } from '../script.ts';
import { FREE_LOCK } from './parts.ts';

/**
 * Removes tasks of a queue that is to be removed, in whatever state, with their locks; nothing if it has active ones.
 *
 * KEYS  1 LIST active  2 LIST pending  3 ZSET scheduled  4 ZSET retry  5 ZSET archived  6 ZSET completed  7 SET groups
 *       8 ZSET of sets
 * ARGV  1 prefix of groups  2 prefix of tasks  3 how many  4 channel of settled tasks
 *
 * Returns how many are gone, -1 if the queue has active ones.
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
