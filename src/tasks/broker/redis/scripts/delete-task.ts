import { Script } from '../script.ts';
import { FREE_LOCK, GROUP_NAMES, LEAVE } from './parts.ts';

/**
 * Removes a task by hand, with its lock; not an active one, and none that is being aggregated.
 *
 * KEYS  1 to 7 see LEAVE in parts.ts  8 HASH of the task
 * ARGV  1 prefix of groups  2 id  3 channel of settled tasks
 *
 * Returns 1 if it was done, 0 if there is no such task, or the state that does not allow it.
 */
export const DELETE_TASK = new Script(`${FREE_LOCK}${GROUP_NAMES}${LEAVE}
local TASK, id = KEYS[8], ARGV[2]
need('hash', TASK)
local task = redis.call('HMGET', TASK, 'msg', 'state', 'group')
if not task[1] then return 0 end
if task[2] == 'active' then return 'active' end
if task[2] == 'aggregating' and isHeld(id) then return 'being aggregated' end
needPlaces(task[2], task[3])
leave(id, task[2], task[3])
freeLockOf(TASK, id)
redis.call('DEL', TASK)
redis.pcall('PUBLISH', ARGV[3], id)
return 1
`);
