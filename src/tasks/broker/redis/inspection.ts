import { DAY_MS, NANOS_PER_MS, utcDay } from '../../../core/units.ts';
import { hasOwnKeys } from '../../argument-checks.ts';
import { isTaskState, type TaskState } from '../../task-state.ts';
import { queueNotFound, taskNotFound } from '../broker-errors.ts';
import { MEMORY_SAMPLE } from '../broker-settings.ts';
import type { DayStats, QueueStats, TaskRecord } from '../broker.ts';
import { groupsFrom } from './groups.ts';
import { QUEUES_KEY } from './keys.ts';
import type { RedisAccess, RedisOperations } from './redis-access.ts';
import { bytesOf, itemsOf, messageOrStandIn, msOfSeconds, numberOf, textOf } from './replies.ts';
import { MOST_READ, Script, type ScriptReply } from './script.ts';

/**
 * Reads the numbers of a queue. Its memory is estimated from the first tasks of each state, as in asynq. Groups are counted up to ARGV[3]:
 * for the others LIST_GROUPS goes on.
 *
 * ARGV[1]  number of tasks per state, and of groups, whose memory is measured
 * ARGV[2]  today, as in the keys of counts
 * ARGV[3]  approximate number of groups
 *
 * Returns the number of active, pending, scheduled, retry, archived, completed and aggregating tasks, the number of groups, since
 * when the next task is pending in nanoseconds, bytes without aggregating tasks, the runs and failed runs of today, all of them, 1 if the
 * queue is paused, 1 or 2 if its concurrency or its rate holds all tasks back, how many tasks that lets start, 1 if keys have limits, since
 * when the first of those tasks is pending that nothing holds back, bytes per aggregating task, and the cursor of LIST_GROUPS.
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
local function firstsOf(keys)
  local firsts = #keys > 0 and redis.call('HMGET', FIRSTS, unpack(keys)) or {}
  for i, key in ipairs(keys) do
    if key == '' then firsts[i] = redis.call('LINDEX', PENDING, -1) end
  end
  return firsts
end
local waiting, sampled = tonumber(redis.call('GET', WAITING)) or 0, {}
local found = redis.call('HRANDFIELD', FIRSTS, sample, 'WITHVALUES')
for i = 2, #found, 2 do if found[i] ~= '' then sampled[#sampled + 1] = found[i] end end
weigh(FIRSTS, waiting, sampled)
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
local someGroups = redis.call('SSCAN', GROUPS, 0, 'COUNT', ARGV[3])
for _, group in ipairs(someGroups[2]) do
  if addUp(GROUP .. group) > 0 then groups = groups + 1 end
end
for _, set in ipairs(redis.call('ZRANGE', SETS, 0, -1)) do addUp(set) end
local keys = redis.call('LRANGE', RING, 0, 999)
for _, key in ipairs(redis.call('ZRANGEBYSCORE', PARKED, '-inf', nowMs(), 'LIMIT', 0, 1000)) do keys[#keys + 1] = key end
if redis.call('HEXISTS', FIRSTS, '') == 0 and not heldUntil('') then keys[#keys + 1] = '' end
local held = queueHeldUntil()
local head, first
for _, id in ipairs(firstsOf(keys)) do
  local since = id and readTask(id, 'pending_since')[1]
  head = head or since
  if since and not held and (not first or tonumber(since) < tonumber(first)) then first = since end
end
if not head then
  local parked = redis.call('ZRANGE', PARKED, 0, 0)
  local id = firstsOf({ parked[1] or '' })[1]
  head = id and readTask(id, 'pending_since')[1]
end
reply[7], reply[8] = aggregating, groups
reply[9] = head or 0
reply[10] = before
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
reply[20] = inWeighed > 0 and (bytes - before) / inWeighed or 0
reply[21] = someGroups[1]
return reply
`);

/**
 * Counts the pending tasks of some keys that the limits of each key hold back.
 *
 * ARGV[1]  cursor; 0 to begin: the first of these scripts counts the tasks without key, too
 * ARGV[2]  approximate number of keys
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
local found = redis.call('HSCAN', FIRSTS, ARGV[1], 'COUNT', ARGV[2])
if ARGV[1] == '0' then add('', redis.call('LLEN', PENDING)) end
for i = 1, #found[2], 2 do
  local key = found[2][i]
  if key ~= '' then add(key, pendingOf(key)) end
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

export const INSPECTION = {
  queues: queueNames,

  async queueStats(redis, queue) {
    await requireQueue(redis, queue);
    const nowMs = redis.wallNowMs;
    const args = [MEMORY_SAMPLE, utcDay(nowMs), MOST_READ];
    const items = itemsOf(await redis.runIn(queue, QUEUE_STATS, args));
    const reply = items.map(numberOf);
    const [active = 0, pending = 0, scheduled = 0, retry = 0, archived = 0, completed = 0] = reply;
    const [someAggregating = 0, someGroups = 0, sinceNs = 0, bytes = 0] = reply.slice(6);
    const [processed = 0, failed = 0, processedTotal = 0, failedTotal = 0, paused = 0] = reply.slice(10);
    const [kind = 0, left = 0, isKeyLimited = 0, runnableNs = 0, bytesInGroup = 0] = reply.slice(15);
    let [aggregating, groups] = [someAggregating, someGroups];
    for await (const { size } of groupsFrom(redis, queue, textOf(items[20]))) {
      aggregating += size;
      groups++;
    }
    // A number cannot represent these nanoseconds exactly.
    const waitedMs = (ns: number): number =>
      ns === 0 ? 0 : Math.max(nowMs - Math.round(ns / NANOS_PER_MS), 0);
    return {
      queue,
      counts: { active, pending, scheduled, retry, archived, completed, aggregating },
      groups,
      latencyMs: waitedMs(sinceNs),
      runnableMs: paused === 0 ? waitedMs(runnableNs) : 0,
      held: heldOf(isKeyLimited === 1 ? await countByKeys(redis, queue) : [0, 0, pending], kind, left),
      memoryBytes: bytes + bytesInGroup * aggregating,
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
  for (let cursor = ''; cursor !== '0';) {
    const reply = itemsOf(await redis.runIn(queue, COUNT_HELD, [cursor || '0', MOST_READ]));
    cursor = textOf(reply[0]);
    for (const n of counts.keys()) counts[n] = (counts[n] ?? 0) + numberOf(reply[n + 1]);
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
