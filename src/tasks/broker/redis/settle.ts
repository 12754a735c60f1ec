import type { TaskMessage } from '../../task-message.ts';
import { requireDuration } from '../../task-options.ts';
import { leaseLost } from '../broker-errors.ts';
import type { LeasedTask, TaskFailure } from '../broker.ts';
import { Coalescer } from './coalescer.ts';
import { utcDay } from './keys.ts';
import { runUnderLease } from './leases.ts';
import { FREE_LOCK, HOLDS, TRIM, WRITE_ANYWAY } from './lua.ts';
import type { RedisAccess } from './redis-access.ts';
import { Script, type ScriptArgument } from './script.ts';
import { encoded, listOf, numberOf, secondsDown, secondsUp } from './script-values.ts';

/**
 * `count(total, day, n, expireAt)`: adds to the count of a day and to the total. A total that is not a number, or as large as
 * Redis can count, starts again, as asynq's does.
 */
const COUNT = `
local function add(key, n)
  local sum = redis.pcall('INCRBY', key, n)
  if type(sum) == 'number' then return sum end
  redis.call('SET', key, n)
  return n
end
local function count(total, day, n, expireAt)
  if add(day, n) == n then redis.call('EXPIREAT', day, expireAt) end
  add(total, n)
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
local PREFIX = KEYS[1]
local ACTIVE, LEASE, COMPLETED = PREFIX .. 'active', PREFIX .. 'lease', PREFIX .. 'completed'
local TASK, PROCESSED = PREFIX .. 't:', PREFIX .. 'processed'
local TODAY = PROCESSED .. ':' .. ARGV[1]
need('zset', LEASE)
need('list', ACTIVE)
need('string', PROCESSED, TODAY)
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
count(PROCESSED, TODAY, #done, ARGV[2])
redis.pcall('PUBLISH', PREFIX .. 'x:settled', table.concat(ids, '\\0'))
return outcomes
`);

/**
 * A task has failed, and will run again.
 *
 * KEYS[1]  HASH of the task
 * KEYS[2]  LIST active
 * KEYS[3]  ZSET lease
 * KEYS[4]  ZSET retry
 * KEYS[5]  STRING processed
 * KEYS[6]  STRING processed today
 * KEYS[7]  STRING failed
 * KEYS[8]  STRING failed today
 * ARGV[1]  id
 * ARGV[2]  epoch
 * ARGV[3]  msg
 * ARGV[4]  when it is due
 * ARGV[5]  1 if the run counts as a failure
 * ARGV[6]  1 if its worker was lost
 * ARGV[7]  when today's counts expire
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const RETRY = new Script(`${HOLDS}${COUNT}${WRITE_ANYWAY}
local TASK, id = KEYS[1], ARGV[1]
need('hash', TASK)
need('list', KEYS[2])
need('zset', KEYS[3], KEYS[4])
need('string', KEYS[5], KEYS[6], KEYS[7], KEYS[8])
if not holds(TASK, KEYS[3], id, ARGV[2]) then return 0 end
writeAnyway(KEYS[4])
redis.call('ZADD', KEYS[4], ARGV[4], id)
redis.call('LREM', KEYS[2], 1, id)
redis.call('ZREM', KEYS[3], id)
redis.call('HSET', TASK, 'msg', ARGV[3], 'state', 'retry')
redis.call('HDEL', TASK, 'x:lease')
if ARGV[6] == '1' then redis.call('HINCRBY', TASK, 'x:recoveries', 1) end
if ARGV[5] == '1' then
  count(KEYS[5], KEYS[6], 1, ARGV[7])
  count(KEYS[7], KEYS[8], 1, ARGV[7])
end
return 1
`);

/**
 * A task has failed for the last time. The archive gives up tasks that are too old or too many, with their hashes and locks: an
 * archive that only drops ids, as asynq's does in some cases, leaves hashes that block these ids for ever.
 *
 * KEYS      those of RETRY, with ZSET archived as KEYS[4]
 * ARGV[1]   id
 * ARGV[2]   epoch
 * ARGV[3]   msg
 * ARGV[4]   now
 * ARGV[5]   1 if its worker was lost
 * ARGV[6]   when today's counts expire
 * ARGV[7]   lock or ''
 * ARGV[8]   prefix of tasks
 * ARGV[9]   tasks that were archived by then are given up
 * ARGV[10]  number of tasks that the archive keeps
 * ARGV[11]  channel of settled tasks
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const ARCHIVE = new Script(`${FREE_LOCK}${HOLDS}${COUNT}${TRIM}${WRITE_ANYWAY}
local TASK, id = KEYS[1], ARGV[1]
need('hash', TASK)
need('list', KEYS[2])
need('zset', KEYS[3], KEYS[4])
need('string', KEYS[5], KEYS[6], KEYS[7], KEYS[8])
if not holds(TASK, KEYS[3], id, ARGV[2]) then return 0 end
writeAnyway(KEYS[4])
redis.call('ZADD', KEYS[4], ARGV[4], id)
redis.call('LREM', KEYS[2], 1, id)
redis.call('ZREM', KEYS[3], id)
redis.call('HSET', TASK, 'msg', ARGV[3], 'state', 'archived')
redis.call('HDEL', TASK, 'x:lease')
if ARGV[5] == '1' then redis.call('HINCRBY', TASK, 'x:recoveries', 1) end
freeLock(ARGV[7], id)
count(KEYS[5], KEYS[6], 1, ARGV[6])
count(KEYS[7], KEYS[8], 1, ARGV[6])
trim(KEYS[4], ARGV[8], ARGV[9], tonumber(ARGV[10]), 1000)
redis.pcall('PUBLISH', ARGV[11], id)
return 1
`);

/**
 * Removes a task that was cancelled; no count changes.
 *
 * KEYS[1]  HASH of the task
 * KEYS[2]  LIST active
 * KEYS[3]  ZSET lease
 * ARGV[1]  id
 * ARGV[2]  epoch
 * ARGV[3]  lock or ''
 * ARGV[4]  channel of settled tasks
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const DISCARD = new Script(`${FREE_LOCK}${HOLDS}
local id = ARGV[1]
need('hash', KEYS[1])
need('list', KEYS[2])
need('zset', KEYS[3])
if not holds(KEYS[1], KEYS[3], id, ARGV[2]) then return 0 end
redis.call('LREM', KEYS[2], 1, id)
redis.call('ZREM', KEYS[3], id)
redis.call('DEL', KEYS[1])
freeLock(ARGV[3], id)
redis.pcall('PUBLISH', ARGV[4], id)
return 1
`);

/**
 * Writes a result or the progress of a run. It never creates the hash of a task that was removed: without a message, that would
 * block its id for ever.
 *
 * KEYS[1]  HASH of the task
 * KEYS[2]  ZSET lease
 * ARGV[1]  id
 * ARGV[2]  epoch
 * ARGV[3]  field
 * ARGV[4]  value
 * ARGV[5]  channel that is notified, or ''
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const WRITE_FIELD = new Script(`${HOLDS}
need('hash', KEYS[1])
need('zset', KEYS[2])
if not holds(KEYS[1], KEYS[2], ARGV[1], ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[3], ARGV[4])
if ARGV[5] ~= '' then redis.pcall('PUBLISH', ARGV[5], ARGV[1]) end
return 1
`);

/** How long asynq keeps the count of a day. */
const DAY_COUNT_MS = 90 * 86_400_000;

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
  return listOf(await redis.run(COMPLETE, [redis.keysOf(queue).prefix], args)).map(numberOf);
}

export async function retry(
  redis: RedisAccess,
  task: LeasedTask,
  failure: TaskFailure,
  atMs: number,
): Promise<void> {
  requireDuration('atMs', atMs);
  const { message, epoch } = task;
  const nowMs = redis.wallNowMs;
  const retried = message.retried + (failure.isFailure ? 1 : 0);
  await runUnderLease(redis, task, RETRY, failureKeys(redis, message, 'retry', nowMs), [
    message.id,
    epoch,
    encoded({ ...message, retried, lastError: failure.error, lastFailedAtMs: nowMs }),
    secondsUp(atMs),
    flag(failure.isFailure),
    flag(failure.isRecovery),
    secondsUp(nowMs + DAY_COUNT_MS),
  ]);
}

export async function archive(redis: RedisAccess, task: LeasedTask, failure: TaskFailure): Promise<void> {
  const { message, epoch } = task;
  const nowMs = redis.wallNowMs;
  const { taskPrefix, settledChannel } = redis.keysOf(message.queue);
  await runUnderLease(redis, task, ARCHIVE, failureKeys(redis, message, 'archived', nowMs), [
    message.id,
    epoch,
    encoded({ ...message, lastError: failure.error, lastFailedAtMs: nowMs }),
    secondsUp(nowMs),
    flag(failure.isRecovery),
    secondsUp(nowMs + DAY_COUNT_MS),
    message.uniqueKey,
    taskPrefix,
    ...archiveLimits(redis, nowMs),
    settledChannel,
  ]);
}

export async function discard(redis: RedisAccess, task: LeasedTask): Promise<void> {
  const { id, queue, uniqueKey } = task.message;
  const keys = redis.keysOf(queue);
  await runUnderLease(
    redis,
    task,
    DISCARD,
    [keys.task(id), keys.active, keys.lease],
    [id, task.epoch, uniqueKey, keys.settledChannel],
  );
}

export function writeResult(redis: RedisAccess, task: LeasedTask, result: Uint8Array): Promise<void> {
  return writeField(redis, task, 'result', Buffer.from(result), '');
}

export function writeProgress(redis: RedisAccess, task: LeasedTask, progress: string): Promise<void> {
  const { progressChannel } = redis.keysOf(task.message.queue);
  return writeField(redis, task, 'x:progress', progress, progressChannel);
}

/** What the archive gives up, as arguments of the scripts that trim it. */
export function archiveLimits(redis: RedisAccess, nowMs: number): [cutoffS: number, max: number] {
  const { maxArchived, archiveRetentionMs } = redis.settings;
  return [secondsDown(nowMs - archiveRetentionMs), maxArchived];
}

function writeField(
  redis: RedisAccess,
  task: LeasedTask,
  field: string,
  value: ScriptArgument,
  channel: string,
): Promise<void> {
  const { id, queue } = task.message;
  const keys = redis.keysOf(queue);
  const args = [id, task.epoch, field, value, channel];
  return runUnderLease(redis, task, WRITE_FIELD, [keys.task(id), keys.lease], args);
}

/** The keys of RETRY and ARCHIVE. */
function failureKeys(
  redis: RedisAccess,
  { queue, id }: TaskMessage,
  target: 'retry' | 'archived',
  nowMs: number,
): string[] {
  const keys = redis.keysOf(queue);
  return [
    keys.task(id),
    keys.active,
    keys.lease,
    keys[target],
    keys.processed,
    keys.processedOn(nowMs),
    keys.failed,
    keys.failedOn(nowMs),
  ];
}

function flag(is: boolean | undefined): ScriptArgument {
  return is === true ? 1 : 0;
}
