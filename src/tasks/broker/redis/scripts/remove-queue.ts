import { Script } from '../script.ts';

/**
 * Removes what is left of a queue that has no tasks any more: its counts, its pause, its ticks and what else we keep (B14).
 *
 * KEYS  1 LIST active  2 LIST pending  3 ZSET scheduled  4 ZSET retry  5 ZSET archived  6 ZSET completed  7 SET groups
 *       8 ZSET of sets  9 and on: all other keys
 * ARGV  1 prefix of groups  2 SET of all queues, unless that is on another node  3 the queue's name
 *
 * Returns how many active tasks it has, and how many in all: it is gone if that is none.
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
