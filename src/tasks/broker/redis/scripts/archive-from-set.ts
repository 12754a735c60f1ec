import { Script } from '../script.ts';
import { FREE_LOCK } from './parts.ts';

/**
 * Archives tasks of a set whose message cannot be read, or is that of another task, and frees their locks. A set without tasks
 * is removed.
 *
 * KEYS  1 ZSET of the set  2 ZSET of sets  3 ZSET archived
 * ARGV  1 prefix of tasks  2 now  3 channel of settled tasks  4 and on: ids
 */
export const ARCHIVE_FROM_SET = new Script(`${FREE_LOCK}
local SET, SETS = KEYS[1], KEYS[2]
need('zset', SET, SETS, KEYS[3])
for i = 4, #ARGV do
  local id = ARGV[i]
  local task = ARGV[1] .. id
  if redis.call('ZREM', SET, id) == 1 and readTask(task, 'msg')[1] then
    redis.call('ZADD', KEYS[3], ARGV[2], id)
    redis.call('HSET', task, 'state', 'archived')
    freeLockOf(task, id)
    redis.pcall('PUBLISH', ARGV[3], id)
  end
end
if redis.call('EXISTS', SET) == 0 then redis.call('ZREM', SETS, SET) end
`);
