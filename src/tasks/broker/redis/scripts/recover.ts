import { Script } from '../script.ts';
import { NEXT_EPOCH } from './parts.ts';

/**
 * Leases tasks anew whose lease ended long ago, and active ones that have none (B3). Leases of what is not active, and active
 * ids that have no task, are dropped.
 *
 * KEYS  1 LIST active  2 ZSET lease  3 STRING epoch
 * ARGV  1 leases that ended until then  2 when the new ones end  3 prefix of tasks  4 how many, a thousand at most
 *       5 bytes after which no more are taken
 *
 * Returns as dequeue.ts.
 */
export const RECOVER = new Script(`${NEXT_EPOCH}
local ACTIVE, LEASE, TASK, limit, PIECE = KEYS[1], KEYS[2], ARGV[3], tonumber(ARGV[4]), 1000
need('list', ACTIVE)
need('zset', LEASE)
local ids, seen = {}, {}
local function find(id)
  if not seen[id] and #ids < limit then ids[#ids + 1] = id end
  seen[id] = true
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', LEASE, '-inf', ARGV[1], 'LIMIT', 0, limit)) do find(id) end
local active = redis.call('LRANGE', ACTIVE, 0, -1)
for first = 1, #active, PIECE do
  if #ids >= limit then break end
  local some = { unpack(active, first, math.min(first + PIECE - 1, #active)) }
  local scores = redis.call('ZMSCORE', LEASE, unpack(some))
  for n, id in ipairs(some) do if not scores[n] then find(id) end end
end
if #ids == 0 then return {} end
local epoch = nextEpoch(KEYS[3])
local reply, count, bytes = { epoch, #ids == limit and 1 or 0 }, 0, tonumber(ARGV[5])
for _, id in ipairs(ids) do
  if bytes <= 0 then
    reply[2] = 1
    break
  end
  local task = readTask(TASK .. id, 'msg', 'x:recoveries', 'state')
  redis.call('LREM', ACTIVE, 0, id)
  if task[1] and task[3] == 'active' then
    redis.call('LPUSH', ACTIVE, id)
    redis.call('ZADD', LEASE, ARGV[2], id)
    redis.call('HSET', TASK .. id, 'x:lease', whole(epoch + count) .. ':' .. ARGV[2])
    count = count + 1
    bytes = bytes - #task[1]
    local at = #reply
    reply[at + 1], reply[at + 2], reply[at + 3] = id, task[1], task[2] or 0
  else
    redis.call('ZREM', LEASE, id)
    if isGhost(task) then redis.call('DEL', TASK .. id) end
  end
end
if count > 0 then redis.call('SET', KEYS[3], whole(epoch + count - 1)) end
return reply
`);
