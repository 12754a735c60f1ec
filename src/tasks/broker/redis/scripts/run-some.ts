import { Script } from '../script.ts';
import { TAKE_SOME } from './parts.ts';

/**
 * Makes the first tasks of a state pending. Ids that have no task are dropped.
 *
 * KEYS  1 LIST or ZSET they are in  2 SET groups  3 LIST pending
 * ARGV  1 their state  2 how many  3 their group or nothing  4 prefix of tasks  5 now, in nanoseconds  6 channel of work
 *
 * Returns how many were taken.
 */
export const RUN_SOME = new Script(`${TAKE_SOME}
local waiting = redis.call('LLEN', KEYS[3])
local ids = take(KEYS[1], ARGV[1], tonumber(ARGV[2]))
if ARGV[3] ~= '' and redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SREM', KEYS[2], ARGV[3]) end
for _, id in ipairs(ids) do
  local task = ARGV[4] .. id
  if redis.call('HEXISTS', task, 'msg') == 1 then
    redis.call('LPUSH', KEYS[3], id)
    redis.call('HSET', task, 'state', 'pending', 'pending_since', ARGV[5])
  end
end
if #ids > 0 and waiting == 0 then redis.pcall('PUBLISH', ARGV[6], '') end
return #ids
`);
