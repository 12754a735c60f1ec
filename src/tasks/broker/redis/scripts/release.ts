import { Script } from '../script.ts';
import { HOLDS, WRITE_ANYWAY } from './parts.ts';

/**
 * A task goes back to the head of its queue.
 *
 * KEYS  1 HASH of the task  2 LIST active  3 ZSET lease  4 LIST pending
 * ARGV  1 id  2 epoch  3 now, in nanoseconds  4 channel of work
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const RELEASE = new Script(`${HOLDS}${WRITE_ANYWAY}
local TASK, id = KEYS[1], ARGV[1]
need('hash', TASK)
need('list', KEYS[2], KEYS[4])
need('zset', KEYS[3])
if not holds(TASK, KEYS[3], id, ARGV[2]) then return 0 end
writeAnyway(KEYS[3])
local waiting = redis.call('RPUSH', KEYS[4], id)
redis.call('LREM', KEYS[2], 1, id)
redis.call('ZREM', KEYS[3], id)
redis.call('HSET', TASK, 'state', 'pending', 'pending_since', ARGV[3])
redis.call('HDEL', TASK, 'x:lease')
if waiting == 1 then redis.pcall('PUBLISH', ARGV[4], '') end
return 1
`);
