import { Script } from '../script.ts';

/**
 * A queue, in numbers. What it takes is estimated from the first tasks of each state, as asynq does.
 *
 * KEYS  1 LIST active  2 LIST pending  3 ZSET scheduled  4 ZSET retry  5 ZSET archived  6 ZSET completed  7 SET groups
 *       8 ZSET of sets  9 STRING processed today  10 STRING failed today  11 STRING processed  12 STRING failed
 *       13 STRING paused
 * ARGV  1 prefix of tasks  2 prefix of groups  3 tasks that are looked at in each state, and groups
 *
 * Returns the counts by state in the order of the keys 1 to 6, aggregating, groups, since when the next one has waited,
 * bytes, the counts of the keys 9 to 12, and whether it is paused.
 */
export const QUEUE_STATS = new Script(`
local TASK, GROUP, sample = ARGV[1], ARGV[2], tonumber(ARGV[3])
local bytes = 0
need('list', KEYS[1], KEYS[2])
need('zset', KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[8])
need('set', KEYS[7])
need('string', KEYS[9], KEYS[10], KEYS[11], KEYS[12])
local function weigh(key, size, ids)
  local sum = 0
  for _, id in ipairs(ids) do sum = sum + (redis.call('MEMORY', 'USAGE', TASK .. id) or 0) end
  if #ids > 0 then bytes = bytes + sum / #ids * size + (redis.call('MEMORY', 'USAGE', key) or 0) end
end
local reply = {}
for i = 1, 6 do
  local size
  if i <= 2 then
    size = redis.call('LLEN', KEYS[i])
    weigh(KEYS[i], size, redis.call('LRANGE', KEYS[i], -sample, -1))
  else
    size = redis.call('ZCARD', KEYS[i])
    weigh(KEYS[i], size, redis.call('ZRANGE', KEYS[i], 0, sample - 1))
  end
  reply[i] = size
end
local aggregating, groups = 0, 0
local before, weighed, inWeighed = bytes, 0, 0
local function addUp(key)
  local size = need('zset', key)
  if size > 0 and weighed < sample then
    weigh(key, size, redis.call('ZRANGE', key, 0, sample - 1))
    weighed, inWeighed = weighed + 1, inWeighed + size
  end
  aggregating = aggregating + size
  return size
end
for _, group in ipairs(redis.call('SMEMBERS', KEYS[7])) do
  if addUp(GROUP .. group) > 0 then groups = groups + 1 end
end
for _, set in ipairs(redis.call('ZRANGE', KEYS[8], 0, -1)) do addUp(set) end
if inWeighed > 0 then bytes = before + (bytes - before) / inWeighed * aggregating end
local head = redis.call('LINDEX', KEYS[2], -1)
reply[7], reply[8] = aggregating, groups
reply[9] = head and readTask(TASK .. head, 'pending_since')[1] or 0
reply[10] = bytes
for i = 9, 12 do reply[i + 2] = redis.call('GET', KEYS[i]) or 0 end
reply[15] = redis.call('EXISTS', KEYS[13])
return reply
`);
