import { Script } from '../script.ts';

/**
 * Checks whether groups that are registered have tasks, or scheduled tasks that are to come into them, and removes the names of
 * those that do not.
 *
 * KEYS  1 SET groups
 * ARGV  1 prefix of the queue's keys  2 1 to remove  3 and on: groups
 *
 * Returns the groups that have none.
 */
export const CHECK_GROUPS = new Script(`
local PREFIX = ARGV[1]
need('set', KEYS[1])
local function isExpected(group)
  local ids = redis.pcall('SRANDMEMBER', PREFIX .. 'x:later:' .. group, 1000)
  for _, id in ipairs(ids) do
    local task = readTask(PREFIX .. 't:' .. id, 'msg', 'state', 'group')
    if task[2] == 'scheduled' and task[3] == group then return true end
  end
  return false
end
local reply = {}
for i = 3, #ARGV do
  local group = ARGV[i]
  local isEmpty = redis.call('EXISTS', PREFIX .. 'g:' .. group) == 0
  if isEmpty and redis.call('SISMEMBER', KEYS[1], group) == 1 and not isExpected(group) then
    reply[#reply + 1] = group
    if ARGV[2] == '1' then
      redis.call('SREM', KEYS[1], group)
      redis.call('DEL', PREFIX .. 'x:later:' .. group)
    end
  end
end
return reply
`);
