import { Script } from '../script.ts';

/**
 * Shows a server with its workers, until they expire.
 *
 * KEYS  1 STRING of the server  2 HASH of its workers
 * ARGV  1 seconds  2 ServerInfo  2 for each worker: id of its task, WorkerInfo
 */
export const ANNOUNCE_SERVER = new Script(`
redis.call('SETEX', KEYS[1], ARGV[1], ARGV[2])
redis.call('DEL', KEYS[2])
for i = 3, #ARGV, 2 do redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) end
redis.call('EXPIRE', KEYS[2], ARGV[1])
`);
