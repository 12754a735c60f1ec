import { Script } from '../script.ts';
import { FREE_LOCK, GROUP_NAMES, LEAVE, TRIM } from './parts.ts';

/**
 * Archives a task by hand, and frees its lock; not an active one, and none that is being aggregated.
 *
 * KEYS  1 to 7 see LEAVE in parts.ts  8 HASH of the task
 * ARGV  1 prefix of groups  2 id  3 now  4 prefix of tasks  5 what was archived until then is given up
 *       6 how many the archive keeps  7 channel of settled tasks
 *
 * Returns 1 if it was done, 0 if there is no such task, or the state that does not allow it.
 */
export const ARCHIVE_TASK = new Script(`${FREE_LOCK}${TRIM}${GROUP_NAMES}${LEAVE}
local TASK, id = KEYS[8], ARGV[2]
need('hash', TASK)
local task = redis.call('HMGET', TASK, 'msg', 'state', 'group')
if not task[1] then return 0 end
if task[2] == 'active' or task[2] == 'archived' then return task[2] end
if task[2] == 'aggregating' and isHeld(id) then return 'being aggregated' end
needPlaces(task[2], task[3])
redis.call('ZADD', ZSETS.archived, ARGV[3], id)
leave(id, task[2], task[3])
redis.call('HSET', TASK, 'state', 'archived')
freeLockOf(TASK, id)
trim(ZSETS.archived, ARGV[4], ARGV[5], tonumber(ARGV[6]), 1000)
redis.pcall('PUBLISH', ARGV[7], id)
return 1
`);
