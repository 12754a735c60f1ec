import { Script } from '../script.ts';
import { FREE_LOCK, TAKE_SOME } from './parts.ts';

/**
 * Removes tasks of a queue that is to be removed, in whatever state, with their locks; nothing if it has active ones.
 *
 * KEYS  1 LIST active  2 LIST pending  3 ZSET scheduled  4 ZSET retry  5 ZSET archived  6 ZSET completed  7 SET groups
 *       8 ZSET of sets
 * ARGV  1 prefix of groups  2 prefix of tasks  3 how many  4 channel of settled tasks
 *
 * Returns how many are gone, -1 if the queue has active ones.
 */
export const CLEAR_SOME = new Script(`${FREE_LOCK}${TAKE_SOME}
if redis.call('LLEN', KEYS[1]) > 0 then return -1 end
local left, gone = tonumber(ARGV[3]), {}
local function clear(key, state)
  if left == 0 then return end
  local ids = take(key, state, left)
  for _, id in ipairs(ids) do
    freeLockOf(ARGV[2] .. id, id)
    redis.call('DEL', ARGV[2] .. id)
    gone[#gone + 1] = id
  end
  left = left - #ids
end
clear(KEYS[2], 'pending')
for i = 3, 6 do clear(KEYS[i], 'zset') end
while left > 0 and redis.call('SCARD', KEYS[7]) > 0 do
  for _, group in ipairs(redis.call('SRANDMEMBER', KEYS[7], left)) do
    clear(ARGV[1] .. group, 'zset')
    if redis.call('EXISTS', ARGV[1] .. group) == 0 then redis.call('SREM', KEYS[7], group) end
  end
end
for _, set in ipairs(redis.call('ZRANGE', KEYS[8], 0, -1)) do
  clear(set, 'zset')
  if redis.call('EXISTS', set) == 0 then redis.call('ZREM', KEYS[8], set) end
end
if #gone > 0 then redis.pcall('PUBLISH', ARGV[4], table.concat(gone, '\\0')) end
return #gone
`);
