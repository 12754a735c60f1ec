import { Script } from '../script.ts';

/**
 * Asks whoever runs a task to stop: our servers first, then Go's, in that order for all who listen to both.
 *
 * KEYS  1 any key
 * ARGV  1 our channel  2 the request  3 asynq's channel  4 id of the task
 */
export const CANCEL = new Script(`
redis.call('PUBLISH', ARGV[1], ARGV[2])
redis.call('PUBLISH', ARGV[3], ARGV[4])
`);
