import { Script } from '../script.ts';
import { NEXT_EPOCH } from './parts.ts';

/**
 * Leases the first tasks of a queue, unless it is paused. Ids that have no task, or one that is leased already, are dropped:
 * to lease them would make a task of nothing (B3).
 *
 * KEYS  1 prefix of the queue's keys; see add-task.ts
 * ARGV  1 how many, a thousand at most  2 when the leases end  3 bytes after which no more are taken
 *
 * Returns the epoch of the first, and the msg and the recoveries of each: their epochs follow one another.
 */
export const DEQUEUE = new Script(`${NEXT_EPOCH}
local PREFIX, limit, score = KEYS[1], tonumber(ARGV[1]), ARGV[2]
local PENDING, ACTIVE, LEASE = PREFIX .. 'pending', PREFIX .. 'active', PREFIX .. 'lease'
local EPOCH, TASK, bytes = PREFIX .. 'x:epoch', PREFIX .. 't:', tonumber(ARGV[3])
if redis.call('EXISTS', PREFIX .. 'paused') == 1 then return {} end
local reply, ids, leases, seen = { 0 }, {}, {}, {}
while #ids < limit and bytes > 0 do
  local want = limit - #ids
  local found = redis.call('LRANGE', PENDING, -want, -1)
  if #found == 0 then break end
  local looked = 0
  for i = #found, 1, -1 do
    if bytes <= 0 then break end
    looked = looked + 1
    local id = found[i]
    local task = redis.call('HMGET', TASK .. id, 'msg', 'x:recoveries', 'state')
    local isLeased = seen[id] or (task[3] == 'active' and redis.call('ZSCORE', LEASE, id))
    if task[1] and not isLeased then
      seen[id] = true
      bytes = bytes - #task[1]
      ids[#ids + 1] = id
      leases[#leases + 1] = score
      leases[#leases + 1] = id
      reply[#reply + 1] = task[1]
      reply[#reply + 1] = task[2] or 0
    end
  end
  redis.call('LTRIM', PENDING, 0, -looked - 1)
  if #found < want then break end
end
if #ids == 0 then return {} end
local epoch = nextEpoch(EPOCH)
reply[1] = epoch
redis.call('LPUSH', ACTIVE, unpack(ids))
redis.call('ZADD', LEASE, unpack(leases))
redis.call('SET', EPOCH, whole(epoch + #ids - 1))
for i, id in ipairs(ids) do
  redis.call('HSET', TASK .. id, 'state', 'active', 'x:lease', whole(epoch + i - 1) .. ':' .. score)
  redis.call('HDEL', TASK .. id, 'pending_since')
end
return reply
`);
