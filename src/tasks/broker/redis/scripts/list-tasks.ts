import { Script } from '../script.ts';

/**
 * A part of a list, whose end comes first, or of a zset. Ids that have no task are left out.
 *
 * KEYS  1 LIST or ZSET  2 ZSET lease
 * ARGV  1 `list` or `zset`  2 the first  3 the last  4 prefix of tasks  5 1 if their leases are asked for
 *
 * Returns id, msg, result, progress, score or when the lease ends, for each.
 */
export const LIST_TASKS = new Script(`
local isList = ARGV[1] == 'list'
local first, last = tonumber(ARGV[2]), tonumber(ARGV[3])
need('zset', KEYS[2])
need(ARGV[1], KEYS[1])
local rows
if isList then rows = redis.call('LRANGE', KEYS[1], -last - 1, -first - 1)
else rows = redis.call('ZRANGE', KEYS[1], first, last, 'WITHSCORES') end
local reply = {}
local function show(id, score)
  local task = readTask(ARGV[4] .. id, 'msg', 'result', 'x:progress')
  if not task[1] then return end
  local at = #reply
  if ARGV[5] == '1' then score = redis.call('ZSCORE', KEYS[2], id) end
  reply[at + 1], reply[at + 2], reply[at + 3], reply[at + 4], reply[at + 5] = id, task[1], task[2], task[3], score
end
if isList then for i = #rows, 1, -1 do show(rows[i], false) end
else for i = 1, #rows, 2 do show(rows[i], rows[i + 1]) end end
return reply
`);
