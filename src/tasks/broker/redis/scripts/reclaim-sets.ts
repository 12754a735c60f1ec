import { Script } from '../script.ts';

/**
 * Sets that were held for too long go back into their groups, which are seen then (B2).
 *
 * KEYS  1 ZSET of sets  2 SET groups
 * ARGV  1 now  2 prefix of groups  3 how many sets  4 channel of work
 *
 * Returns how many tasks, and how many sets: if that is all that was asked for, there may be more.
 */
export const RECLAIM_SETS = new Script(`
local SETS, GROUPS, GROUP = KEYS[1], KEYS[2], ARGV[2]
local sets = redis.call('ZRANGEBYSCORE', SETS, '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
local count = 0
for _, set in ipairs(sets) do
  local key = string.match(set, '^(.*):')
  local group = string.sub(key, #GROUP + 1)
  local rows = redis.call('ZRANGE', set, 0, -1, 'WITHSCORES')
  for i = 1, #rows, 2 do
    redis.call('ZADD', key, rows[i + 1], rows[i])
    count = count + 1
  end
  redis.call('DEL', set)
  redis.call('ZREM', SETS, set)
  if #rows > 0 then
    redis.call('SADD', GROUPS, group)
    redis.pcall('PUBLISH', ARGV[4], group)
  end
end
return { count, #sets }
`);
