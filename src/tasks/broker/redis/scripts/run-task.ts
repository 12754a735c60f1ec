import { Script } from '../script.ts';
import { GROUP_NAMES, LEAVE } from './parts.ts';

/**
 * Makes a task pending by hand; not an active one, and none that is being aggregated.
 *
 * KEYS  1 to 7 see LEAVE in parts.ts  8 HASH of the task
 * ARGV  1 prefix of groups  2 id  3 now, in nanoseconds  4 channel of work
 *
 * Returns 1 if it was done, 0 if there is no such task, or the state that does not allow it.
 */
export const RUN_TASK = new Script(`${GROUP_NAMES}${LEAVE}
local TASK, id = KEYS[8], ARGV[2]
need('hash', TASK)
local task = redis.call('HMGET', TASK, 'msg', 'state', 'group')
if not task[1] then return 0 end
if task[2] == 'active' or task[2] == 'pending' then return task[2] end
if task[2] == 'aggregating' and isHeld(id) then return 'being aggregated' end
needPlaces(task[2], task[3])
local waiting = redis.call('LPUSH', PENDING, id)
leave(id, task[2], task[3])
redis.call('HSET', TASK, 'state', 'pending', 'pending_since', ARGV[3])
if waiting == 1 then redis.pcall('PUBLISH', ARGV[4], '') end
return 1
`);
