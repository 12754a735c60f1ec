import { Script } from '../script.ts';
import { FREE_LOCK, GROUP_NAMES, TAKE_SOME, TRIM } from './parts.ts';

/**
 * Archives the first tasks of a state, and frees their locks. Ids that have no task, or one in another state, are dropped.
 *
 * KEYS  1 LIST or ZSET they are in  2 SET groups  3 ZSET archived
 * ARGV  1 their state  2 how many  3 their group or nothing  4 prefix of tasks  5 now  6 what was archived until then is
 *       given up  7 how many the archive keeps  8 channel of settled tasks
 *
 * Returns how many were taken.
 */
export const ARCHIVE_SOME = new Script(`${FREE_LOCK}${GROUP_NAMES}${TRIM}${TAKE_SOME}
local limit = tonumber(ARGV[2])
needSource(KEYS[1], ARGV[1], KEYS[3])
need('set', KEYS[2])
local ids = take(KEYS[1], ARGV[1], limit, ARGV[4], ARGV[3], function(task, id)
  redis.call('ZADD', KEYS[3], ARGV[5], id)
  redis.call('HSET', task, 'state', 'archived')
  freeLockOf(task, id)
end)
trim(KEYS[3], ARGV[4], ARGV[6], tonumber(ARGV[7]), limit)
if #ids > 0 then redis.pcall('PUBLISH', ARGV[8], table.concat(ids, '\\0')) end
return #ids
`);
