import { Script } from '../script.ts';
import { GROUP_NAMES, TAKE_SOME } from './parts.ts';

/**
 * Makes the first tasks of a state pending. Ids that have no task, or one in another state, are dropped.
 *
 * KEYS  1 LIST or ZSET they are in  2 SET groups  3 LIST pending
 * ARGV  1 their state  2 how many  3 their group or nothing  4 prefix of tasks  5 now, in nanoseconds  6 channel of work
 *
 * Returns how many were taken.
 */
export const RUN_SOME = new Script(`${GROUP_NAMES}${TAKE_SOME}
needSource(KEYS[1], ARGV[1])
need('set', KEYS[2])
local waiting = need('list', KEYS[3])
local ids = take(KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[4], ARGV[3], function(task, id)
  redis.call('LPUSH', KEYS[3], id)
  redis.call('HSET', task, 'state', 'pending', 'pending_since', ARGV[5])
end)
if #ids > 0 and waiting == 0 then redis.pcall('PUBLISH', ARGV[6], '') end
return #ids
`);
