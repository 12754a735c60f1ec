import { Script } from '../script.ts';
import { FREE_LOCK, HOLDS } from './parts.ts';

/**
 * Archives a leased task whose message cannot be read, or is that of another task, and frees its lock.
 *
 * KEYS  1 HASH of the task  2 LIST active  3 ZSET lease  4 ZSET archived
 * ARGV  1 id  2 epoch  3 now  4 channel of settled tasks
 */
export const ARCHIVE_UNREADABLE = new Script(`${FREE_LOCK}${HOLDS}
local TASK, id = KEYS[1], ARGV[1]
need('hash', TASK)
need('list', KEYS[2])
need('zset', KEYS[3], KEYS[4])
if not holds(TASK, KEYS[3], id, ARGV[2]) then return end
redis.call('LREM', KEYS[2], 1, id)
redis.call('ZREM', KEYS[3], id)
redis.call('ZADD', KEYS[4], ARGV[3], id)
redis.call('HSET', TASK, 'state', 'archived')
redis.call('HDEL', TASK, 'x:lease')
freeLockOf(TASK, id)
redis.pcall('PUBLISH', ARGV[4], id)
`);
