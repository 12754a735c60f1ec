import { Script } from '../script.ts';
import { ADD_TASK } from './add-task.ts';

/**
 * Adds the task of a tick, unless that tick or a later one was added. A task that is refused has used it up.
 *
 * KEYS, ARGV 1  see add-task.ts
 * ARGV  2 to 7 the task, as in enqueue.ts  8 key of the entry  9 the tick, in milliseconds
 *
 * Returns what became of it, or nil.
 */
export const ENQUEUE_TICK = new Script(`${ADD_TASK}
local TICKS = PREFIX .. 'x:ticks'
local last = redis.call('HGET', TICKS, ARGV[8])
if last and tonumber(last) >= tonumber(ARGV[9]) then return nil end
redis.call('HSET', TICKS, ARGV[8], ARGV[9])
local outcome = add(ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7])
finish()
return outcome
`);
