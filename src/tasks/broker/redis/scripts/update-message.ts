import { Script } from '../script.ts';

/**
 * Gives a scheduled task another msg, if it still has the one that was read.
 *
 * KEYS  1 HASH of the task
 * ARGV  1 the msg that was read  2 the other one
 *
 * Returns 1 if it was done, 0 if there is no such task, -1 if its msg is another one, or the state that does not allow it.
 */
export const UPDATE_MESSAGE = new Script(`
need('hash', KEYS[1])
local task = redis.call('HMGET', KEYS[1], 'msg', 'state')
if not task[1] then return 0 end
if task[2] ~= 'scheduled' then return task[2] end
if task[1] ~= ARGV[1] then return -1 end
redis.call('HSET', KEYS[1], 'msg', ARGV[2])
return 1
`);
