import { wrongValue } from '../../../core/errors.ts';
import type { TaskState } from '../../task-state.ts';
import type { Page, TaskRecord } from '../broker.ts';
import { recordOf, requireQueue } from './inspection.ts';
import type { RedisAccess, RedisOperations } from './redis-access.ts';
import { itemsOf, numberOf, rowsOf, textOf } from './replies.ts';
import { MOST_BYTES, MOST_READ, Script, type ScriptArgument, type ScriptReply } from './script.ts';
import { allKeysOfTasks, sizeOf } from './task-keys.ts';

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
 * ARGV[2]  index of the first task
 * ARGV[3]  index of the last task
 * ARGV[4]  bytes of messages and results after which no more tasks are read
 * ARGV[5]  1 to read what is left of their locks, and no leases
 *
 * Returns the number of ids that were read; then per task what `addRow` adds. The score of an active task is when its lease ends.
 */
export const READ_TASKS = new Script(`${ADD_ROW}
local KEY, first, last, bytes, isWhole = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == '1'
local isList = KEY == ACTIVE
local isLeased = isList and not isWhole
if isLeased then need('zset', LEASE) end
need(isList and 'list' or 'zset', KEY)
local rows, step = nil, 2
if isList then rows, step = idsFrom(KEY, first, last - first + 1), 1
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
local keys, all = keysFrom(nth)
local isEnd = nth + #keys >= all
if isEnd and redis.call('HEXISTS', FIRSTS, '') == 0 then keys[#keys + 1] = '' end
local function idsOf(key, from, most)
  if key == '' then return idsFrom(PENDING, from, most) end
  local ids = {}
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
if isEnd and at > #keys then reply[3] = 1 end
return reply
`);

/**
 * Reads tasks of a list from the left, or of a zset from its highest score: those that have come last. So those that leave do not shift
 * what is to be read. The place where reading goes on is found by the member that was read last; without it, a zset has its score, and
 * a list the distance from its right end, which does not change by what is added on the left.
 *
 * ARGV[1]  key of the LIST or ZSET
 * ARGV[2]  number of tasks
 * ARGV[3]  bytes of messages and results, without those of the last task
 * ARGV[4]  number of members that are left to read, or '' to begin
 * ARGV[5]  the member that was read last
 * ARGV[6]  its score, or ''
 *
 * Returns ARGV[4], ARGV[5] and ARGV[6] of the next call, then per task what `addRow` adds. The score of an active task is when its
 * lease ends.
 */
export const SCAN_TASKS = new Script(`${ADD_ROW}
local KEY, count, bytes = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local unread, last, score = tonumber(ARGV[4]), ARGV[5], ARGV[6]
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
  bytes = bytes - addRow(reply, last, KEY == ACTIVE and (redis.call('ZSCORE', LEASE, last) or '') or not isList and score)
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

/** A script of a scan keeps Redis busy for about a millisecond. */
const TASKS_PER_SCAN = 100;

/** What a script has returned of some tasks: see `addRow`. */
type Rows = ScriptReply[][];

/**
 * Reads tasks of a state in their order.
 *
 * @param page - which tasks; undefined for all, with what is left of their locks, and without their leases.
 */
export async function* readRows(
  redis: RedisAccess,
  queue: string,
  state: TaskState,
  perScript: number,
  page?: Page,
  group?: string,
): AsyncGenerator<Rows> {
  const rest = page === undefined ? [MOST_BYTES, 1] : [Number.MAX_SAFE_INTEGER, 0];
  let skip = page === undefined ? 0 : (page.page - 1) * page.size;
  let left = page?.size ?? Infinity;
  if (state === 'pending') {
    for (let nth = 0, isEnd = false; !isEnd && left > 0;) {
      const args = [nth, skip, Math.min(perScript, left), ...rest];
      const reply = itemsOf(await redis.runIn(queue, READ_IN_TURNS, args));
      [nth, skip, isEnd] = [numberOf(reply[0]), numberOf(reply[1]), numberOf(reply[2]) === 1];
      const rows = [...rowsOf(reply, 3, 7)];
      left -= rows.length;
      yield rows;
    }
    return;
  }
  for await (const key of allKeysOfTasks(redis, queue, state, group)) {
    const size = skip > 0 ? await sizeOf(redis, queue, key) : Infinity;
    for (let first = skip, read = 1; first < size && left > 0 && read > 0; first += read) {
      const last = first + Math.min(perScript, left) - 1;
      const reply = itemsOf(await redis.runIn(queue, READ_TASKS, [key, first, last, ...rest]));
      read = numberOf(reply[0]);
      const rows = [...rowsOf(reply, 1, 7)];
      left -= rows.length;
      yield rows;
    }
    if (left === 0) return;
    skip = Math.max(skip - size, 0);
  }
}

/** A scan of some states of a queue. Its position is in the loops of `pieces`. */
class Scan {
  /** The tasks that one script reads, then those that the next one reads, and so on. After an error it has ended, without a value. */
  readonly pieces: AsyncGenerator<TaskRecord[], TaskRecord[] | undefined>;
  /** Number of tasks that the next script reads. */
  limit = 0;
  readonly #redis: RedisAccess;
  readonly #queue: string;

  constructor(redis: RedisAccess, queue: string, states: readonly TaskState[]) {
    this.#redis = redis;
    this.#queue = queue;
    this.pieces = this.#scan(states);
  }

  async *#scan(states: readonly TaskState[]): AsyncGenerator<TaskRecord[], TaskRecord[]> {
    const { waiting } = this.#redis.keysOf(this.#queue);
    for (const state of states) {
      for await (const key of allKeysOfTasks(this.#redis, this.#queue, state)) {
        const pieces = key === waiting ? this.#rowsOfKeys() : this.#rowsIn(key);
        for await (const rows of pieces)
          if (rows.length > 0) yield recordsOf(this.#redis, this.#queue, state, rows);
      }
    }
    return [];
  }

  async *#rowsIn(key: string): AsyncGenerator<Rows> {
    let place: readonly ScriptArgument[] = ['', '', ''];
    do {
      const args = [key, this.limit, MOST_BYTES, ...place];
      const reply = itemsOf(await this.#redis.runIn(this.#queue, SCAN_TASKS, args));
      yield [...rowsOf(reply, 3, 7)];
      place = reply.slice(0, 3) as ScriptArgument[];
    } while (place[0] !== 0);
  }

  /** The pending tasks with keys. */
  async *#rowsOfKeys(): AsyncGenerator<Rows> {
    const { firsts } = this.#redis.keysOf(this.#queue);
    for (let cursor = ''; cursor !== '0';) {
      const [next, found] = await this.#redis.send((client) =>
        client.hscan(firsts, cursor || '0', 'COUNT', TASKS_PER_SCAN),
      );
      cursor = next;
      let keys = found.filter((key, at) => at % 2 === 0 && key !== '');
      let place: readonly ScriptArgument[] = ['', ''];
      while (keys.length > 0) {
        const args = [this.limit, MOST_BYTES, ...place, ...keys];
        const reply = itemsOf(await this.#redis.runIn(this.#queue, SCAN_KEYS, args));
        yield [...rowsOf(reply, 3, 7)];
        keys = keys.slice(numberOf(reply[0]));
        place = reply.slice(1, 3) as ScriptArgument[];
      }
    }
  }
}

export const READING = {
  /** For active and pending tasks Redis walks to the page: O(tasks, or keys of tasks, before it). */
  async tasks(redis, queue, state, page, group) {
    await requireQueue(redis, queue);
    const records: TaskRecord[] = [];
    for await (const rows of readRows(redis, queue, state, MOST_READ, page, group))
      records.push(...recordsOf(redis, queue, state, rows));
    return records;
  },

  /** One short script, and one more for every key that has no tasks. */
  async scan(redis, queue, states, limit, from) {
    if (from === undefined) await requireQueue(redis, queue);
    const scan = (from as Scan | undefined) ?? new Scan(redis, queue, states);
    scan.limit = Math.min(limit, TASKS_PER_SCAN);
    const { value: tasks, done } = await scan.pieces.next();
    if (tasks === undefined) throw wrongValue('from', 'a position that no call has used', from);
    return { tasks, next: done === true ? undefined : scan };
  },
} satisfies RedisOperations;

function recordsOf(redis: RedisAccess, queue: string, state: TaskState, rows: Rows): TaskRecord[] {
  return rows.map(([id, ...fields]) => recordOf(redis, queue, textOf(id), state, fields));
}
