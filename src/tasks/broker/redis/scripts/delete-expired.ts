import { Script } from '../script.ts';
import { FREE_LOCK, TRIM } from './parts.ts';

/**
 * Removes completed tasks whose retention is over, and what the archive has no room or no time for.
 *
 * KEYS  1 ZSET completed  2 ZSET archived
 * ARGV  1 now  2 prefix of tasks  3 how many  4 what was archived until then is given up  5 how many the archive keeps
 *       6 channel of settled tasks
 *
 * Returns how many are gone.
 */
export const DELETE_EXPIRED = new Script(`${FREE_LOCK}${TRIM}
local completed, archived = need('zset', KEYS[1]), need('zset', KEYS[2])
local limit, ids = tonumber(ARGV[3]), {}
if completed > 0 then ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, limit) end
giveUp(KEYS[1], 'completed', ARGV[2], ids)
if #ids > 0 then redis.pcall('PUBLISH', ARGV[6], table.concat(ids, '\\0')) end
if archived == 0 then return #ids end
return #ids + trim(KEYS[2], ARGV[2], ARGV[4], tonumber(ARGV[5]), limit - #ids)
`);
