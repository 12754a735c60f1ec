import { DAY_MS, utcDay } from '../../../core/units.ts';
import { requireDuration } from '../../task-options.ts';
import { leaseLost } from '../broker-errors.ts';
import type { LeasedTask, TaskFailure } from '../broker.ts';
import { Coalescer } from './coalescer.ts';
import { runUnderLease } from './leases.ts';
import { FREE_LOCK, LEASED, TRIM } from './lua.ts';
import type { RedisAccess } from './redis-access.ts';
import { Script, type ScriptArgument } from './script.ts';
import { encoded, listOf, numberOf, secondsDown, secondsUp } from './script-values.ts';

/**
 * `needCounts(today)`: fails if a count has a wrong type.
 * `count(name, n, today, expireAt)`: adds to the count of a day and to the total. A total that is not a number, or as large as Redis
 * can count, starts again, as asynq's does.
 */
const COUNT = `
local function needCounts(today)
  for _, name in ipairs({ 'processed', 'failed' }) do need('string', PREFIX .. name, PREFIX .. name .. ':' .. today) end
end
local function addTo(key, n)
  local sum = redis.pcall('INCRBY', key, n)
  if type(sum) == 'number' then return sum end
  redis.call('SET', key, n)
  return n
end
local function count(name, n, today, expireAt)
  local total = PREFIX .. name
  local day = total .. ':' .. today
  if addTo(day, n) == n then redis.call('EXPIREAT', day, expireAt) end
  addTo(total, n)
end
`;

/**
 * Completes tasks: they are retained as completed, or removed. Tasks whose lease is lost stay as they are; see lua.ts for what a
 * lease is.
 *
 * KEYS[1]   prefix of the queue's keys
 * ARGV[1]   today, as in the keys of counts
 * ARGV[2]   when today's count expires
 * ARGV[3…]  per task: id, epoch, lock or '', when its retention ends or '', msg if it is retained or ''
 *
 * Returns per task 1, or 0 if its lease is lost.
 */
export const COMPLETE = new Script(`${FREE_LOCK}${COUNT}
local ACTIVE, LEASE, COMPLETED = PREFIX .. 'active', PREFIX .. 'lease', PREFIX .. 'completed'
need('zset', LEASE)
need('list', ACTIVE)
need('string', PREFIX .. 'processed', PREFIX .. 'processed:' .. ARGV[1])
local asked, isRetained = {}, false
for i = 3, #ARGV, 5 do
  asked[#asked + 1] = ARGV[i]
  if ARGV[i + 3] ~= '' then isRetained = true end
end
if isRetained then need('zset', COMPLETED) end
local scores = redis.call('ZMSCORE', LEASE, unpack(asked))
local outcomes, seen, done, ids, gone = {}, {}, {}, {}, {}
for n, id in ipairs(asked) do
  local i = 5 * n - 2
  local tag = scores[n] and ARGV[i + 1] .. ':' .. scores[n]
  local isDone = tag and not seen[id] and redis.pcall('HGET', TASK .. id, 'x:lease') == tag
  if isDone then
    seen[id] = true
    done[#done + 1] = i
    ids[#ids + 1] = id
  end
  outcomes[n] = isDone and 1 or 0
end
if #done == 0 then return outcomes end
for _, i in ipairs(done) do
  local id, score = ARGV[i], ARGV[i + 3]
  redis.call('LREM', ACTIVE, 1, id)
  if score ~= '' then
    redis.call('ZADD', COMPLETED, score, id)
    redis.call('HSET', TASK .. id, 'msg', ARGV[i + 4], 'state', 'completed')
    redis.call('HDEL', TASK .. id, 'x:lease')
  else
    gone[#gone + 1] = TASK .. id
  end
  freeLock(ARGV[i + 2], id)
end
redis.call('ZREM', LEASE, unpack(ids))
if #gone > 0 then redis.call('DEL', unpack(gone)) end
count('processed', #done, ARGV[1], ARGV[2])
redis.pcall('PUBLISH', PREFIX .. 'x:settled', table.concat(ids, '\\0'))
return outcomes
`);

/**
 * A task has failed, and will run again.
 *
 * KEYS[1]  prefix of the queue's keys
 * ARGV[1]  id
 * ARGV[2]  epoch
 * ARGV[3]  today, as in the keys of counts
 * ARGV[4]  when today's counts expire
 * ARGV[5]  msg
 * ARGV[6]  1 if its worker was lost
 * ARGV[7]  when it is due
 * ARGV[8]  1 if the run counts as a failure
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const RETRY = new Script(`${LEASED}${COUNT}
local id, today, expireAt, RETRY = ARGV[1], ARGV[3], ARGV[4], PREFIX .. 'retry'
needLeased(id)
need('zset', RETRY)
needCounts(today)
if not holds(id, ARGV[2]) then return 0 end
writeAnyway(RETRY)
redis.call('ZADD', RETRY, ARGV[7], id)
endLease(id)
redis.call('HSET', TASK .. id, 'msg', ARGV[5], 'state', 'retry')
if ARGV[6] == '1' then redis.call('HINCRBY', TASK .. id, 'x:recoveries', 1) end
if ARGV[8] == '1' then
  count('processed', 1, today, expireAt)
  count('failed', 1, today, expireAt)
end
return 1
`);

/**
 * A task has failed for the last time. The archive gives up tasks that are too old or too many, with their hashes and locks: an
 * archive that only drops ids, as asynq's does in some cases, leaves hashes that block these ids for ever.
 *
 * KEYS, ARGV[1…6]  those of RETRY
 * ARGV[7]          now
 * ARGV[8]          lock or ''
 * ARGV[9]          tasks that were archived by then are given up
 * ARGV[10]         number of tasks that the archive keeps
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const ARCHIVE = new Script(`${FREE_LOCK}${LEASED}${COUNT}${TRIM}
local id, today, expireAt = ARGV[1], ARGV[3], ARGV[4]
needLeased(id)
need('zset', ARCHIVED)
needCounts(today)
if not holds(id, ARGV[2]) then return 0 end
writeAnyway(ARCHIVED)
redis.call('ZADD', ARCHIVED, ARGV[7], id)
endLease(id)
redis.call('HSET', TASK .. id, 'msg', ARGV[5], 'state', 'archived')
if ARGV[6] == '1' then redis.call('HINCRBY', TASK .. id, 'x:recoveries', 1) end
freeLock(ARGV[8], id)
count('processed', 1, today, expireAt)
count('failed', 1, today, expireAt)
trim(ARGV[9], tonumber(ARGV[10]), 1000)
redis.pcall('PUBLISH', PREFIX .. 'x:settled', id)
return 1
`);

/**
 * Removes a task that was cancelled; no count changes.
 *
 * KEYS[1]  prefix of the queue's keys
 * ARGV[1]  id
 * ARGV[2]  epoch
 * ARGV[3]  lock or ''
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const DISCARD = new Script(`${FREE_LOCK}${LEASED}
local id = ARGV[1]
needLeased(id)
if not holds(id, ARGV[2]) then return 0 end
endLease(id)
redis.call('DEL', TASK .. id)
freeLock(ARGV[3], id)
redis.pcall('PUBLISH', PREFIX .. 'x:settled', id)
return 1
`);

/**
 * Writes a result or the progress of a run. It never creates the hash of a task that was removed: without a message, that would
 * block its id for ever.
 *
 * KEYS[1]  prefix of the queue's keys
 * ARGV[1]  id
 * ARGV[2]  epoch
 * ARGV[3]  field
 * ARGV[4]  value
 * ARGV[5]  channel that is notified, or ''
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const WRITE_FIELD = new Script(`${LEASED}
local id = ARGV[1]
need('hash', TASK .. id)
need('zset', LEASE)
if not holds(id, ARGV[2]) then return 0 end
redis.call('HSET', TASK .. id, ARGV[3], ARGV[4])
if ARGV[5] ~= '' then redis.pcall('PUBLISH', ARGV[5], id) end
return 1
`);

/** How long asynq keeps the count of a day. */
const DAY_COUNT_MS = 90 * DAY_MS;

/** Completes tasks. Calls of one turn of the event loop share a script. */
export class Completing {
  readonly #tasks: Coalescer<LeasedTask, number>;

  constructor(redis: RedisAccess) {
    const shared = redis.for('complete');
    this.#tasks = new Coalescer({
      run: (queue, tasks) => completeAll(shared, queue, tasks),
      bytesOf: ({ message }) => (message.retentionMs > 0 ? message.payload.length : 0),
    });
  }

  async complete(task: LeasedTask): Promise<void> {
    if ((await this.#tasks.submit(task.message.queue, task)) !== 1) throw leaseLost(task);
  }
}

async function completeAll(
  redis: RedisAccess,
  queue: string,
  tasks: readonly LeasedTask[],
): Promise<readonly number[]> {
  const nowMs = redis.wallNowMs;
  const args: ScriptArgument[] = [utcDay(nowMs), secondsUp(nowMs + DAY_COUNT_MS)];
  for (const { message, epoch } of tasks) {
    args.push(message.id, epoch, message.uniqueKey);
    if (message.retentionMs === 0) args.push('', '');
    else args.push(secondsUp(nowMs + message.retentionMs), encoded({ ...message, completedAtMs: nowMs }));
  }
  return listOf(await redis.runIn(queue, COMPLETE, args)).map(numberOf);
}

export async function retry(
  redis: RedisAccess,
  task: LeasedTask,
  failure: TaskFailure,
  atMs: number,
): Promise<void> {
  requireDuration('atMs', atMs);
  const nowMs = redis.wallNowMs;
  const retried = task.message.retried + (failure.isFailure ? 1 : 0);
  const args = failureArguments(task, retried, failure, nowMs);
  args.push(secondsUp(atMs), failure.isFailure ? 1 : 0);
  await runUnderLease(redis, task, RETRY, args);
}

export async function archive(redis: RedisAccess, task: LeasedTask, failure: TaskFailure): Promise<void> {
  const nowMs = redis.wallNowMs;
  const args = failureArguments(task, task.message.retried, failure, nowMs);
  args.push(secondsUp(nowMs), task.message.uniqueKey, ...archiveLimits(redis, nowMs));
  await runUnderLease(redis, task, ARCHIVE, args);
}

/** ARGV[1…6] of RETRY and ARCHIVE. */
function failureArguments(
  { message, epoch }: LeasedTask,
  retried: number,
  failure: TaskFailure,
  nowMs: number,
): ScriptArgument[] {
  return [
    message.id,
    epoch,
    utcDay(nowMs),
    secondsUp(nowMs + DAY_COUNT_MS),
    encoded({ ...message, retried, lastError: failure.error, lastFailedAtMs: nowMs }),
    failure.isRecovery === true ? 1 : 0,
  ];
}

export async function discard(redis: RedisAccess, task: LeasedTask): Promise<void> {
  const { id, uniqueKey } = task.message;
  await runUnderLease(redis, task, DISCARD, [id, task.epoch, uniqueKey]);
}

export function writeResult(redis: RedisAccess, task: LeasedTask, result: Uint8Array): Promise<void> {
  const args = [task.message.id, task.epoch, 'result', Buffer.from(result), ''];
  return runUnderLease(redis, task, WRITE_FIELD, args);
}

export function writeProgress(redis: RedisAccess, task: LeasedTask, progress: string): Promise<void> {
  const { progressChannel } = redis.keysOf(task.message.queue);
  const args = [task.message.id, task.epoch, 'x:progress', progress, progressChannel];
  return runUnderLease(redis, task, WRITE_FIELD, args);
}

/** What the archive gives up, as arguments of the scripts that trim it. */
export function archiveLimits(redis: RedisAccess, nowMs: number): [cutoffS: number, max: number] {
  const { maxArchived, archiveRetentionMs } = redis.settings;
  return [secondsDown(nowMs - archiveRetentionMs), maxArchived];
}
