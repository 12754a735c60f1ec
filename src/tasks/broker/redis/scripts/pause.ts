import { Script } from '../script.ts';

/**
 * Nothing is dequeued any more. A queue that was removed meanwhile does not come back paused.
 *
 * KEYS  1 STRING paused  2 SET of all queues, unless that is on another node
 * ARGV  1 now  2 the queue's name
 *
 * Returns 1, 0 if it is paused already, -1 if there is no such queue.
 */
export const PAUSE = new Script(`
if KEYS[2] then need('set', KEYS[2]) end
if KEYS[2] and redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 0 then return -1 end
return redis.call('SETNX', KEYS[1], ARGV[1])
`);
