import { Script } from '../script.ts';
import { COUNT, HOLDS, WRITE_ANYWAY } from './parts.ts';

/**
 * A task has failed, and runs again.
 *
 * KEYS  1 HASH of the task  2 LIST active  3 ZSET lease  4 ZSET retry  5 STRING processed  6 STRING processed today
 *       7 STRING failed  8 STRING failed today
 * ARGV  1 id  2 epoch  3 msg  4 when it runs  5 1 if it counts as a failure  6 1 if its worker was gone
 *       7 when today's counts expire
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const RETRY = new Script(`${HOLDS}${COUNT}${WRITE_ANYWAY}
local TASK, id = KEYS[1], ARGV[1]
need('hash', TASK)
need('list', KEYS[2])
need('zset', KEYS[3], KEYS[4])
need('string', KEYS[5], KEYS[6], KEYS[7], KEYS[8])
if not holds(TASK, KEYS[3], id, ARGV[2]) then return 0 end
writeAnyway(KEYS[4])
redis.call('ZADD', KEYS[4], ARGV[4], id)
redis.call('LREM', KEYS[2], 1, id)
redis.call('ZREM', KEYS[3], id)
redis.call('HSET', TASK, 'msg', ARGV[3], 'state', 'retry')
redis.call('HDEL', TASK, 'x:lease')
if ARGV[6] == '1' then redis.call('HINCRBY', TASK, 'x:recoveries', 1) end
if ARGV[5] == '1' then
  count(KEYS[5], KEYS[6], 1, ARGV[7])
  count(KEYS[7], KEYS[8], 1, ARGV[7])
end
return 1
`);
