import { Script } from '../script.ts';
import { FREE_LOCK, TAKE_SOME } from './parts.ts';

/**
 * Removes the first tasks of a state, with their locks.
 *
 * KEYS  1 LIST or ZSET they are in  2 SET groups
 * ARGV  1 their state  2 how many  3 their group or nothing  4 prefix of tasks  5 channel of settled tasks
 *
 * Returns how many it was done to.
 */
export const DELETE_SOME = new Script(`${FREE_LOCK}${TAKE_SOME}
local ids = take(KEYS[1], ARGV[1], tonumber(ARGV[2]))
if ARGV[3] ~= '' and redis.call('EXISTS', KEYS[1]) == 0 then redis.call('SREM', KEYS[2], ARGV[3]) end
for _, id in ipairs(ids) do
  freeLockOf(ARGV[4] .. id, id)
  redis.call('DEL', ARGV[4] .. id)
end
if #ids > 0 then redis.pcall('PUBLISH', ARGV[5], table.concat(ids, '\\0')) end
return #ids
`);
