import { Script } from '../script.ts';

/**
 * Looks whether who holds a lock is still there, and not over, and frees it otherwise.
 *
 * KEYS  locks
 * ARGV  1 prefix of tasks  2 1 to free
 *
 * Returns the lock and the id of who holds it, for each that is held by nobody.
 */
export const CHECK_LOCKS = new Script(`
local reply = {}
for _, lock in ipairs(KEYS) do
  local id = redis.pcall('GET', lock)
  local isLock = type(id) == 'string'
  local state = isLock and readTask(ARGV[1] .. id, 'state')[1]
  if isLock and (not state or state == 'completed' or state == 'archived') then
    reply[#reply + 1] = lock
    reply[#reply + 1] = id
    if ARGV[2] == '1' then redis.call('DEL', lock) end
  end
end
return reply
`);
