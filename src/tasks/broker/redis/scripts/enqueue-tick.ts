import { Script } from '../script.ts';
import { ADD_TASK } from './add-task.ts';

/**
 * Adds the task of a tick, unless that tick or a later one was added. A task that is refused has used it up.
 *
 * KEYS, ARGV 1 to 6  see add-task.ts
 * ARGV  7 to 12 the task, as in enqueue.ts  13 key of the entry  14 the tick, in milliseconds
 *
 * Returns what became of it, or nil.
 */
export const ENQUEUE_TICK = new Script(`${ADD_TASK}
local last = redis.call('HGET', KEYS[4], ARGV[13])
if last and tonumber(last) >= tonumber(ARGV[14]) then return nil end
redis.call('HSET', KEYS[4], ARGV[13], ARGV[14])
local outcome = add(ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11], ARGV[12])
finish()
return outcome
`);
