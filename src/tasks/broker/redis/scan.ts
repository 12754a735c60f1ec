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

/** `addRow(reply, id, score)`: adds a task to a reply, unless it is missing: id, msg, result, progress, score. Returns its bytes. */
const ADD_ROW = `
local NEAR = 250 -- how far a member may have moved
local function addRow(reply, id, score)
  local task = readTask(id, 'msg', 'result', 'x:progress')
  if not task[1] then return 0 end
  local at = #reply
  reply[at + 1], reply[at + 2], reply[at + 3], reply[at + 4], reply[at + 5] = id, task[1], task[2], task[3], score
  return #task[1] + (task[2] and #task[2] or 0)
end
`;

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
 * Returns ARGV[5], ARGV[6] and ARGV[7] of the next call, then per task what `addRow` adds. The score of an active task is when its
 * lease ends.
 */
export const SCAN_TASKS = new Script(`${ADD_ROW}
local KEY, state, count, bytes = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local unread, last, score = tonumber(ARGV[5]), ARGV[6], ARGV[7]
local isList = KEY == ACTIVE or KEY == PENDING
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
  bytes = bytes - addRow(reply, last, state == 'active' and redis.call('ZSCORE', LEASE, last) or not isList and score)
end
reply[1], reply[2], reply[3] = unread, last, score
return reply
`);

/**
 * Reads the pending tasks of some keys, those of each in the opposite of their order, as SCAN_TASKS does.
 *
 * ARGV[1]   number of tasks
 * ARGV[2]   bytes of messages and results, without those of the last task
 * ARGV[3]   number of tasks that are left to read of the list of the first of these keys, or '' to begin
 * ARGV[4]   the task of that list that was read last
 * ARGV[5…]  keys
 *
 * Returns the number of keys that were read whole, ARGV[3] and ARGV[4] of the next call, then per task what `addRow` adds.
 */
export const SCAN_KEYS = new Script(`${ADD_ROW}
local count, bytes, unread, last = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
needFlow()
local reply, done = { 0, '', '' }, 0
local function add(id)
  count, bytes = count - 1, bytes - addRow(reply, id, false)
end
local function findLast(list, size)
  if not unread then unread = size
  elseif redis.call('LINDEX', list, unread) ~= last then
    local from = math.max(unread - NEAR, 0)
    for i, id in ipairs(redis.call('LRANGE', list, from, unread + NEAR)) do
      if id == last then unread = from + i - 1 end
    end
  end
  unread = math.min(unread, size)
end
for i = 5, #ARGV do
  local list = NEXT .. ARGV[i]
  findLast(list, need('list', list))
  local ids = unread > 0 and redis.call('LRANGE', list, math.max(unread - count, 0), unread - 1) or {}
  for at = #ids, 1, -1 do
    if bytes <= 0 then break end
    unread, last = unread - 1, ids[at]
    add(last)
  end
  if unread > 0 or count <= 0 or bytes <= 0 then break end
  local first = redis.call('HGET', FIRSTS, ARGV[i])
  if first then add(first) end
  done, unread, last = done + 1, nil, ''
end
reply[1], reply[2], reply[3] = done, unread or '', last
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
  /** Place among the pending tasks with keys; undefined at their beginning. */
  readonly turns?: KeysPosition;
}

interface KeysPosition {
  /** Of HSCAN; '0' if it has found the last keys. */
  readonly cursor: string;
  /** Keys that were found, and are left to read. */
  readonly keys: readonly string[];
  /** ARGV[3] and ARGV[4] of SCAN_KEYS for the first of them. */
  readonly place: readonly ScriptArgument[];
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
  position: RedisPosition,
  limit: number,
  tasks: TaskRecord[],
): Promise<RedisPosition | undefined> {
  const { states, keys, nth = 0, place } = position;
  const [state, ...later] = states;
  if (state === undefined) return undefined;
  if (keys === undefined) return { states, keys: await keysToScan(redis, queue, state) };
  const key = keys[nth];
  if (key === undefined) return { states: later };
  if (key === redis.keysOf(queue).aggregationSets) return { states, keys: await keysOfSets(redis, queue) };
  if (key === redis.keysOf(queue).waiting) {
    const turns = await scanKeys(redis, queue, position.turns, limit, tasks);
    return turns === undefined ? { states, keys, nth: nth + 1 } : { states, keys, nth, turns };
  }
  const args = [key, state, Math.min(limit, TASKS_PER_SCAN), BYTES_PER_SCAN, ...placeOf(place)];
  const reply = itemsOf(await redis.runIn(queue, SCAN_TASKS, args));
  for (const [id, ...fields] of rowsOf(reply, 3, 5))
    tasks.push(recordOf(redis, queue, textOf(id), state, fields));
  return numberOf(reply[0]) > 0
    ? { states, keys, nth, place: reply.slice(0, 3) }
    : { states, keys, nth: nth + 1 };
}

/** Reads pending tasks with keys. @returns the next position; undefined at the end. */
async function scanKeys(
  redis: RedisAccess,
  queue: string,
  position: KeysPosition | undefined,
  limit: number,
  tasks: TaskRecord[],
): Promise<KeysPosition | undefined> {
  const { cursor, keys, place } = position ?? { cursor: undefined, keys: [], place: ['', ''] };
  if (keys.length === 0) {
    if (cursor === '0') return undefined;
    const { firsts } = redis.keysOf(queue);
    const [next, found] = await redis.send((client) =>
      client.hscan(firsts, cursor ?? '0', 'COUNT', TASKS_PER_SCAN),
    );
    return { cursor: next, keys: found.filter((key, at) => at % 2 === 0 && key !== ''), place: ['', ''] };
  }
  const args = [Math.min(limit, TASKS_PER_SCAN), BYTES_PER_SCAN, ...place, ...keys];
  const [done, ...reply] = itemsOf(await redis.runIn(queue, SCAN_KEYS, args));
  const [unread, last, ...rows] = reply;
  for (const [id, ...fields] of rowsOf(rows, 0, 5))
    tasks.push(recordOf(redis, queue, textOf(id), 'pending', fields));
  return {
    cursor: cursor ?? '0',
    keys: keys.slice(numberOf(done)),
    place: [unread, last] as ScriptArgument[],
  };
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
