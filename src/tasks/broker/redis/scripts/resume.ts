import { Script } from '../script.ts';

/**
 * Ends a pause.
 *
 * KEYS  1 STRING paused  2 LIST pending
 * ARGV  1 channel of work
 *
 * Returns 1, or 0 if it is not paused.
 */
export const RESUME = new Script(`
local waiting = need('list', KEYS[2])
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
if waiting > 0 then redis.pcall('PUBLISH', ARGV[1], '') end
return 1
`);
