import { Script } from '../script.ts';

/**
 * Looks whether ids that were seen in a list or zset belong there, and takes out those that do not. One that has left it
 * meanwhile is none of ours.
 *
 * KEYS  1 LIST or ZSET
 * ARGV  1 `list` or `zset`  2 prefix of tasks  3 the state that its tasks have  4 1 to take out  5 and on: ids
 *
 * Returns id and 1 for each that has no task, id and 2 for each whose task is in another state.
 */
export const CHECK_PLACE = new Script(`
local PLACE, isList = KEYS[1], ARGV[1] == 'list'
local function isThere(id)
  if isList then return redis.call('LPOS', PLACE, id) end
  return redis.call('ZSCORE', PLACE, id)
end
need(ARGV[1], PLACE)
local reply = {}
for i = 5, #ARGV do
  local id = ARGV[i]
  local task = readTask(ARGV[2] .. id, 'msg', 'state')
  if (not task[1] or task[2] ~= ARGV[3]) and isThere(id) then
    reply[#reply + 1] = id
    reply[#reply + 1] = task[1] and 2 or 1
    if ARGV[4] == '1' then
      if isList then redis.call('LREM', PLACE, 0, id) else redis.call('ZREM', PLACE, id) end
    end
  end
end
return reply
`);
