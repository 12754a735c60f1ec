import { Script } from '../script.ts';

/**
 * Sets that were held for too long go back into their groups, whose names are added then (B2). What is registered as a set and
 * cannot be one of this queue is no longer registered.
 *
 * KEYS  1 ZSET of sets  2 SET groups
 * ARGV  1 now  2 prefix of groups  3 how many sets  4 channel of work
 *
 * Returns how many tasks, and how many sets: if that is all that was asked for, there may be more.
 */
export const RECLAIM_SETS = new Script(`
local SETS, GROUPS, GROUP = KEYS[1], KEYS[2], ARGV[2]
need('zset', SETS)
need('set', GROUPS)
local sets = redis.call('ZRANGEBYSCORE', SETS, '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
local groupOf = {}
for _, set in ipairs(sets) do
  local key = string.sub(set, 1, #GROUP) == GROUP and string.match(set, '^(.*):')
  if key and #key > #GROUP then
    need('zset', set, key)
    groupOf[set] = string.sub(key, #GROUP + 1)
  end
end
local count = 0
local function putBack(set, group)
  local rows = redis.call('ZRANGE', set, 0, -1, 'WITHSCORES')
  for i = 1, #rows, 2 do redis.call('ZADD', GROUP .. group, rows[i + 1], rows[i]) end
  redis.call('DEL', set)
  if #rows == 0 then return end
  count = count + #rows / 2
  redis.call('SADD', GROUPS, group)
  redis.pcall('PUBLISH', ARGV[4], group)
end
for _, set in ipairs(sets) do
  if groupOf[set] then putBack(set, groupOf[set]) end
  redis.call('ZREM', SETS, set)
end
return { count, #sets }
`);
