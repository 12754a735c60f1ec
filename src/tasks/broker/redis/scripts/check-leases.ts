import { Script } from '../script.ts';

/**
 * Looks whether active tasks are leased, and lets those that are not be recovered.
 *
 * KEYS  1 ZSET lease
 * ARGV  1 prefix of tasks  2 when their lease has ended  3 1 to repair  4 and on: ids
 *
 * Returns the ids of those that are not.
 */
export const CHECK_LEASES = new Script(`
need('zset', KEYS[1])
local reply = {}
for i = 4, #ARGV do
  local id = ARGV[i]
  local task = readTask(ARGV[1] .. id, 'msg', 'state')
  if task[1] and task[2] == 'active' and not redis.call('ZSCORE', KEYS[1], id) then
    reply[#reply + 1] = id
    if ARGV[3] == '1' then redis.call('ZADD', KEYS[1], ARGV[2], id) end
  end
end
return reply
`);
