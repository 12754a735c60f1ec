import { Script } from '../script.ts';

/**
 * Keeps the latest events of an entry.
 *
 * KEYS  1 ZSET of its events
 * ARGV  1 when it was  2 SchedulerEnqueueEvent  3 how many are kept  4 seconds after which all are
 *       forgotten
 */
export const RECORD_EVENT = new Script(`
need('zset', KEYS[1])
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -ARGV[3] - 1)
redis.call('EXPIRE', KEYS[1], ARGV[4])
`);
