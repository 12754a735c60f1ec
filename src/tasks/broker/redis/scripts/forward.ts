import { Script } from '../script.ts';

/**
 * What is due becomes pending, or comes into its group, which is seen then (B2). Ids that have no task are dropped.
 *
 * KEYS  1 ZSET scheduled  2 ZSET retry  3 LIST pending  4 SET groups
 * ARGV  1 now  2 now, in nanoseconds  3 when it came into its group  4 prefix of tasks  5 prefix of groups
 *       6 how many  7 channel of work
 *
 * Returns how many were moved, and how many were looked at: if that is all that was asked for, there may be more.
 */
export const FORWARD = new Script(`
local PENDING, GROUPS, TASK, GROUP = KEYS[3], KEYS[4], ARGV[4], ARGV[5]
local limit = tonumber(ARGV[6])
local waiting = redis.call('LLEN', PENDING)
local looked, moved, pushed, grown = 0, 0, 0, {}
for source = 1, 2 do
  local ids = redis.call('ZRANGEBYSCORE', KEYS[source], '-inf', ARGV[1], 'LIMIT', 0, limit - looked)
  looked = looked + #ids
  for _, id in ipairs(ids) do
    local task = redis.call('HMGET', TASK .. id, 'state', 'group')
    redis.call('ZREM', KEYS[source], id)
    if task[1] then
      moved = moved + 1
      if task[2] and task[2] ~= '' then
        redis.call('ZADD', GROUP .. task[2], ARGV[3], id)
        redis.call('SADD', GROUPS, task[2])
        redis.call('HSET', TASK .. id, 'state', 'aggregating')
        grown[task[2]] = true
      else
        redis.call('LPUSH', PENDING, id)
        redis.call('HSET', TASK .. id, 'state', 'pending', 'pending_since', ARGV[2])
        pushed = pushed + 1
      end
    end
  end
end
if pushed > 0 and waiting == 0 then redis.pcall('PUBLISH', ARGV[7], '') end
for group in pairs(grown) do redis.pcall('PUBLISH', ARGV[7], group) end
return { moved, looked }
`);
