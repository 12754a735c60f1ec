import { requireIntegerAtLeast } from '../../../core/validate.ts';
import { hasOwnKeys } from '../../require-text.ts';
import { isTaskState, type TaskState } from '../../task-state.ts';
import { queueNotFound, taskNotFound } from '../broker-errors.ts';
import type { DayStats, Page, QueueStats, TaskRecord } from '../broker.ts';
import { groups } from './groups.ts';
import { groupKeyOfSet, QUEUES_KEY, utcDay, type QueueKeys } from './keys.ts';
import type { RedisAccess } from './redis-access.ts';
import { Script, type ScriptReply } from './script.ts';
import { bytesOf, listOf, messageOrStandIn, msOfSeconds, numberOf, textOf } from './script-values.ts';

/* Operations that only read. */

/**
 * Reads the numbers of a queue. Its memory is estimated from the first tasks of each state, as in asynq.
 *
 * KEYS[1]   LIST active
 * KEYS[2]   LIST pending
 * KEYS[3]   ZSET scheduled
 * KEYS[4]   ZSET retry
 * KEYS[5]   ZSET archived
 * KEYS[6]   ZSET completed
 * KEYS[7]   SET groups
 * KEYS[8]   ZSET of sets
 * KEYS[9]   STRING processed today
 * KEYS[10]  STRING failed today
 * KEYS[11]  STRING processed
 * KEYS[12]  STRING failed
 * KEYS[13]  STRING paused
 * ARGV[1]   prefix of tasks
 * ARGV[2]   prefix of groups
 * ARGV[3]   number of tasks per state, and of groups, whose memory is measured
 *
 * Returns the sizes of KEYS[1] to KEYS[6], the number of aggregating tasks, the number of groups, since when the next task is
 * pending in nanoseconds, bytes, the values of KEYS[9] to KEYS[12], and 1 if the queue is paused.
 */
export const QUEUE_STATS = new Script(`
local TASK, GROUP, sample = ARGV[1], ARGV[2], tonumber(ARGV[3])
local bytes = 0
need('list', KEYS[1], KEYS[2])
need('zset', KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[8])
need('set', KEYS[7])
need('string', KEYS[9], KEYS[10], KEYS[11], KEYS[12])
local function weigh(key, size, ids)
  local sum = 0
  for _, id in ipairs(ids) do sum = sum + (redis.call('MEMORY', 'USAGE', TASK .. id) or 0) end
  if #ids > 0 then bytes = bytes + sum / #ids * size + (redis.call('MEMORY', 'USAGE', key) or 0) end
end
local reply = {}
for i = 1, 6 do
  local size
  if i <= 2 then
    size = redis.call('LLEN', KEYS[i])
    weigh(KEYS[i], size, redis.call('LRANGE', KEYS[i], -sample, -1))
  else
    size = redis.call('ZCARD', KEYS[i])
    weigh(KEYS[i], size, redis.call('ZRANGE', KEYS[i], 0, sample - 1))
  end
  reply[i] = size
end
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
for _, group in ipairs(redis.call('SMEMBERS', KEYS[7])) do
  if addUp(GROUP .. group) > 0 then groups = groups + 1 end
end
for _, set in ipairs(redis.call('ZRANGE', KEYS[8], 0, -1)) do addUp(set) end
if inWeighed > 0 then bytes = before + (bytes - before) / inWeighed * aggregating end
local head = redis.call('LINDEX', KEYS[2], -1)
reply[7], reply[8] = aggregating, groups
reply[9] = head and readTask(TASK .. head, 'pending_since')[1] or 0
reply[10] = bytes
for i = 9, 12 do reply[i + 2] = redis.call('GET', KEYS[i]) or 0 end
reply[15] = redis.call('EXISTS', KEYS[13])
return reply
`);

/**
 * Reads a task.
 *
 * KEYS[1]  HASH of the task
 * KEYS[2]  ZSET lease
 * KEYS[3]  ZSET scheduled
 * KEYS[4]  ZSET retry
 * ARGV[1]  id
 *
 * Returns {} if there is no such task; else msg, state, result, progress, when its lease ends, when it is due.
 */
export const TASK = new Script(`
need('hash', KEYS[1])
need('zset', KEYS[2], KEYS[3], KEYS[4])
local task = redis.call('HMGET', KEYS[1], 'msg', 'state', 'result', 'x:progress')
if not task[1] then return {} end
local source = task[2] == 'scheduled' and KEYS[3] or task[2] == 'retry' and KEYS[4]
local lease = task[2] == 'active' and redis.call('ZSCORE', KEYS[2], ARGV[1])
return { task[1], task[2], task[3], task[4], lease, source and redis.call('ZSCORE', source, ARGV[1]) }
`);

/**
 * Reads a range of a zset, or of a list from its end. Ids without a task are left out.
 *
 * KEYS[1]  LIST or ZSET
 * KEYS[2]  ZSET lease
 * ARGV[1]  `list` or `zset`
 * ARGV[2]  index of the first task
 * ARGV[3]  index of the last task
 * ARGV[4]  prefix of tasks
 * ARGV[5]  1 to return the ends of leases instead of scores
 *
 * Returns per task id, msg, result, progress, and its score or when its lease ends.
 */
export const LIST_TASKS = new Script(`
local isList = ARGV[1] == 'list'
local first, last = tonumber(ARGV[2]), tonumber(ARGV[3])
need('zset', KEYS[2])
need(ARGV[1], KEYS[1])
local rows
if isList then rows = redis.call('LRANGE', KEYS[1], -last - 1, -first - 1)
else rows = redis.call('ZRANGE', KEYS[1], first, last, 'WITHSCORES') end
local reply = {}
local function show(id, score)
  local task = readTask(ARGV[4] .. id, 'msg', 'result', 'x:progress')
  if not task[1] then return end
  local at = #reply
  if ARGV[5] == '1' then score = redis.call('ZSCORE', KEYS[2], id) end
  reply[at + 1], reply[at + 2], reply[at + 3], reply[at + 4], reply[at + 5] = id, task[1], task[2], task[3], score
end
if isList then for i = #rows, 1, -1 do show(rows[i], false) end
else for i = 1, #rows, 2 do show(rows[i], rows[i + 1]) end end
return reply
`);

const DAY_MS = 86_400_000;
const NANOS_PER_MS = 1_000_000;

/** asynq's: tasks per state whose memory is measured. */
const SAMPLE = 20;

const TASKS_PER_SCRIPT = 1_000;

/** By name; without queues whose keys could be keys of another queue. */
export async function queueNames(redis: RedisAccess): Promise<readonly string[]> {
  return (await redis.send((client) => client.smembers(QUEUES_KEY))).filter(hasOwnKeys).sort();
}

/** @throws EscapementError `ERR_QUEUE_NOT_FOUND` */
export async function requireQueue(redis: RedisAccess, queue: string): Promise<void> {
  const isThere = await redis.send((client) => client.sismember(QUEUES_KEY, queue));
  if (isThere !== 1) throw queueNotFound(queue);
}

export async function queueStats(redis: RedisAccess, queue: string): Promise<QueueStats> {
  const keys = redis.keysOf(queue);
  await requireQueue(redis, queue);
  const nowMs = redis.wallNowMs;
  const today = [keys.processedOn(nowMs), keys.failedOn(nowMs)];
  const all = [...placesOf(keys), ...today, keys.processed, keys.failed, keys.paused];
  const args = [keys.taskPrefix, keys.groupPrefix, SAMPLE];
  const reply = listOf(await redis.run(QUEUE_STATS, all, args)).map(numberOf);
  const [active = 0, pending = 0, scheduled = 0, retry = 0, archived = 0, completed = 0] = reply;
  const [aggregating = 0, groupCount = 0, sinceNs = 0, memoryBytes = 0] = reply.slice(6);
  const [processed = 0, failed = 0, processedTotal = 0, failedTotal = 0, paused = 0] = reply.slice(10);
  return {
    queue,
    counts: { active, pending, scheduled, retry, archived, completed, aggregating },
    groups: groupCount,
    latencyMs: sinceNs === 0 ? 0 : Math.max(nowMs - sinceNs / NANOS_PER_MS, 0),
    memoryBytes,
    processed,
    failed,
    processedTotal,
    failedTotal,
    isPaused: paused === 1,
    atMs: nowMs,
  };
}

export async function history(redis: RedisAccess, queue: string, days: number): Promise<readonly DayStats[]> {
  requireIntegerAtLeast('days', 1, days);
  const keys = redis.keysOf(queue);
  await requireQueue(redis, queue);
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

export async function task(redis: RedisAccess, queue: string, id: string): Promise<TaskRecord> {
  const keys = redis.keysOf(queue);
  const reply = listOf(await redis.run(TASK, [keys.task(id), keys.lease, keys.scheduled, keys.retry], [id]));
  const state = textOf(reply[1]);
  if (!isTaskState(state)) {
    await requireQueue(redis, queue);
    throw taskNotFound(queue, id);
  }
  const [message, , result, progress, lease, due] = reply;
  const score = state === 'active' ? lease : due;
  return recordOf(redis, queue, id, state, { message, result, progress, score });
}

/** For active and pending tasks, which are in lists, Redis walks to the page: O(tasks before it). */
export async function tasks(
  redis: RedisAccess,
  queue: string,
  state: TaskState,
  page: Page,
  group: string | undefined,
): Promise<readonly TaskRecord[]> {
  requireIntegerAtLeast('page.page', 1, page.page);
  requireIntegerAtLeast('page.size', 1, page.size);
  await requireQueue(redis, queue);
  const records: TaskRecord[] = [];
  let skip = (page.page - 1) * page.size;
  for (const source of await sourcesOf(redis, queue, state, group, true)) {
    if (skip >= source.size) {
      skip -= source.size;
      continue;
    }
    await readFrom(redis, queue, state, source, skip, page.size, records);
    if (records.length >= page.size) break;
    skip = 0;
  }
  return records;
}

async function readFrom(
  redis: RedisAccess,
  queue: string,
  state: TaskState,
  source: Source,
  skip: number,
  upTo: number,
  records: TaskRecord[],
): Promise<void> {
  const { lease, taskPrefix } = redis.keysOf(queue);
  const kind = source.isList ? 'list' : 'zset';
  const needsLease = state === 'active' ? 1 : 0;
  for (let first = skip; first < source.size && records.length < upTo; first += TASKS_PER_SCRIPT) {
    const last = first + Math.min(TASKS_PER_SCRIPT, upTo - records.length) - 1;
    const args = [kind, first, last, taskPrefix, needsLease];
    const reply = listOf(await redis.run(LIST_TASKS, [source.key, lease], args));
    for (let at = 0; at < reply.length; at += 5) {
      const [id, message, result, progress, score] = reply.slice(at, at + 5);
      records.push(recordOf(redis, queue, textOf(id), state, { message, result, progress, score }));
    }
  }
}

interface Fields {
  readonly message: ScriptReply | undefined;
  readonly result: ScriptReply | undefined;
  readonly progress: ScriptReply | undefined;
  /** Its score in the zset of its state; for an active task when its lease ends. */
  readonly score: ScriptReply | undefined;
}

function recordOf(
  redis: RedisAccess,
  queue: string,
  id: string,
  state: TaskState,
  { message, result, progress, score }: Fields,
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

/** A key that holds tasks of a state. */
export interface Source {
  readonly key: string;
  readonly isList: boolean;
  /** The group; empty for a set and for other states. */
  readonly group: string;
  readonly size: number;
}

/** The keys that hold ids, in the order in which scripts take them. */
export function placesOf(keys: QueueKeys): string[] {
  const { active, pending, scheduled, retry, archived, completed, groups: names, aggregationSets } = keys;
  return [active, pending, scheduled, retry, archived, completed, names, aggregationSets];
}

/**
 * Returns the keys that hold the tasks of a state.
 *
 * @param group - for aggregating tasks; undefined for those of all groups.
 * @param withSets - whether to include tasks in sets, which a server is aggregating.
 */
export async function sourcesOf(
  redis: RedisAccess,
  queue: string,
  state: TaskState,
  group: string | undefined,
  withSets: boolean,
): Promise<readonly Source[]> {
  const keys = redis.keysOf(queue);
  if (state !== 'aggregating') {
    const key = keys[state];
    const isList = state === 'active' || state === 'pending';
    const size = await redis.send((client) => (isList ? client.llen(key) : client.zcard(key)));
    return [{ key, isList, group: '', size }];
  }
  const sources =
    group === undefined
      ? (await groups(redis, queue)).map((info) => zsetSource(keys.group(info.group), info.size, info.group))
      : [await measured(redis, keys.group(group), group)];
  return withSets ? [...sources, ...(await setsOf(redis, keys, group))] : sources;
}

async function setsOf(redis: RedisAccess, keys: QueueKeys, group: string | undefined): Promise<Source[]> {
  const names = await redis.send((client) => client.zrange(keys.aggregationSets, '0', '-1'));
  const ofGroup = names.filter((key) => group === undefined || groupKeyOfSet(key) === keys.group(group));
  return await Promise.all(ofGroup.map((key) => measured(redis, key, '')));
}

async function measured(redis: RedisAccess, key: string, group: string): Promise<Source> {
  return zsetSource(key, await redis.send((client) => client.zcard(key)), group);
}

function zsetSource(key: string, size: number, group: string): Source {
  return { key, isList: false, group, size };
}
