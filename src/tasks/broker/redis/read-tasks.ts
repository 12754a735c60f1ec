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
import { allKeysOfTasks, keysOfSets, keysOfTasks, sizeOf } from './task-keys.ts';

/**
 * `addRow(reply, id, score, isWhole)`: adds a task to a reply, unless it is missing: id, msg, result, progress, its score (since when it is
 * pending in nanoseconds if it has none), recoveries, and milliseconds until its lock ends if `isWhole`, else 0. Returns the bytes of
 * its message and its result.
 */
const ADD_ROW = `
local function lockLeft(id, lock)
  return lock and lock ~= '' and redis.pcall('GET', lock) == id and redis.call('PTTL', lock) or 0
end
local function addRow(reply, id, score, isWhole)
  local task = readTask(id, 'msg', 'result', 'x:progress', 'pending_since', 'x:recoveries', 'unique_key')
  if not task[1] then return 0 end
  local at, left = #reply, isWhole and lockLeft(id, task[6] or lockIn(task[1])) or 0
  reply[at + 1], reply[at + 2], reply[at + 3], reply[at + 4] = id, task[1], task[2], task[3]
  reply[at + 5], reply[at + 6], reply[at + 7] = score or task[4], task[5], left
  return #task[1] + (task[2] and #task[2] or 0)
end
`;

/**
 * Reads a range of a zset, or of a list from its end. Ids without a task are left out.
 *
 * ARGV[1]  key of the LIST or ZSET
 * ARGV[2]  state of its tasks
 * ARGV[3]  index of the first task
 * ARGV[4]  index of the last task
 * ARGV[5]  bytes of messages and results after which no more tasks are read
 * ARGV[6]  1 to read what is left of their locks, and no leases
 *
 * Returns the number of ids that were read; then per task what `addRow` adds. The score of an active task is when its lease ends.
 */
export const READ_TASKS = new Script(`${ADD_ROW}
local KEY, first, last, bytes, isWhole = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local isList, isLeased = KEY == ACTIVE, ARGV[2] == 'active' and not isWhole
if isLeased then need('zset', LEASE) end
need(isList and 'list' or 'zset', KEY)
local rows, step = nil, 2
if isList then
  local found = redis.call('LRANGE', KEY, -last - 1, -first - 1)
  rows, step = {}, 1
  for i = #found, 1, -1 do rows[#rows + 1] = found[i] end
else rows = redis.call('ZRANGE', KEY, first, last, 'WITHSCORES') end
local reply = { 0 }
for i = 1, #rows, step do
  if bytes <= 0 then break end
  reply[1] = reply[1] + 1
  local id, score = rows[i], not isList and rows[i + 1]
  if isLeased then score = redis.call('ZSCORE', LEASE, id) or '' end
  bytes = bytes - addRow(reply, id, score, isWhole)
end
return reply
`);

/**
 * Reads pending tasks key by key: those of the keys in their turns, then those of parked keys. Ids without a task are left out.
 *
 * ARGV[1]  number of keys that are left out
 * ARGV[2]  number of tasks of the following keys that are left out
 * ARGV[3]  number of tasks
 * ARGV[4]  bytes of messages and results after which no more tasks are read
 * ARGV[5]  1 to read what is left of their locks
 *
 * Returns ARGV[1] and ARGV[2] of the next call, 1 if there are no more tasks; then per task what `addRow` adds.
 */
export const READ_IN_TURNS = new Script(`${ADD_ROW}
local nth, skip, count, bytes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
need('list', PENDING)
needFlow()
local ringed, KEYS_AT_ONCE = redis.call('LLEN', RING), 1000
local keys = redis.call('LRANGE', RING, nth, nth + KEYS_AT_ONCE - 1)
if #keys < KEYS_AT_ONCE then
  local from = math.max(nth - ringed, 0)
  for _, key in ipairs(redis.call('ZRANGE', PARKED, from, from + KEYS_AT_ONCE - 1)) do keys[#keys + 1] = key end
end
if redis.call('HEXISTS', FIRSTS, '') == 0 and nth + #keys == ringed + redis.call('ZCARD', PARKED) then keys[#keys + 1] = '' end
local function idsOf(key, from, most)
  local ids = {}
  if key == '' then
    local found = redis.call('LRANGE', PENDING, -from - most, -from - 1)
    for i = #found, 1, -1 do ids[#ids + 1] = found[i] end
    return ids
  end
  need('list', NEXT .. key)
  if from + most > 1 then ids = redis.call('LRANGE', NEXT .. key, math.max(from - 1, 0), from + most - 2) end
  local first = from == 0 and redis.call('HGET', FIRSTS, key)
  if first then table.insert(ids, 1, first) end
  return ids
end
local reply, at = { nth, skip, 0 }, 1
while at <= #keys and count > 0 and bytes > 0 do
  local key = keys[at]
  local size = skip > 0 and pendingOf(key) or math.huge
  if skip >= size then
    at, skip = at + 1, skip - size
  else
    local ids = idsOf(key, skip, count)
    for _, id in ipairs(ids) do
      if bytes <= 0 then break end
      count, skip = count - 1, skip + 1
      bytes = bytes - addRow(reply, id, false, ARGV[5] == '1')
    end
    if count > 0 and bytes > 0 then at, skip = at + 1, 0 end
  end
end
reply[1], reply[2] = nth + at - 1, skip
if at > #keys and #keys < KEYS_AT_ONCE then reply[3] = 1 end
return reply
`);

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
local isList, NEAR = KEY == ACTIVE or KEY == PENDING, 250 -- how far a member may have moved
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
  bytes = bytes - addRow(reply, last, state == 'active' and (redis.call('ZSCORE', LEASE, last) or '') or not isList and score)
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
local reply, done, NEAR = { 0, '', '' }, 0, 250 -- how far a task may have moved
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

/** Tasks of a page that one script reads at most. */
const TASKS_PER_SCRIPT = 1_000;

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

export const READING = {
  /** For active and pending tasks Redis walks to the page: O(tasks, or keys of tasks, before it). */
  async tasks(redis, queue, state, page, group) {
    await requireQueue(redis, queue);
    const records: TaskRecord[] = [];
    const add = (rows: Iterable<ScriptReply[]>): void => {
      for (const [id, ...fields] of rows) records.push(recordOf(redis, queue, textOf(id), state, fields));
    };
    let skip = (page.page - 1) * page.size;
    if (state === 'pending') {
      for (let nth = 0, isEnd = false; !isEnd && records.length < page.size;) {
        const count = Math.min(TASKS_PER_SCRIPT, page.size - records.length);
        const args = [nth, skip, count, Number.MAX_SAFE_INTEGER, 0];
        const reply = itemsOf(await redis.runIn(queue, READ_IN_TURNS, args));
        [nth = 0, skip = 0] = [numberOf(reply[0]), numberOf(reply[1])];
        isEnd = numberOf(reply[2]) === 1;
        add(rowsOf(reply, 3, 7));
      }
      return records;
    }
    for await (const key of allKeysOfTasks(redis, queue, state, group)) {
      const size = await sizeOf(redis, queue, key);
      for (let first = skip; first < size && records.length < page.size; first += TASKS_PER_SCRIPT) {
        const last = Math.min(first + Math.min(TASKS_PER_SCRIPT, page.size - records.length), size) - 1;
        const args = [key, state, first, last, Number.MAX_SAFE_INTEGER, 0];
        add(rowsOf(itemsOf(await redis.runIn(queue, READ_TASKS, args)), 1, 7));
      }
      if (records.length === page.size) break;
      skip = Math.max(skip - size, 0);
    }
    return records;
  },

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
  for (const [id, ...fields] of rowsOf(reply, 3, 7))
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
  for (const [id, ...fields] of rowsOf(rows, 0, 7))
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
