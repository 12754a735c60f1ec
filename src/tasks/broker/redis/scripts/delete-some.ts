import { Script } from '../script.ts';
import { FREE_LOCK, GROUP_NAMES, TAKE_SOME } from './parts.ts';

/**
 * Removes the first tasks of a state, with their locks. Ids that have no task, or one in another state, are dropped.
 *
 * KEYS  1 LIST or ZSET they are in  2 SET groups
 * ARGV  1 their state  2 how many  3 their group or nothing  4 prefix of tasks  5 channel of settled tasks
 *
 * Returns how many were taken.
 */
export const DELETE_SOME = new Script(`${FREE_LOCK}${GROUP_NAMES}${TAKE_SOME}
needSource(KEYS[1], ARGV[1])
need('set', KEYS[2])
local ids = take(KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[4], ARGV[3], function(task, id)
  freeLockOf(task, id)
  redis.call('DEL', task)
end)
if #ids > 0 then redis.pcall('PUBLISH', ARGV[5], table.concat(ids, '\\0')) end
return #ids
`);
