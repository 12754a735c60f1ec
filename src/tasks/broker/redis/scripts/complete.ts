import { Script } from '../script.ts';
import { COUNT, FREE_LOCK } from './parts.ts';

/**
 * Tasks are done: retained as completed, or gone. Those whose lease is lost stay as they are; see parts.ts for what a lease is.
 *
 * KEYS  1 prefix of the queue's keys; see add-task.ts
 * ARGV  1 today, as counts have it  2 when today's count expires
 *       5 for each task: id, epoch, lock or nothing, when its retention is over or nothing, msg if it is retained
 *
 * Returns 1 for each that is done, 0 for each that is lost.
 */
export const COMPLETE = new Script(`${FREE_LOCK}${COUNT}
local PREFIX = KEYS[1]
local ACTIVE, LEASE, COMPLETED = PREFIX .. 'active', PREFIX .. 'lease', PREFIX .. 'completed'
local TASK, PROCESSED = PREFIX .. 't:', PREFIX .. 'processed'
local TODAY = PROCESSED .. ':' .. ARGV[1]
need('zset', LEASE)
need('list', ACTIVE)
need('string', PROCESSED, TODAY)
local asked, isRetained = {}, false
for i = 3, #ARGV, 5 do
  asked[#asked + 1] = ARGV[i]
  if ARGV[i + 3] ~= '' then isRetained = true end
end
if isRetained then need('zset', COMPLETED) end
local scores = redis.call('ZMSCORE', LEASE, unpack(asked))
local outcomes, seen, done, ids, gone = {}, {}, {}, {}, {}
for n, id in ipairs(asked) do
  local i = 5 * n - 2
  local tag = scores[n] and ARGV[i + 1] .. ':' .. scores[n]
  local isDone = tag and not seen[id] and redis.pcall('HGET', TASK .. id, 'x:lease') == tag
  if isDone then
    seen[id] = true
    done[#done + 1] = i
    ids[#ids + 1] = id
  end
  outcomes[n] = isDone and 1 or 0
end
if #done == 0 then return outcomes end
for _, i in ipairs(done) do
  local id, score = ARGV[i], ARGV[i + 3]
  redis.call('LREM', ACTIVE, 1, id)
  if score ~= '' then
    redis.call('ZADD', COMPLETED, score, id)
    redis.call('HSET', TASK .. id, 'msg', ARGV[i + 4], 'state', 'completed')
    redis.call('HDEL', TASK .. id, 'x:lease')
  else
    gone[#gone + 1] = TASK .. id
  end
  freeLock(ARGV[i + 2], id)
end
redis.call('ZREM', LEASE, unpack(ids))
if #gone > 0 then redis.call('DEL', unpack(gone)) end
count(PROCESSED, TODAY, #done, ARGV[2])
redis.pcall('PUBLISH', PREFIX .. 'x:settled', table.concat(ids, '\\0'))
return outcomes
`);
