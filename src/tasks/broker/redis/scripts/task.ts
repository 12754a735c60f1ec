import { Script } from '../script.ts';

/**
 * One task, as it is.
 *
 * KEYS  1 HASH of the task  2 ZSET lease  3 ZSET scheduled  4 ZSET retry
 * ARGV  1 id
 *
 * Returns nothing if there is none; else msg, state, result, progress, when its lease ends, when it is due.
 */
export const TASK = new Script(`
need('hash', KEYS[1])
need('zset', KEYS[2], KEYS[3], KEYS[4])
local task = redis.call('HMGET', KEYS[1], 'msg', 'state', 'result', 'x:progress')
if not task[1] then return {} end
local source = task[2] == 'scheduled' and KEYS[3] or task[2] == 'retry' and KEYS[4]
local lease = task[2] == 'active' and redis.call('ZSCORE', KEYS[2], ARGV[1])
return { task[1], task[2], task[3], task[4], lease, source and redis.call('ZSCORE', source, ARGV[1]) }
`);
