import type { TaskState } from '../../task-state.ts';
import type { TaskRecord } from '../broker.ts';
import { recordOf, requireQueue } from './inspection.ts';
import type { RedisAccess, RedisOperations } from './redis-access.ts';
import {
  bytesOf,
  itemsOf,
  numberOf,
  rowsOf,
  Script,
  type ScriptArgument,
  type ScriptReply,
  textOf,
} from './script.ts';
import { keysOfSets, keysOfTasks } from './task-keys.ts';

/**
 * Reads tasks of a list from the left, or of a zset from its highest score: those that have come last. So those that leave do not shift
 * what is to be read. The place where reading goes on is found by the member that was read last; without it, a zset has its score, and
 * a list the distance from its right end, which does not change by what is added on the left.
 *
 * ARGV[1]  key of the LIST or ZSET
 * ARGV[2]  state of its tasks
 * ARGV[3]  number of tasks
 * ARGV[4]  bytes of messages and results, without those of the last task
 * ARGV[5]  number of members that are left to read, or '' to begin
 * ARGV[6]  the member that was read last
 * ARGV[7]  its score, or ''
 *
 * Returns ARGV[5], ARGV[6] and ARGV[7] of the next call, then per task id, msg, result, progress, and its score, or when its lease ends
 * if it is active.
 */
export const SCAN_TASKS = new Script(`
local KEY, state, count, bytes = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local unread, last, score = tonumber(ARGV[5]), ARGV[6], ARGV[7]
local isList, NEAR = KEY == ACTIVE or KEY == PENDING, 250
need('zset', LEASE)
local size = need(isList and 'list' or 'zset', KEY)
if not unread then unread = size
elseif isList then
  local from = math.max(size - unread - 1 - NEAR, 0)
  if redis.call('LINDEX', KEY, -unread - 1) ~= last then
    for i, id in ipairs(redis.call('LRANGE', KEY, from, from + 2 * NEAR)) do
      if id == last then unread = size - from - i end
    end
  end
elseif KEY == WAITING then unread = redis.call('ZLEXCOUNT', KEY, '-', '(' .. last)
else unread = redis.call('ZRANK', KEY, last) or redis.call('ZCOUNT', KEY, '-inf', score) end
unread = math.min(unread, size)
count = math.min(count, unread)
local rows, step = {}, 2
if count > 0 and isList then rows, step = redis.call('LRANGE', KEY, size - unread, size - unread + count - 1), 1
elseif count > 0 then rows = redis.call('ZREVRANGE', KEY, size - unread, size - unread + count - 1, 'WITHSCORES') end
local reply = { 0, last, score }
for i = 1, #rows, step do
  if bytes <= 0 then break end
  unread, last, score = unread - 1, rows[i], isList and '' or rows[i + 1]
  local id = KEY == WAITING and idOf(last) or last
  local task = readTask(id, 'msg', 'result', 'x:progress')
  if task[1] then
    local at = #reply
    reply[at + 1], reply[at + 2], reply[at + 3], reply[at + 4] = id, task[1], task[2], task[3]
    reply[at + 5] = state == 'active' and redis.call('ZSCORE', LEASE, id) or not isList and score
    bytes = bytes - #task[1] - (task[2] and #task[2] or 0)
  end
end
reply[1], reply[2], reply[3] = unread, last, score
return reply
`);

/** A script of a scan keeps Redis busy for about a millisecond. */
const TASKS_PER_SCAN = 100;
const BYTES_PER_SCAN = 1_048_576;

/** Where a scan goes on. */
interface RedisPosition {
  /** States that are left, and the one that is being read. */
  readonly states: readonly TaskState[];
  /** The keys with its tasks; undefined if they are not known yet. */
  readonly keys?: readonly string[];
  /** Index of the key that is being read. @default 0 */
  readonly nth?: number;
  /** Place in that key, as SCAN_TASKS returns it; undefined at its beginning. */
  readonly place?: readonly ScriptReply[];
}

export const SCAN = {
  /** One short script, and one more for every key that has no tasks. */
  async scan(redis, queue, states, limit, from) {
    if (from === undefined) await requireQueue(redis, queue);
    let position: RedisPosition | undefined = from === undefined ? { states } : (from as RedisPosition);
    const tasks: TaskRecord[] = [];
    while (position !== undefined && tasks.length === 0)
      position = await scanFrom(redis, queue, position, limit, tasks);
    return { tasks, next: position };
  },
} satisfies RedisOperations;

/** Reads what is at a position. @returns the next one; undefined at the end. */
async function scanFrom(
  redis: RedisAccess,
  queue: string,
  { states, keys, nth = 0, place }: RedisPosition,
  limit: number,
  tasks: TaskRecord[],
): Promise<RedisPosition | undefined> {
  const [state, ...later] = states;
  if (state === undefined) return undefined;
  if (keys === undefined) return { states, keys: await keysToScan(redis, queue, state) };
  const key = keys[nth];
  if (key === undefined) return { states: later };
  if (key === redis.keysOf(queue).aggregationSets) return { states, keys: await keysOfSets(redis, queue) };
  const args = [key, state, Math.min(limit, TASKS_PER_SCAN), BYTES_PER_SCAN, ...placeOf(place)];
  const reply = itemsOf(await redis.runIn(queue, SCAN_TASKS, args));
  for (const [id, ...fields] of rowsOf(reply, 3, 5))
    tasks.push(recordOf(redis, queue, textOf(id), state, fields));
  return numberOf(reply[0]) > 0
    ? { states, keys, nth, place: reply.slice(0, 3) }
    : { states, keys, nth: nth + 1 };
}

function placeOf(place: readonly ScriptReply[] | undefined): readonly ScriptArgument[] {
  if (place === undefined) return ['', '', ''];
  const [unread, last, score] = place;
  return [numberOf(unread), Buffer.from(bytesOf(last) ?? ''), textOf(score)];
}

/** Returns the keys of a state; the last one of aggregating tasks stands for the sets. */
async function keysToScan(redis: RedisAccess, queue: string, state: TaskState): Promise<readonly string[]> {
  const keys = await keysOfTasks(redis, queue, state);
  return state === 'aggregating' ? [...keys, redis.keysOf(queue).aggregationSets] : keys;
}
