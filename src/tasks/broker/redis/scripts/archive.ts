import { Script } from '../script.ts';
import { COUNT, FREE_LOCK, HOLDS, TRIM, WRITE_ANYWAY } from './parts.ts';

/**
 * A task has failed for the last time. The archive gives up what it has no room or no time for, with its locks (B6).
 *
 * KEYS  1 HASH of the task  2 LIST active  3 ZSET lease  4 ZSET archived  5 STRING processed  6 STRING processed today
 *       7 STRING failed  8 STRING failed today
 * ARGV  1 id  2 epoch  3 msg, or nothing if it stays as it is  4 now  5 1 if its worker was gone
 *       6 when today's counts expire  7 lock or nothing  8 prefix of tasks  9 what was archived until then is given up
 *       10 how many the archive keeps  11 channel of settled tasks
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const ARCHIVE = new Script(`${FREE_LOCK}${HOLDS}${COUNT}${TRIM}${WRITE_ANYWAY}
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
redis.call('HSET', TASK, 'state', 'archived')
if ARGV[3] ~= '' then redis.call('HSET', TASK, 'msg', ARGV[3]) end
redis.call('HDEL', TASK, 'x:lease')
if ARGV[5] == '1' then redis.call('HINCRBY', TASK, 'x:recoveries', 1) end
freeLock(ARGV[7], id)
count(KEYS[5], KEYS[6], 1, ARGV[6])
count(KEYS[7], KEYS[8], 1, ARGV[6])
trim(KEYS[4], ARGV[8], ARGV[9], tonumber(ARGV[10]), 1000)
redis.pcall('PUBLISH', ARGV[11], id)
return 1
`);
