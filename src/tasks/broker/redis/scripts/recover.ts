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
 * Returns the epoch of the first, and the msg and the recoveries of each: their epochs follow one another.
 */
export const RECOVER = new Script(`${NEXT_EPOCH}
local ACTIVE, LEASE, TASK, limit = KEYS[1], KEYS[2], ARGV[3], tonumber(ARGV[4])
local ids = redis.call('ZRANGEBYSCORE', LEASE, '-inf', ARGV[1], 'LIMIT', 0, limit)
for _, id in ipairs(redis.call('LRANGE', ACTIVE, 0, -1)) do
  if #ids >= limit then break end
  if not redis.call('ZSCORE', LEASE, id) then ids[#ids + 1] = id end
end
if #ids == 0 then return {} end
local epoch = nextEpoch(KEYS[3])
local reply, count, bytes = { epoch }, 0, tonumber(ARGV[5])
for _, id in ipairs(ids) do
  if bytes <= 0 then break end
  local task = redis.call('HMGET', TASK .. id, 'msg', 'x:recoveries', 'state')
  redis.call('LREM', ACTIVE, 0, id)
  if task[1] and task[3] == 'active' then
    redis.call('LPUSH', ACTIVE, id)
    redis.call('ZADD', LEASE, ARGV[2], id)
    redis.call('HSET', TASK .. id, 'x:lease', whole(epoch + count) .. ':' .. ARGV[2])
    count = count + 1
    bytes = bytes - #task[1]
    reply[#reply + 1] = task[1]
    reply[#reply + 1] = task[2] or 0
  else
    redis.call('ZREM', LEASE, id)
  end
end
if count == 0 then return {} end
redis.call('SET', KEYS[3], whole(epoch + count - 1))
return reply
`);
