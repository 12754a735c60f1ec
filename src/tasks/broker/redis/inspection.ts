import { DAY_MS, NANOS_PER_MS, utcDay } from '../../../core/units.ts';
import { hasOwnKeys } from '../../argument-checks.ts';
import { isTaskState, type TaskState } from '../../task-state.ts';
import { queueNotFound, taskNotFound } from '../broker-errors.ts';
import type { DayStats, QueueStats, TaskRecord } from '../broker.ts';
import { QUEUES_KEY } from './keys.ts';
import type { RedisAccess, RedisOperations } from './redis-access.ts';
import {
  bytesOf,
  itemsOf,
  messageOrStandIn,
  msOfSeconds,
  numberOf,
  rowsOf,
  Script,
  type ScriptReply,
  textOf,
} from './script.ts';
import { allKeysOfTasks, sizeOf } from './task-keys.ts';

/**
 * Reads the numbers of a queue. Its memory is estimated from the first tasks of each state, as in asynq.
 *
 * ARGV[1]  number of tasks per state, and of groups, whose memory is measured
 * ARGV[2]  today, as in the keys of counts
 *
 * Returns the number of active, pending, scheduled, retry, archived, completed and aggregating tasks, the number of groups, since
 * when the next task is pending in nanoseconds, bytes, the runs and failed runs of today, all of them, 1 if the queue is paused, 1 or 2
 * if its concurrency or its rate holds all tasks back, and since when the first of those tasks is pending that nothing holds back.
 */
export const QUEUE_STATS = new Script(`
local sample, bytes = tonumber(ARGV[1]), 0
local COUNTS = { PROCESSED .. ':' .. ARGV[2], FAILED .. ':' .. ARGV[2], PROCESSED, FAILED }
need('set', GROUPS)
need('zset', SETS)
need('string', unpack(COUNTS))
needFlow()
local function weigh(key, size, ids)
  local sum = 0
  for _, id in ipairs(ids) do sum = sum + (redis.call('MEMORY', 'USAGE', TASK .. id) or 0) end
  if #ids > 0 then bytes = bytes + sum / #ids * size + (redis.call('MEMORY', 'USAGE', key) or 0) end
end
local reply = {}
for i, state in ipairs({ 'active', 'pending', 'scheduled', 'retry', 'archived', 'completed' }) do
  local key, isList = PREFIX .. state, i <= 2
  reply[i] = need(isList and 'list' or 'zset', key)
  weigh(key, reply[i], isList and redis.call('LRANGE', key, -sample, -1) or redis.call('ZRANGE', key, 0, sample - 1))
end
local waiting, sampled = redis.call('ZCARD', WAITING), {}
for i, member in ipairs(redis.call('ZRANGE', WAITING, 0, sample - 1)) do sampled[i] = idOf(member) end
weigh(WAITING, waiting, sampled)
reply[2] = reply[2] + waiting
local aggregating, groups = 0, 0
local before, weighed, inWeighed = bytes, 0, 0
local function addUp(key)
  local size = need('zset', key)
  if size > 0 and weighed < sample then
    weigh(key, size, redis.call('ZRANGE', key, 0, sample - 1))
    weighed, inWeighed = weighed + 1, inWeighed + size
  end
  aggregating = aggregating + size
  return size
end
for _, group in ipairs(redis.call('SMEMBERS', GROUPS)) do
  if addUp(GROUP .. group) > 0 then groups = groups + 1 end
end
for _, set in ipairs(redis.call('ZRANGE', SETS, 0, -1)) do addUp(set) end
if inWeighed > 0 then bytes = before + (bytes - before) / inWeighed * aggregating end
local function sinceOf(key)
  local id = redis.call('LINDEX', PENDING, -1)
  if key ~= '' then
    local min, max = rangeOf(key)
    local member = redis.call('ZRANGEBYLEX', WAITING, min, max, 'LIMIT', 0, 1)[1]
    id = member and idOf(member)
  end
  return id and readTask(id, 'pending_since')[1] or nil
end
local isOn = isFlow()
local keys = isOn and redis.call('ZRANGE', RING, 0, 999) or { '' }
if isOn then
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', PARKED, '-inf', nowMs(), 'LIMIT', 0, 1000)) do keys[#keys + 1] = key end
  if redis.call('EXISTS', PENDING) == 1 and not redis.call('ZSCORE', RING, '') and not heldUntil('') then keys[#keys + 1] = '' end
end
local held = queueHeldUntil()
local head, first
for _, key in ipairs(keys) do
  local since = sinceOf(key)
  head = head or since
  if since and not held and (not first or tonumber(since) < tonumber(first)) then first = since end
end
if not head then head = sinceOf('') or sampled[1] and readTask(sampled[1], 'pending_since')[1] end
reply[7], reply[8] = aggregating, groups
reply[9] = head or 0
reply[10] = bytes
for i, key in ipairs(COUNTS) do reply[10 + i] = redis.call('GET', key) or 0 end
reply[15] = redis.call('EXISTS', PAUSED)
local l, left, kind = readLimits(), 0, 0
if l.c then left, kind = math.max(l.c - reply[1], 0), 1 end
if l.t then
  local _, tokens = bucket(l.full, l.t, l.b)
  if kind == 0 or tokens < left then left, kind = tokens, 2 end
end
reply[16], reply[17] = kind, left
reply[18] = (l.kc or l.kt) and 1 or 0
reply[19] = first or 0
return reply
`);

/**
 * Counts the pending tasks of some keys that the limits of each key hold back.
 *
 * ARGV[1]  1 for the keys that are parked, 0 for those in the ring; the first of these scripts counts the tasks without key, too
 * ARGV[2]  cursor; 0 to begin
 * ARGV[3]  approximate number of keys
 * ARGV[4]  now, in milliseconds, or '' for the clock of Redis
 *
 * Returns the next cursor, 0 at the end, and the numbers of tasks that have no place, that have no token, and of the others.
 */
export const COUNT_HELD = new Script(`
need('list', PENDING, ACTIVE)
needFlow()
local l, counts, free = readLimits(), { 0, 0 }, 0
local function add(key, size)
  local left, kind = math.huge, 1
  if l.kc then left = math.max(l.kc - activeOf(key), 0) end
  if l.kt then
    local _, tokens = bucket(redis.call('ZSCORE', RATES, key), l.kt, l.kb)
    if tokens < left then left, kind = tokens, 2 end
  end
  counts[kind] = counts[kind] + math.max(size - left, 0)
  free = free + math.min(size, left)
end
local found = redis.call('ZSCAN', ARGV[1] == '1' and PARKED or RING, ARGV[2], 'COUNT', ARGV[3])
if ARGV[1] == '0' and ARGV[2] == '0' then add('', redis.call('LLEN', PENDING)) end
for i = 1, #found[2], 2 do
  local key = found[2][i]
  if key ~= '' then add(key, redis.call('ZLEXCOUNT', WAITING, rangeOf(key))) end
end
return { found[1], counts[1], counts[2], free }
`);

/**
 * Reads a task.
 *
 * ARGV[1]  id
 *
 * Returns {} if there is no such task; else its state, msg, result, progress, and when its lease ends or it is due.
 */
export const TASK = new Script(`
local id, SCORES = ARGV[1], { active = LEASE, scheduled = SCHEDULED, retry = RETRY }
need('hash', TASK .. id)
need('zset', LEASE, SCHEDULED, RETRY)
local task = redis.call('HMGET', TASK .. id, 'state', 'msg', 'result', 'x:progress')
if not task[2] then return {} end
local source = SCORES[task[1]]
task[5] = source and redis.call('ZSCORE', source, id)
return task
`);

/**
 * Reads a range of a zset, of a list from its end, or of the pending tasks with keys. Ids without a task are left out.
 *
 * ARGV[1]  key of the LIST or ZSET
 * ARGV[2]  state of its tasks
 * ARGV[3]  index of the first task
 * ARGV[4]  index of the last task
 * ARGV[5]  bytes of messages after which no more tasks are read
 * ARGV[6]  1 to read what is left of their locks, and no leases
 *
 * Returns the number of ids that were read; then per task id, msg, result, progress, its score (since when it is pending in nanoseconds,
 * or when its lease ends if it is active), recoveries, and milliseconds until its lock ends.
 */
export const READ_TASKS = new Script(`
local KEY, first, last, bytes, isWhole = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local isList, isLeased = KEY == ACTIVE or KEY == PENDING, ARGV[2] == 'active' and not isWhole
if isLeased then need('zset', LEASE) end
need(isList and 'list' or 'zset', KEY)
local rows, step = nil, 2
if isList then
  local found = redis.call('LRANGE', KEY, -last - 1, -first - 1)
  rows, step = {}, 1
  for i = #found, 1, -1 do rows[#rows + 1] = found[i] end
else rows = redis.call('ZRANGE', KEY, first, last, 'WITHSCORES') end
local function lockLeft(id, lock)
  return lock and lock ~= '' and redis.pcall('GET', lock) == id and redis.call('PTTL', lock) or 0
end
local reply = { 0 }
for i = 1, #rows, step do
  if bytes <= 0 then break end
  reply[1] = reply[1] + 1
  local id, score = rows[i], not isList and rows[i + 1]
  if KEY == WAITING then id, score = idOf(id), false end
  local task = readTask(id, 'msg', 'result', 'x:progress', 'pending_since', 'x:recoveries', 'unique_key')
  if task[1] then
    if isLeased then score = redis.call('ZSCORE', LEASE, id) end
    local at, left = #reply, isWhole and lockLeft(id, task[6] or lockIn(task[1])) or 0
    reply[at + 1], reply[at + 2], reply[at + 3], reply[at + 4] = id, task[1], task[2], task[3]
    reply[at + 5], reply[at + 6], reply[at + 7] = score or not isLeased and task[4], task[5], left
    bytes = bytes - #task[1]
  end
end
return reply
`);

/** asynq's: tasks per state whose memory is measured. */
const SAMPLE = 20;

const TASKS_PER_SCRIPT = 1_000;

export const INSPECTION = {
  queues: queueNames,

  async queueStats(redis, queue) {
    await requireQueue(redis, queue);
    const nowMs = redis.wallNowMs;
    const reply = itemsOf(await redis.runIn(queue, QUEUE_STATS, [SAMPLE, utcDay(nowMs)])).map(numberOf);
    const [active = 0, pending = 0, scheduled = 0, retry = 0, archived = 0, completed = 0] = reply;
    const [aggregating = 0, groupCount = 0, sinceNs = 0, memoryBytes = 0] = reply.slice(6);
    const [processed = 0, failed = 0, processedTotal = 0, failedTotal = 0, paused = 0] = reply.slice(10);
    const [kind = 0, left = 0, isKeyLimited = 0, runnableNs = 0] = reply.slice(15);
    // A number cannot represent these nanoseconds exactly.
    const waitedMs = (ns: number): number =>
      ns === 0 ? 0 : Math.max(nowMs - Math.round(ns / NANOS_PER_MS), 0);
    return {
      queue,
      counts: { active, pending, scheduled, retry, archived, completed, aggregating },
      groups: groupCount,
      latencyMs: waitedMs(sinceNs),
      runnableMs: paused === 0 ? waitedMs(runnableNs) : 0,
      held: heldOf(isKeyLimited === 1 ? await countByKeys(redis, queue) : [0, 0, pending], kind, left),
      memoryBytes,
      processed,
      failed,
      processedTotal,
      failedTotal,
      isPaused: paused === 1,
      atMs: nowMs,
    };
  },

  async history(redis, queue, days) {
    await requireQueue(redis, queue);
    return await readDays(redis, queue, days);
  },

  async task(redis, queue, id) {
    const [word, ...fields] = itemsOf(await redis.runIn(queue, TASK, [id]));
    const state = textOf(word);
    if (isTaskState(state)) return recordOf(redis, queue, id, state, fields);
    await requireQueue(redis, queue);
    throw taskNotFound(queue, id);
  },

  /** For active and pending tasks, which are in lists, Redis walks to the page: O(tasks before it). */
  async tasks(redis, queue, state, page, group) {
    await requireQueue(redis, queue);
    const records: TaskRecord[] = [];
    let skip = (page.page - 1) * page.size;
    for await (const { key, from, size } of rangesOf(redis, queue, state, group)) {
      for (let first = skip; first < size && records.length < page.size; first += TASKS_PER_SCRIPT) {
        const last = Math.min(first + Math.min(TASKS_PER_SCRIPT, page.size - records.length), size) - 1;
        const args = [key, state, from + first, from + last, Number.MAX_SAFE_INTEGER, 0];
        const reply = itemsOf(await redis.runIn(queue, READ_TASKS, args));
        for (const [id, ...fields] of rowsOf(reply, 1, 7))
          records.push(recordOf(redis, queue, textOf(id), state, fields));
      }
      if (records.length === page.size) break;
      skip = Math.max(skip - size, 0);
    }
    return records;
  },
} satisfies RedisOperations;

/** Reads the counts of the last days, today first. */
export async function readDays(redis: RedisAccess, queue: string, days: number): Promise<DayStats[]> {
  const keys = redis.keysOf(queue);
  const nowMs = redis.wallNowMs;
  const times = Array.from({ length: days }, (_, daysAgo) => nowMs - daysAgo * DAY_MS);
  const names = times.flatMap((ms) => [keys.processedOn(ms), keys.failedOn(ms)]);
  const counts = await redis.send((client) => client.mget(...names));
  return times.map((ms, day) => ({
    queue,
    date: utcDay(ms),
    processed: Number(counts[2 * day] ?? 0),
    failed: Number(counts[2 * day + 1] ?? 0),
  }));
}

/** Numbers of pending tasks for which their keys have no place, of those for which they have no token, and of the others. */
type HeldByKeys = [concurrency: number, rate: number, free: number];

async function countByKeys(redis: RedisAccess, queue: string): Promise<HeldByKeys> {
  const counts: HeldByKeys = [0, 0, 0];
  for (const isParked of [0, 1]) {
    for (let cursor = '0', isFirst = true; isFirst || cursor !== '0'; isFirst = false) {
      const reply = itemsOf(await redis.runIn(queue, COUNT_HELD, [isParked, cursor, TASKS_PER_SCRIPT]));
      cursor = textOf(reply[0]);
      for (const n of counts.keys()) counts[n] = (counts[n] ?? 0) + numberOf(reply[n + 1]);
    }
  }
  return counts;
}

/** @param kind - 1 if places of the queue limit how many tasks may start, 2 if its tokens do: to `left`; 0 if nothing does. */
function heldOf([concurrency, rate, free]: HeldByKeys, kind: number, left: number): QueueStats['held'] {
  const more = kind === 0 ? 0 : Math.max(free - left, 0);
  return { concurrency: concurrency + (kind === 1 ? more : 0), rate: rate + (kind === 2 ? more : 0) };
}

/** Returns the names in order, without queues whose keys could be keys of another queue. */
export async function queueNames(redis: RedisAccess): Promise<readonly string[]> {
  return (await redis.send((client) => client.smembers(QUEUES_KEY))).filter(hasOwnKeys).sort();
}

/** @throws EscapementError `ERR_QUEUE_NOT_FOUND` */
export async function requireQueue(redis: RedisAccess, queue: string): Promise<void> {
  const isThere = await redis.send((client) => client.sismember(QUEUES_KEY, queue));
  if (isThere !== 1) throw queueNotFound(queue);
}

/** @param score - its score in the zset of its state; for an active task when its lease ends. */
export function recordOf(
  redis: RedisAccess,
  queue: string,
  id: string,
  state: TaskState,
  [message, result, progress, score]: readonly ScriptReply[],
): TaskRecord {
  const nowMs = redis.wallNowMs;
  const isLater = state === 'scheduled' || state === 'retry';
  const atMs = msOfSeconds(numberOf(score));
  return {
    message: messageOrStandIn(queue, id, message),
    state,
    nextProcessAtMs: state === 'pending' ? nowMs : isLater ? atMs : 0,
    result: bytesOf(result),
    progress: Buffer.isBuffer(progress) ? textOf(progress) : undefined,
    isOrphaned: state === 'active' && atMs <= nowMs,
  };
}

/** A part of a key that holds tasks. */
interface Range {
  readonly key: string;
  /** Index of the first one. */
  readonly from: number;
  readonly size: number;
}

/** Yields where the tasks of a state are, in order. */
async function* rangesOf(
  redis: RedisAccess,
  queue: string,
  state: TaskState,
  group: string | undefined,
): AsyncGenerator<Range> {
  if (state === 'pending') yield* await inTurns(redis, queue);
  else
    for await (const key of allKeysOfTasks(redis, queue, state, group))
      yield { key, from: 0, size: await sizeOf(redis, queue, key) };
}

/** Returns the list of those without key, and ranges of those with keys: first those of the key whose turn is next. */
async function inTurns(redis: RedisAccess, queue: string): Promise<readonly Range[]> {
  const { pending, waiting, ring } = redis.keysOf(queue);
  const [listed, size, [key]] = await redis.send((client) =>
    Promise.all([client.llen(pending), client.zcard(waiting), client.zrangeBuffer(ring, '0', '0')]),
  );
  const list = { key: pending, from: 0, size: listed };
  const range = (from: number, end: number): Range => ({ key: waiting, from, size: end - from });
  if (key === undefined || key.length === 0) return [list, range(0, size)];
  const edge = (last: string): Buffer =>
    Buffer.concat([Buffer.from(`(${key.length}:`), key, Buffer.from(last)]);
  const [from, to] = await redis.send((client) =>
    Promise.all([client.zlexcount(waiting, '-', edge(':')), client.zlexcount(waiting, '-', edge(';'))]),
  );
  return [range(from, to), list, range(0, from), range(to, size)];
}
