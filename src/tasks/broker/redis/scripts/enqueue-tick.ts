import { Script } from '../script.ts';
import { ADD_TASK } from './add-task.ts';

/**
 * Adds the task of a tick, unless that tick or a later one was added. A task that is refused has used it up. A tick, or the
 * mark of a later one, that is too far ahead of the time is not believed. Each tick also looks at some marks of other entries,
 * and removes those of entries that have not ticked for long: in the end all of them, however many there are.
 *
 * KEYS, ARGV 1  see add-task.ts
 * ARGV  2 to 7 the task, as in enqueue.ts  8 key of the entry  9 the tick, in milliseconds
 *       10 the time, in milliseconds, or nothing for that of Redis  11 how far ahead of it a tick may be  12 … and a mark
 *       13 how long a mark is kept after its tick, in milliseconds
 *
 * Returns what became of it, nil if another one has added it, or -1 if it is too far ahead.
 */
export const ENQUEUE_TICK = new Script(`${ADD_TASK}
local TICKS = PREFIX .. 'x:ticks'
need('hash', TICKS)
if ARGV[6] ~= '' then need('string', ARGV[6]) end
local wrong = damage(ARGV[4], ARGV[5])
if wrong then return wrong end
local time = redis.call('TIME')
local now = tonumber(ARGV[10]) or time[1] * 1000 + time[2] / 1000
local last, tick = tonumber(redis.call('HGET', TICKS, ARGV[8]) or ''), tonumber(ARGV[9])
if tick > now + ARGV[11] then return -1 end
if last and last >= tick and last <= now + ARGV[12] then return nil end
redis.call('HSET', TICKS, ARGV[8], ARGV[9])
redis.call('PEXPIRE', TICKS, ARGV[13])
local oldest = math.min(now, tick) - ARGV[13]
local marks = redis.call('HRANDFIELD', TICKS, 10, 'WITHVALUES')
for i = 1, #marks, 2 do
  if (tonumber(marks[i + 1]) or 0) < oldest then redis.call('HDEL', TICKS, marks[i]) end
end
local outcome = add(ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7])
finish()
return outcome
`);
