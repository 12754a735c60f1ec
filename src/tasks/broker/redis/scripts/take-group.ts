import { Script } from '../script.ts';
import { GROUP_NAMES } from './parts.ts';

/**
 * Takes the oldest tasks out of a group if it is time: it has enough, its oldest has waited for too long, or nothing has come
 * for a while. Ids that have no task, or one that is in another place, are dropped.
 *
 * KEYS  1 ZSET of the group  2 ZSET of the new set  3 ZSET of sets  4 SET groups
 * ARGV  1 now  2 grace in seconds  3 how long the oldest waits, 0 for ever  4 how many are enough, 0 for no number
 *       5 how many are taken  6 until when they are held  7 name of the group  8 prefix of tasks
 *       9 bytes after which no more are taken
 *
 * Returns the seconds until it is time, or until it is time for what is left, -1 if nothing is; and id and msg of each.
 */
export const TAKE_GROUP = new Script(`${GROUP_NAMES}
local GROUP, SET, TASK = KEYS[1], KEYS[2], ARGV[8]
local now, grace, delay, enough = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
need('zset', GROUP, SET, KEYS[3])
need('set', KEYS[4])
local function due()
  local size = redis.call('ZCARD', GROUP)
  if size == 0 then return -1 end
  if enough > 0 and size >= enough then return 0 end
  local newest = tonumber(redis.call('ZRANGE', GROUP, -1, -1, 'WITHSCORES')[2])
  local wait = newest + grace - now
  if delay > 0 then
    local oldest = tonumber(redis.call('ZRANGE', GROUP, 0, 0, 'WITHSCORES')[2])
    wait = math.min(wait, oldest + delay - now)
  end
  return math.max(wait, 0)
end
local reply = { due() }
if reply[1] > 0 then return reply end
local rows = redis.call('ZRANGE', GROUP, 0, ARGV[5] - 1, 'WITHSCORES')
local bytes, looked = tonumber(ARGV[9]), 0
for i = 1, #rows, 2 do
  if bytes <= 0 then break end
  looked = looked + 1
  local id = rows[i]
  local task = readTask(TASK .. id, 'msg', 'state')
  if task[1] and task[2] == 'aggregating' then
    redis.call('ZADD', SET, rows[i + 1], id)
    bytes = bytes - #task[1]
    reply[#reply + 1] = id
    reply[#reply + 1] = task[1]
  elseif isGhost(task) then redis.call('DEL', TASK .. id) end
end
if looked > 0 then redis.call('ZREMRANGEBYRANK', GROUP, 0, looked - 1) end
if #reply > 1 then redis.call('ZADD', KEYS[3], ARGV[6], SET) end
reply[1] = due()
if reply[1] == -1 then dropGroup(prefixOf(TASK), ARGV[7]) end
return reply
`);
