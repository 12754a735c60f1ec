import { Script } from '../script.ts';

/**
 * Some groups of a queue, and how many tasks each has.
 *
 * KEYS  1 SET groups
 * ARGV  1 prefix of groups  2 cursor, 0 at first  3 about how many
 *
 * Returns the next cursor, 0 at the end; name and size of each that has tasks. One may be seen twice.
 */
export const LIST_GROUPS = new Script(`
local found = redis.call('SSCAN', KEYS[1], ARGV[2], 'COUNT', ARGV[3])
local reply = { found[1] }
for _, group in ipairs(found[2]) do
  local size = redis.call('ZCARD', ARGV[1] .. group)
  if size > 0 then
    reply[#reply + 1] = group
    reply[#reply + 1] = size
  end
end
return reply
`);
