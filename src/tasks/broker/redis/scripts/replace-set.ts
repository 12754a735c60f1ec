import { Script } from '../script.ts';
import { ADD_TASK } from './add-task.ts';
import { FREE_LOCK } from './parts.ts';

/**
 * The tasks of a set are gone, with their locks, and one stands for them: both, or neither.
 *
 * KEYS, ARGV 1  see add-task.ts
 * ARGV  2 to 7 the new task, as in enqueue.ts  8 the set  2 for each task of the set that has one: id, lock
 *
 * Returns what became of the new one, or nil if the set is no longer held.
 */
export const REPLACE_SET = new Script(`${FREE_LOCK}${ADD_TASK}
local SETS, SET, id, lock = PREFIX .. 'aggregation_sets', ARGV[8], ARGV[2], ARGV[6]
need('zset', SETS, SET)
if not redis.call('ZSCORE', SETS, SET) then return nil end
local members = redis.call('ZRANGE', SET, 0, -1)
if #members == 0 then return nil end
local wrong = damage(ARGV[4], ARGV[5])
if wrong then return wrong end
local leaving = {}
for _, member in ipairs(members) do leaving[member] = true end
if lock ~= '' then need('string', lock) end
local owner = lock ~= '' and redis.call('GET', lock)
if owner and not leaving[owner] then return owner end
if not leaving[id] and redis.call('EXISTS', TASK .. id) == 1 then return 0 end
for i = 9, #ARGV, 2 do
  if leaving[ARGV[i]] then freeLock(ARGV[i + 1], ARGV[i]) end
end
for _, member in ipairs(members) do
  freeLockOf(TASK .. member, member)
  redis.call('DEL', TASK .. member)
end
redis.call('DEL', SET)
redis.call('ZREM', SETS, SET)
local outcome = add(id, ARGV[3], ARGV[4], ARGV[5], lock, ARGV[7])
finish()
redis.pcall('PUBLISH', PREFIX .. 'x:settled', table.concat(members, '\\0'))
return outcome
`);
