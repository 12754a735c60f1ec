import { utcDay } from '../../../core/units.ts';
import { failedWith, isRetained, retainedUntilMs } from '../../task-options.ts';
import { encodeTaskMessage } from '../../wire/message-codec.ts';
import { leaseLost } from '../broker-errors.ts';
import { HISTORY_KEPT_MS } from '../broker-settings.ts';
import type { LeasedTask, TaskFailure } from '../broker.ts';
import type { RedisAccess, RedisOperations, SharedScript } from './redis-access.ts';
import { itemsOf, nanosOf, numberOf, secondsDown, secondsUp } from './replies.ts';
import { Script, type ScriptArgument } from './script.ts';

/**
 * `needCounts(today)`: fails if a count has a wrong type.
 * `count(total, n, today, expireAt)`: adds to the count of a day and to the total. A total that is not a number, or as large as Redis
 * can count, starts again, as asynq's does.
 */
const COUNT = `
local function needCounts(today)
  need('string', PROCESSED, FAILED, PROCESSED .. ':' .. today, FAILED .. ':' .. today)
end
local function addTo(key, n)
  local sum = redis.pcall('INCRBY', key, n)
  if type(sum) == 'number' then return sum end
  redis.call('SET', key, n)
  return n
end
local function count(total, n, today, expireAt)
  local day = total .. ':' .. today
  if addTo(day, n) == n then redis.call('EXPIREAT', day, expireAt) end
  addTo(total, n)
end
`;

/** `leaseOf(id)`: as HGET of the lease; notes the key of the task. `freeAll(ids)`: frees the places of tasks whose keys were noted. */
const WITH_PLACES = `
+ local keyOf = {}
+ local function leaseOf(id)
+   local task = readTask(id, 'x:lease', 'x:key')
+   keyOf[id] = task[2]
+   return task[1]
+ end
+ local function freeAll(ids)
+   local keys = {}
+   for i, id in ipairs(ids) do keys[i] = keyOf[id] end
+   freePlaces(ids, keys)
+ end
`;

/**
 * Completes tasks: they are retained as completed, or removed. Tasks whose lease is lost stay as they are; see script.ts for the
 * value of a lease. The first ones to end are mostly those that have started first.
 *
 * ARGV[1]   today, as in the keys of counts
 * ARGV[2]   when today's count expires
 * ARGV[3…]  per task: id, epoch, lock or '', when its retention ends or '', msg if it is retained or ''
 *
 * Returns per task 1, or 0 if its lease is lost.
 */
export const COMPLETE = new Script(`${WITH_PLACES}${COUNT}
need('zset', LEASE)
need('list', ACTIVE)
+ needFlow()
need('string', PROCESSED, PROCESSED .. ':' .. ARGV[1])
local given, isRetained = {}, false
for i = 3, #ARGV, 5 do
  given[#given + 1] = ARGV[i]
  if ARGV[i + 3] ~= '' then isRetained = true end
end
if isRetained then need('zset', COMPLETED) end
local scores = redis.call('ZMSCORE', LEASE, unpack(given))
local outcomes, seen, done, ids, removed = {}, {}, {}, {}, {}
for n, id in ipairs(given) do
  local i = 5 * n - 2
  local tag = scores[n] and ARGV[i + 1] .. ':' .. scores[n]
-   local isDone = tag and not seen[id] and redis.pcall('HGET', TASK .. id, 'x:lease') == tag
+   local isDone = tag and not seen[id] and leaseOf(id) == tag
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
-   redis.call('LREM', ACTIVE, 1, id)
+   redis.call('LREM', ACTIVE, '-1', id)
  if score ~= '' then
    redis.call('ZADD', COMPLETED, score, id)
    redis.call('HSET', TASK .. id, 'msg', ARGV[i + 4], 'state', 'completed')
    redis.call('HDEL', TASK .. id, 'x:lease')
  else
    removed[#removed + 1] = TASK .. id
  end
  freeLock(ARGV[i + 2], id)
end
redis.call('ZREM', LEASE, unpack(ids))
if #removed > 0 then redis.call('DEL', unpack(removed)) end
+ freeAll(ids)
count(PROCESSED, #done, ARGV[1], ARGV[2])
redis.pcall('PUBLISH', SETTLED, table.concat(ids, '\\0'))
return outcomes
`);

/** For scripts that end the lease of one task: `needLeased` and `endLease` of script.ts free the place of the task, too. */
const ENDING = `
+ local needLeasedTask, endLeaseOfTask = needLeased, endLease
+ local function needLeased(id)
+   needLeasedTask(id)
+   needFlow()
+ end
+ local function endLease(id)
+   local key = readTask(id, 'x:key')[1]
+   endLeaseOfTask(id)
+   freePlaces({ id }, { key })
+ end
`;

/**
 * For scripts of a task that has failed. They begin with these arguments, and return 1, or 0 if the lease is lost.
 *
 * ARGV[1]  id
 * ARGV[2]  epoch
 * ARGV[3]  today, as in the keys of counts
 * ARGV[4]  when today's counts expire
 * ARGV[5]  msg
 * ARGV[6]  1 if its worker was lost
 *
 * `mayMoveTo(zset)`: fails if a key has a wrong type, or returns whether the lease is the task's present one.
 * `moveTo(zset, state, score)`: ends the run.
 * `countFailure()`: counts it.
 */
const FAIL = `${ENDING}${COUNT}
local id, today, expireAt = ARGV[1], ARGV[3], ARGV[4]
local function mayMoveTo(zset)
  needLeased(id)
  need('zset', zset)
  needCounts(today)
  return holds(id, ARGV[2])
end
local function moveTo(zset, state, score)
  writeAnyway(zset)
  redis.call('ZADD', zset, score, id)
  endLease(id)
  redis.call('HSET', TASK .. id, 'msg', ARGV[5], 'state', state)
  if ARGV[6] == '1' then redis.call('HINCRBY', TASK .. id, 'x:recoveries', 1) end
end
local function countFailure()
  count(PROCESSED, 1, today, expireAt)
  count(FAILED, 1, today, expireAt)
end
`;

/**
 * Schedules a failed task to run again.
 *
 * KEYS, ARGV[1…6]  those of FAIL
 * ARGV[7]          when it is due
 * ARGV[8]          1 if the run counts as a failure
 */
export const RETRY = new Script(`${FAIL}
if not mayMoveTo(RETRY) then return 0 end
moveTo(RETRY, 'retry', ARGV[7])
if ARGV[8] == '1' then countFailure() end
return 1
`);

/**
 * Archives a task that has failed for the last time. The archive gives up tasks that are too old or too many, with their hashes and
 * locks: an archive that only drops ids, as asynq's does in some cases, leaves hashes that block these ids for ever.
 *
 * KEYS, ARGV[1…6]  those of FAIL
 * ARGV[7]          now
 * ARGV[8]          lock or ''
 * ARGV[9]          tasks that were archived by then are given up
 * ARGV[10]         number of tasks that the archive keeps
 */
export const ARCHIVE = new Script(`${FAIL}
if not mayMoveTo(ARCHIVED) then return 0 end
moveTo(ARCHIVED, 'archived', ARGV[7])
redis.call('HDEL', TASK .. id, 'x:recoveries')
freeLock(ARGV[8], id)
countFailure()
trim(ARGV[9], tonumber(ARGV[10]), 1000)
redis.pcall('PUBLISH', SETTLED, id)
return 1
`);

/**
 * Removes a task that was cancelled; no count changes.
 *
 * ARGV[1]  id
 * ARGV[2]  epoch
 * ARGV[3]  lock or ''
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const DISCARD = new Script(`${ENDING}
local id = ARGV[1]
needLeased(id)
if not holds(id, ARGV[2]) then return 0 end
endLease(id)
redis.call('DEL', TASK .. id)
freeLock(ARGV[3], id)
redis.pcall('PUBLISH', SETTLED, id)
return 1
`);

/**
 * Archives a leased task whose message cannot be decoded, or is the message of another task, and frees its lock.
 *
 * ARGV[1]  id
 * ARGV[2]  epoch
 * ARGV[3]  now
 */
export const ARCHIVE_UNREADABLE = new Script(`${ENDING}
local id = ARGV[1]
needLeased(id)
need('zset', ARCHIVED)
if not holds(id, ARGV[2]) then return end
endLease(id)
archive(id, ARGV[3])
redis.pcall('PUBLISH', SETTLED, id)
`);

/**
 * Returns a task to the head of its queue.
 *
 * ARGV[1]  id
 * ARGV[2]  epoch
 * ARGV[3]  now, in nanoseconds
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const RELEASE = new Script(`${ENDING}
local id = ARGV[1]
needLeased(id)
need('list', PENDING)
if not holds(id, ARGV[2]) then return 0 end
writeAnyway(LEASE)
- local size = redis.call('RPUSH', PENDING, id)
endLease(id)
makePending(id, ARGV[3])
- if size == 1 then redis.pcall('PUBLISH', WORK, '') end
+ enter(id, readTask(id, 'x:key')[1] or '', true)
+ finishEntering()
return 1
`);

/**
 * Writes a result or the progress of a run. It never creates the hash of a task that was removed: without a message, that would
 * block its id for ever.
 *
 * ARGV[1]  id
 * ARGV[2]  epoch
 * ARGV[3]  field
 * ARGV[4]  value
 * ARGV[5]  channel that is notified, or ''
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const WRITE_FIELD = new Script(`
local id = ARGV[1]
need('hash', TASK .. id)
need('zset', LEASE)
if not holds(id, ARGV[2]) then return 0 end
redis.call('HSET', TASK .. id, ARGV[3], ARGV[4])
if ARGV[5] ~= '' then redis.pcall('PUBLISH', ARGV[5], id) end
return 1
`);

/** Operations that end a run, or write what it reports. Calls of `complete` in one turn of the event loop share a script. */
export const SETTLING = {
  async complete(redis, task) {
    if ((await redis.runShared(DONE_TASKS, task.message.queue, task)) !== 1) throw leaseLost(task);
  },

  async retry(redis, task, failure, atMs) {
    const args = failureArguments(task, failure, failure.isFailure ? 1 : 0, redis.wallNowMs);
    await runUnderLease(redis, task, RETRY, [...args, secondsUp(atMs), failure.isFailure ? 1 : 0]);
  },

  async archive(redis, task, failure) {
    const nowMs = redis.wallNowMs;
    const args = failureArguments(task, failure, 0, nowMs);
    args.push(secondsUp(nowMs), task.message.uniqueKey, ...archiveLimits(redis, nowMs));
    await runUnderLease(redis, task, ARCHIVE, args);
  },

  async release(redis, task) {
    await runUnderLease(redis, task, RELEASE, [task.message.id, task.epoch, nanosOf(redis.wallNowMs)]);
  },

  async discard(redis, task) {
    const { id, uniqueKey } = task.message;
    await runUnderLease(redis, task, DISCARD, [id, task.epoch, uniqueKey]);
  },

  async writeResult(redis, task, result) {
    const args = [task.message.id, task.epoch, 'result', Buffer.from(result), ''];
    await runUnderLease(redis, task, WRITE_FIELD, args);
  },

  async writeProgress(redis, task, progress) {
    const { progressChannel } = redis.keysOf(task.message.queue);
    const args = [task.message.id, task.epoch, 'x:progress', progress, progressChannel];
    await runUnderLease(redis, task, WRITE_FIELD, args);
  },
} satisfies RedisOperations;

/** Runs a script of a leased task that returns 1, or 0 if the lease is lost. @throws EscapementError `ERR_LEASE_LOST` */
async function runUnderLease(
  redis: RedisAccess,
  task: LeasedTask,
  script: Script,
  args: readonly ScriptArgument[],
): Promise<void> {
  if ((await redis.runIn(task.message.queue, script, args)) !== 1) throw leaseLost(task);
}

const DONE_TASKS: SharedScript<LeasedTask, number> = {
  run: async (redis, queue, tasks) => {
    const nowMs = redis.wallNowMs;
    const args: ScriptArgument[] = [utcDay(nowMs), secondsUp(nowMs + HISTORY_KEPT_MS)];
    for (const { message, epoch } of tasks) {
      args.push(message.id, epoch, message.uniqueKey);
      if (isRetained(message)) {
        args.push(
          secondsUp(retainedUntilMs(message, nowMs)),
          encodeTaskMessage({ ...message, completedAtMs: nowMs }),
        );
      } else {
        args.push('', '');
      }
    }
    return itemsOf(await redis.runIn(queue, COMPLETE, args)).map(numberOf);
  },
  bytesOf: ({ message }) => (isRetained(message) ? message.payload.length : 0),
};

/** ARGV[1…6] of FAIL. */
function failureArguments(
  { message, epoch }: LeasedTask,
  failure: TaskFailure,
  retries: number,
  nowMs: number,
): ScriptArgument[] {
  return [
    message.id,
    epoch,
    utcDay(nowMs),
    secondsUp(nowMs + HISTORY_KEPT_MS),
    encodeTaskMessage(failedWith(message, failure.error, retries, nowMs)),
    failure.isRecovery === true ? 1 : 0,
  ];
}

/** Returns the arguments of scripts that trim the archive. */
export function archiveLimits({ settings }: RedisAccess, nowMs: number): [cutoffS: number, max: number] {
  return [secondsDown(nowMs - settings.archiveRetentionMs), settings.maxArchived];
}
