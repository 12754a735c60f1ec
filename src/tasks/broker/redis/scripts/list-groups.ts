import { Script } from '../script.ts';

/**
 * Some groups of a queue, and how many tasks each has.
 *
 * KEYS  1 SET groups
 * ARGV  1 prefix of groups  2 cursor, 0 at first  3 about how many
 *
 * Returns the next cursor, 0 at the end; name and size of each that has tasks. One may be seen twice.
 * A group whose key has a wrong type is left out: the others are aggregated nevertheless.
 */
export const LIST_GROUPS = new Script(`
need('set', KEYS[1])
local found = redis.call('SSCAN', KEYS[1], ARGV[2], 'COUNT', ARGV[3])
local reply = { found[1] }
for _, group in ipairs(found[2]) do
  local _, size = wrongType('zset', ARGV[1] .. group)
  if size and size > 0 then
    reply[#reply + 1] = group
    reply[#reply + 1] = size
  end
end
return reply
`);
