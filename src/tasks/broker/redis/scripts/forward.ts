import { Script } from '../script.ts';
import { GROUP_NAMES } from './parts.ts';

/**
 * What is due becomes pending, or comes into its group, whose name is added then (B2). Ids that have no task, or one that is in
 * another place, are dropped.
 *
 * KEYS  1 ZSET scheduled  2 ZSET retry  3 LIST pending  4 SET groups
 * ARGV  1 now  2 now, in nanoseconds  3 when it came into its group  4 prefix of tasks  5 prefix of groups
 *       6 how many  7 channel of work
 *
 * Returns how many were moved, and how many were looked at: if that is all that was asked for, there may be more.
 */
export const FORWARD = new Script(`${GROUP_NAMES}
local SOURCES, PENDING, GROUPS, TASK, GROUP = { 'scheduled', 'retry' }, KEYS[3], KEYS[4], ARGV[4], ARGV[5]
local limit = tonumber(ARGV[6])
local due = {}
for source, state in ipairs(SOURCES) do
  local ids = {}
  if need('zset', KEYS[source]) > 0 then
    ids = redis.call('ZRANGEBYSCORE', KEYS[source], '-inf', ARGV[1], 'LIMIT', 0, limit - #due)
  end
  for _, id in ipairs(ids) do
    local task = readTask(TASK .. id, 'msg', 'state', 'group')
    local group = task[1] and task[2] == state and task[3] or ''
    if group ~= '' then need('zset', GROUP .. group) end
    due[#due + 1] = { id = id, task = task, source = source, state = state, group = group }
  end
end
if #due == 0 then return { 0, 0 } end
need('set', GROUPS)
local isIdle = need('list', PENDING) == 0
local moved, pushed, grown = 0, 0, {}
local function move(id, group, state)
  moved = moved + 1
  if group ~= '' then
    redis.call('ZADD', GROUP .. group, ARGV[3], id)
    redis.call('SADD', GROUPS, group)
    redis.call('HSET', TASK .. id, 'state', 'aggregating')
    if state == 'scheduled' then leaveLater(prefixOf(TASK), group, id) end
    grown[group] = true
  else
    redis.call('LPUSH', PENDING, id)
    redis.call('HSET', TASK .. id, 'state', 'pending', 'pending_since', ARGV[2])
    pushed = pushed + 1
  end
end
for _, one in ipairs(due) do
  redis.call('ZREM', KEYS[one.source], one.id)
  if one.task[1] and one.task[2] == one.state then move(one.id, one.group, one.state)
  elseif isGhost(one.task) then redis.call('DEL', TASK .. one.id) end
end
if pushed > 0 and isIdle then redis.pcall('PUBLISH', ARGV[7], '') end
for group in pairs(grown) do redis.pcall('PUBLISH', ARGV[7], group) end
return { moved, #due }
`);
