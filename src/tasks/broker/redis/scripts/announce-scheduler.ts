import { Script } from '../script.ts';

/**
 * Shows the entries of a scheduler, until they expire. The last one comes first, as asynq has it.
 *
 * KEYS  1 LIST of its entries
 * ARGV  1 seconds  1 for each entry: SchedulerEntry
 */
export const ANNOUNCE_SCHEDULER = new Script(`
redis.call('DEL', KEYS[1])
for i = 2, #ARGV do redis.call('LPUSH', KEYS[1], ARGV[i]) end
redis.call('EXPIRE', KEYS[1], ARGV[1])
`);
