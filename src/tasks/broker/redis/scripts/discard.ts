import { Script } from '../script.ts';
import { FREE_LOCK, HOLDS } from './parts.ts';

/**
 * A task is not wanted any more: it is gone, and counts as nothing.
 *
 * KEYS  1 HASH of the task  2 LIST active  3 ZSET lease
 * ARGV  1 id  2 epoch  3 lock or nothing  4 channel of settled tasks
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const DISCARD = new Script(`${FREE_LOCK}${HOLDS}
local id = ARGV[1]
need('hash', KEYS[1])
need('list', KEYS[2])
need('zset', KEYS[3])
if not holds(KEYS[1], KEYS[3], id, ARGV[2]) then return 0 end
redis.call('LREM', KEYS[2], 1, id)
redis.call('ZREM', KEYS[3], id)
redis.call('DEL', KEYS[1])
freeLock(ARGV[3], id)
redis.pcall('PUBLISH', ARGV[4], id)
return 1
`);
