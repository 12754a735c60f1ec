import { Script } from '../script.ts';

/**
 * Looks whether tasks are where their state says, and puts those that are nowhere there.
 *
 * KEYS  1 LIST pending  2 LIST active  3 ZSET lease  4 ZSET scheduled  5 ZSET retry  6 ZSET archived  7 ZSET completed
 *       8 SET groups  9 ZSET of sets
 * ARGV  1 prefix of tasks  2 prefix of groups  3 now  4 1 to repair  5 and on: ids
 *
 * Returns id, what it is, and where: 1 it has no message, 2 it is in no list, 3 its group is not listed.
 */
export const CHECK_TASKS = new Script(`
local TASK, GROUP, NOW, isRepaired = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1'
local LISTS = { pending = KEYS[1], active = KEYS[2] }
local ZSETS = { scheduled = KEYS[4], retry = KEYS[5], archived = KEYS[6], completed = KEYS[7] }
need('list', KEYS[1], KEYS[2])
need('zset', KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[9])
need('set', KEYS[8])
local reply, tasks = {}, {}
local sets = redis.call('ZRANGE', KEYS[9], 0, -1)
for _, set in ipairs(sets) do need('zset', set) end
local function tell(id, what, where)
  local at = #reply
  reply[at + 1], reply[at + 2], reply[at + 3] = id, what, where
  return isRepaired
end
local function isHeld(id)
  for _, set in ipairs(sets) do
    if redis.call('ZSCORE', set, id) then return true end
  end
  return false
end
local function checkGroup(id, group)
  local key = GROUP .. group
  if redis.call('ZSCORE', key, id) then
    if redis.call('SISMEMBER', KEYS[8], group) == 0 and tell(id, 3, group) then redis.call('SADD', KEYS[8], group) end
  elseif not isHeld(id) and tell(id, 2, '') then
    redis.call('ZADD', key, NOW, id)
    redis.call('SADD', KEYS[8], group)
  end
end
local function check(id, task)
  local state = task[2]
  if not task[1] then
    if redis.call('EXISTS', TASK .. id) == 1 and tell(id, 1, '') then redis.call('DEL', TASK .. id) end
  elseif state == 'aggregating' then
    checkGroup(id, task[3] or '')
  elseif LISTS[state] then
    if redis.call('LPOS', LISTS[state], id) or not tell(id, 2, '') then return end
    redis.call('LPUSH', LISTS[state], id)
    if state == 'active' then redis.call('ZADD', KEYS[3], 'NX', NOW, id) end
  elseif not (ZSETS[state] and redis.call('ZSCORE', ZSETS[state], id)) and tell(id, 2, '') then
    redis.call('ZADD', ZSETS[state] or ZSETS.archived, NOW, id)
    if not ZSETS[state] then redis.call('HSET', TASK .. id, 'state', 'archived') end
  end
end
for i = 5, #ARGV do
  local task = readTask(TASK .. ARGV[i], 'msg', 'state', 'group')
  if task[2] == 'aggregating' then need('zset', GROUP .. (task[3] or '')) end
  tasks[i] = task
end
for i = 5, #ARGV do check(ARGV[i], tasks[i]) end
return reply
`);
