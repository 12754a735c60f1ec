import { Script } from '../script.ts';
import { FREE_LOCK, TAKE_SOME, TRIM } from './parts.ts';

/**
 * Archives the first tasks of a state, and frees their locks. Ids that have no task are dropped.
 *
 * KEYS  1 LIST or ZSET they are in  2 SET groups  3 ZSET archived
 * ARGV  1 their state  2 how many  3 their group or nothing  4 prefix of tasks  5 now  6 what was archived until then is
 *       given up  7 how many the archive keeps  8 channel of settled tasks
 *
 * Returns how many were taken.
 */
export const ARCHIVE_SOME = new Script(`${FREE_LOCK}${TRIM}${TAKE_SOME}
local limit = tonumber(ARGV[2])
redis.call('ZCARD', KEYS[3])
local ids = take(KEYS[1], ARGV[1], limit)
if ARGV[3] ~= '' and redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SREM', KEYS[2], ARGV[3]) end
for _, id in ipairs(ids) do
  local task = ARGV[4] .. id
  if redis.call('HEXISTS', task, 'msg') == 1 then
    redis.call('ZADD', KEYS[3], ARGV[5], id)
    redis.call('HSET', task, 'state', 'archived')
    freeLockOf(task, id)
  end
end
trim(KEYS[3], ARGV[4], ARGV[6], tonumber(ARGV[7]), limit)
if #ids > 0 then redis.pcall('PUBLISH', ARGV[8], table.concat(ids, '\\0')) end
return #ids
`);
