import { Script } from '../script.ts';
import { HOLDS, WRITE_ANYWAY } from './parts.ts';

/**
 * Leases of a queue hold until then.
 *
 * KEYS  1 ZSET lease
 * ARGV  1 prefix of tasks  2 when the leases end  2 for each task: id, epoch
 *
 * Returns 1 for each that is extended, 0 for each that is lost.
 */
export const EXTEND_LEASES = new Script(`${HOLDS}${WRITE_ANYWAY}
local LEASE, TASK, score = KEYS[1], ARGV[1], ARGV[2]
local outcomes = {}
need('zset', LEASE)
writeAnyway(LEASE)
for i = 3, #ARGV, 2 do
  local id, epoch = ARGV[i], ARGV[i + 1]
  if holds(TASK .. id, LEASE, id, epoch) then
    redis.call('ZADD', LEASE, score, id)
    redis.call('HSET', TASK .. id, 'x:lease', epoch .. ':' .. score)
    outcomes[#outcomes + 1] = 1
  else
    outcomes[#outcomes + 1] = 0
  end
end
return outcomes
`);
