import { Script } from '../script.ts';
import { ADD_TASK } from './add-task.ts';
import { FREE_LOCK } from './parts.ts';

/**
 * The tasks of a set are gone, with their locks, and one stands for them: both, or neither.
 *
 * KEYS, ARGV 1 to 6  see add-task.ts
 * ARGV  7 to 12 the new task, as in enqueue.ts  13 the set  14 ZSET of sets  15 channel of settled tasks
 *       2 for each task of the set that has one: id, lock
 *
 * The keys 13 and 14 are among the arguments, because the last of KEYS may be missing. They are of the queue as well.
 *
 * Returns what became of the new one, or nil if the set is no longer held.
 */
export const REPLACE_SET = new Script(`${FREE_LOCK}${ADD_TASK}
local SET, id, lock = ARGV[13], ARGV[7], ARGV[11]
if not redis.call('ZSCORE', ARGV[14], SET) then return nil end
local members = redis.call('ZRANGE', SET, 0, -1)
if #members == 0 then return nil end
local leaving = {}
for _, member in ipairs(members) do leaving[member] = true end
local owner = lock ~= '' and redis.call('GET', lock)
if owner and not leaving[owner] then return owner end
if not leaving[id] and redis.call('EXISTS', TASK .. id) == 1 then return 0 end
for i = 16, #ARGV, 2 do
  if leaving[ARGV[i]] then freeLock(ARGV[i + 1], ARGV[i]) end
end
for _, member in ipairs(members) do
  freeLockOf(TASK .. member, member)
  redis.call('DEL', TASK .. member)
end
redis.call('DEL', SET)
redis.call('ZREM', ARGV[14], SET)
local outcome = add(id, ARGV[8], ARGV[9], ARGV[10], lock, ARGV[12])
finish()
redis.call('PUBLISH', ARGV[15], table.concat(members, '\\0'))
return outcome
`);
