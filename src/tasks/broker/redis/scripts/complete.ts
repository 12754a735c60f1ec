import { Script } from '../script.ts';
import { COUNT, FREE_LOCK, HOLDS } from './parts.ts';

/**
 * Tasks are done: retained as completed, or gone. Those whose lease is lost stay as they are.
 *
 * KEYS  1 LIST active  2 ZSET lease  3 ZSET completed  4 STRING processed  5 STRING processed today
 * ARGV  1 prefix of tasks  2 when today's count expires  3 channel of settled tasks
 *       5 for each task: id, epoch, lock or nothing, when its retention is over or nothing, msg if it is retained
 *
 * Returns 1 for each that is done, 0 for each that is lost.
 */
export const COMPLETE = new Script(`${FREE_LOCK}${HOLDS}${COUNT}
local ACTIVE, LEASE, COMPLETED, TASK = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local outcomes, seen, done = {}, {}, {}
for i = 4, #ARGV, 5 do
  local id = ARGV[i]
  local isDone = not seen[id] and holds(TASK .. id, LEASE, id, ARGV[i + 1])
  if isDone then
    seen[id] = true
    done[#done + 1] = i
  end
  outcomes[#outcomes + 1] = isDone and 1 or 0
end
if #done == 0 then return outcomes end
local ids = {}
for n, i in ipairs(done) do
  local id, score = ARGV[i], ARGV[i + 3]
  ids[n] = id
  redis.call('LREM', ACTIVE, 1, id)
  if score ~= '' then
    redis.call('ZADD', COMPLETED, score, id)
    redis.call('HSET', TASK .. id, 'msg', ARGV[i + 4], 'state', 'completed')
    redis.call('HDEL', TASK .. id, 'x:lease')
  else
    redis.call('DEL', TASK .. id)
  end
  freeLock(ARGV[i + 2], id)
end
redis.call('ZREM', LEASE, unpack(ids))
count(KEYS[4], KEYS[5], #done, ARGV[2])
redis.call('PUBLISH', ARGV[3], table.concat(ids, '\\0'))
return outcomes
`);
