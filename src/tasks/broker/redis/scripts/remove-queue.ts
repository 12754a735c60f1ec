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
local active = redis.call('LLEN', KEYS[1])
local size = active + redis.call('LLEN', KEYS[2])
for i = 3, 6 do size = size + redis.call('ZCARD', KEYS[i]) end
for _, group in ipairs(redis.call('SMEMBERS', KEYS[7])) do size = size + redis.call('ZCARD', ARGV[1] .. group) end
for _, set in ipairs(redis.call('ZRANGE', KEYS[8], 0, -1)) do size = size + redis.call('ZCARD', set) end
if size == 0 then
  redis.call('DEL', unpack(KEYS))
  if ARGV[2] ~= '' then redis.call('SREM', ARGV[2], ARGV[3]) end
end
return { active, size }
`);
