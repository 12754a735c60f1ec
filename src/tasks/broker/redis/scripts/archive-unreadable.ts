import { Script } from '../script.ts';

/**
 * Archives a task that was leased, and whose msg nobody can read. Who leased it knows its epoch alone.
 *
 * KEYS  1 LIST active  2 ZSET lease  3 ZSET archived
 * ARGV  1 prefix of tasks  2 epoch  3 now
 */
export const ARCHIVE_UNREADABLE = new Script(`
for _, id in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  local tag = redis.call('HGET', ARGV[1] .. id, 'x:lease')
  if tag and string.sub(tag, 1, #ARGV[2] + 1) == ARGV[2] .. ':' then
    redis.call('ZADD', KEYS[3], ARGV[3], id)
    redis.call('LREM', KEYS[1], 1, id)
    redis.call('ZREM', KEYS[2], id)
    redis.call('HSET', ARGV[1] .. id, 'state', 'archived')
    redis.call('HDEL', ARGV[1] .. id, 'x:lease')
    return
  end
end
`);
