import { Script } from '../script.ts';

/**
 * The groups of a queue, and how many tasks each has.
 *
 * KEYS  1 SET groups
 * ARGV  1 prefix of groups
 *
 * Returns name and size of each that has tasks.
 */
export const LIST_GROUPS = new Script(`
local reply = {}
for _, group in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local size = redis.call('ZCARD', ARGV[1] .. group)
  if size > 0 then
    reply[#reply + 1] = group
    reply[#reply + 1] = size
  end
end
return reply
`);
