import { Script } from '../script.ts';
import { HOLDS } from './parts.ts';

/**
 * A run has something to show. A task that is gone does not come back by it (B5).
 *
 * KEYS  1 HASH of the task  2 ZSET lease
 * ARGV  1 id  2 epoch  3 field  4 value  5 channel to tell of it, or nothing
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const WRITE_FIELD = new Script(`${HOLDS}
need('hash', KEYS[1])
need('zset', KEYS[2])
if not holds(KEYS[1], KEYS[2], ARGV[1], ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[3], ARGV[4])
if ARGV[5] ~= '' then redis.pcall('PUBLISH', ARGV[5], ARGV[1]) end
return 1
`);
