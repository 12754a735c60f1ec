import { Script } from '../script.ts';
import { NEXT_EPOCH } from './parts.ts';

/**
 * Leases the first tasks of a queue, unless it is paused. Ids that have no task, or one that is in another place, are dropped:
 * to lease them would make a task of nothing (B3), or run one twice.
 *
 * KEYS  1 prefix of the queue's keys; see add-task.ts
 * ARGV  1 how many, a thousand at most  2 when the leases end  3 bytes after which no more are taken
 *
 * Returns nothing if the list is empty; else the epoch of the first, 1 if there may be more, and the id, the msg and the
 * recoveries of each: their epochs follow one another.
 */
export const DEQUEUE = new Script(`${NEXT_EPOCH}
local PREFIX, limit, score = KEYS[1], tonumber(ARGV[1]), ARGV[2]
local PENDING, ACTIVE, LEASE = PREFIX .. 'pending', PREFIX .. 'active', PREFIX .. 'lease'
local EPOCH, TASK, bytes = PREFIX .. 'x:epoch', PREFIX .. 't:', tonumber(ARGV[3])
if redis.call('EXISTS', PREFIX .. 'paused') == 1 or need('list', PENDING) == 0 then return {} end
need('list', ACTIVE)
need('zset', LEASE)
local reply, ids, leases, ghosts, seen = { nextEpoch(EPOCH), 1 }, {}, {}, {}, {}
local looked, most = 0, limit + 1000
while #ids < limit and bytes > 0 and looked < most do
  local want = math.min(limit - #ids, most - looked)
  local found = redis.call('LRANGE', PENDING, -looked - want, -looked - 1)
  if #found < want then reply[2] = 0 end
  for i = #found, 1, -1 do
    if bytes <= 0 then break end
    looked = looked + 1
    local id = found[i]
    local task = readTask(TASK .. id, 'msg', 'x:recoveries', 'state')
    local isFree = task[3] == 'pending' or (task[3] == 'active' and not redis.call('ZSCORE', LEASE, id))
    if isGhost(task) then ghosts[#ghosts + 1] = TASK .. id
    elseif task[1] and isFree and not seen[id] then
      seen[id] = true
      bytes = bytes - #task[1]
      ids[#ids + 1] = id
      leases[#leases + 1] = score
      leases[#leases + 1] = id
      local at = #reply
      reply[at + 1], reply[at + 2], reply[at + 3] = id, task[1], task[2] or 0
    end
  end
  if #found < want then break end
end
if bytes <= 0 then reply[2] = 1 end
redis.call('LTRIM', PENDING, 0, -looked - 1)
if #ghosts > 0 then redis.call('DEL', unpack(ghosts)) end
if #ids == 0 then return reply end
local epoch = reply[1]
redis.call('LPUSH', ACTIVE, unpack(ids))
redis.call('ZADD', LEASE, unpack(leases))
redis.call('SET', EPOCH, whole(epoch + #ids - 1))
for i, id in ipairs(ids) do
  redis.call('HSET', TASK .. id, 'state', 'active', 'x:lease', whole(epoch + i - 1) .. ':' .. score)
  redis.call('HDEL', TASK .. id, 'pending_since')
end
return reply
`);
