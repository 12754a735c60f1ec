import type { TaskMessage } from '../../task-message.ts';
import type { TaskState } from '../../task-state.ts';
import { bulkState, taskNotFound, taskState } from '../broker-errors.ts';
import { requireQueue, sourcesOf, type Source } from './inspection.ts';
import { FREE_LOCK, GROUP_NAMES, TRIM } from './lua.ts';
import type { RedisAccess } from './redis-access.ts';
import { Script, type ScriptArgument, type ScriptReply } from './script.ts';
import { encoded, messageFor, nanosOf, numberOf, secondsUp, textOf } from './script-values.ts';
import { archiveLimits } from './settle.ts';

/* What an inspector does to one task, or to all tasks of a state. */

/**
 * Scripts that change one task begin with these keys and arguments:
 *
 * KEYS[1]  LIST pending
 * KEYS[2]  ZSET scheduled
 * KEYS[3]  ZSET retry
 * KEYS[4]  ZSET archived
 * KEYS[5]  ZSET completed
 * KEYS[6]  SET groups
 * KEYS[7]  ZSET of sets
 * KEYS[8]  HASH of the task
 * ARGV[1]  prefix of groups
 * ARGV[2]  id
 *
 * They return 1, 0 if there is no such task, or the state that does not allow the change.
 *
 * `needPlaces(state, group)`: fails if a key that the task leaves, or may enter, has a wrong type.
 * `leave(id, state, group)`: removes a task from the key that its state names; not an active one.
 * `isHeld(id)`: whether it is in a set that a server is aggregating. All need GROUP_NAMES.
 */
const LEAVE = `
local PENDING, GROUPS, SETS, GROUP_PREFIX = KEYS[1], KEYS[6], KEYS[7], ARGV[1]
local ZSETS = { scheduled = KEYS[2], retry = KEYS[3], archived = KEYS[4], completed = KEYS[5] }
local function needPlaces(state, group)
  need('list', PENDING)
  need('set', GROUPS)
  need('zset', ZSETS.archived, ZSETS[state] or ZSETS.archived)
  if state == 'aggregating' then need('zset', GROUP_PREFIX .. (group or '')) end
end
local function isHeld(id)
  need('zset', SETS)
  for _, set in ipairs(redis.call('ZRANGE', SETS, 0, -1)) do
    need('zset', set)
    if redis.call('ZSCORE', set, id) then return true end
  end
  return false
end
local function leave(id, state, group)
  if state == 'pending' then redis.call('LREM', PENDING, 1, id)
  elseif state == 'aggregating' then
    redis.call('ZREM', GROUP_PREFIX .. (group or ''), id)
    dropGroup(prefixOf(GROUP_PREFIX), group or '')
  elseif ZSETS[state] then
    redis.call('ZREM', ZSETS[state], id)
    if state == 'scheduled' then leaveLater(prefixOf(GROUP_PREFIX), group, id) end
  end
end
`;

/**
 * Removes a task with its lock; not an active one, nor one that is being aggregated.
 *
 * KEYS, ARGV[1…2]  those of LEAVE
 * ARGV[3]          channel of settled tasks
 */
export const DELETE_TASK = new Script(`${FREE_LOCK}${GROUP_NAMES}${LEAVE}
local TASK, id = KEYS[8], ARGV[2]
need('hash', TASK)
local task = redis.call('HMGET', TASK, 'msg', 'state', 'group')
if not task[1] then return 0 end
if task[2] == 'active' then return 'active' end
if task[2] == 'aggregating' and isHeld(id) then return 'being aggregated' end
needPlaces(task[2], task[3])
leave(id, task[2], task[3])
freeLockOf(TASK, id)
redis.call('DEL', TASK)
redis.pcall('PUBLISH', ARGV[3], id)
return 1
`);

/**
 * Makes a task pending; not an active one, nor one that is being aggregated.
 *
 * KEYS, ARGV[1…2]  those of LEAVE
 * ARGV[3]          now, in nanoseconds
 * ARGV[4]          channel of work
 */
export const RUN_TASK = new Script(`${GROUP_NAMES}${LEAVE}
local TASK, id = KEYS[8], ARGV[2]
need('hash', TASK)
local task = redis.call('HMGET', TASK, 'msg', 'state', 'group')
if not task[1] then return 0 end
if task[2] == 'active' or task[2] == 'pending' then return task[2] end
if task[2] == 'aggregating' and isHeld(id) then return 'being aggregated' end
needPlaces(task[2], task[3])
local waiting = redis.call('LPUSH', PENDING, id)
leave(id, task[2], task[3])
redis.call('HSET', TASK, 'state', 'pending', 'pending_since', ARGV[3])
if waiting == 1 then redis.pcall('PUBLISH', ARGV[4], '') end
return 1
`);

/**
 * Archives a task, and frees its lock; not an active one, nor one that is being aggregated.
 *
 * KEYS, ARGV[1…2]  those of LEAVE
 * ARGV[3]          now
 * ARGV[4]          prefix of tasks
 * ARGV[5]          tasks that were archived by then are given up
 * ARGV[6]          number of tasks that the archive keeps
 * ARGV[7]          channel of settled tasks
 */
export const ARCHIVE_TASK = new Script(`${FREE_LOCK}${TRIM}${GROUP_NAMES}${LEAVE}
local TASK, id = KEYS[8], ARGV[2]
need('hash', TASK)
local task = redis.call('HMGET', TASK, 'msg', 'state', 'group')
if not task[1] then return 0 end
if task[2] == 'active' or task[2] == 'archived' then return task[2] end
if task[2] == 'aggregating' and isHeld(id) then return 'being aggregated' end
needPlaces(task[2], task[3])
redis.call('ZADD', ZSETS.archived, ARGV[3], id)
leave(id, task[2], task[3])
redis.call('HSET', TASK, 'state', 'archived')
freeLockOf(TASK, id)
trim(ZSETS.archived, ARGV[4], ARGV[5], tonumber(ARGV[6]), 1000)
redis.pcall('PUBLISH', ARGV[7], id)
return 1
`);

/**
 * Replaces the msg of a scheduled task if it is still the one that was read.
 *
 * KEYS[1]  HASH of the task
 * ARGV[1]  the msg that was read
 * ARGV[2]  the new msg
 *
 * Returns 1, 0 if there is no such task, -1 if its msg has changed, or the state that does not allow the change.
 */
export const UPDATE_MESSAGE = new Script(`
need('hash', KEYS[1])
local task = redis.call('HMGET', KEYS[1], 'msg', 'state')
if not task[1] then return 0 end
if task[2] ~= 'scheduled' then return task[2] end
if task[1] ~= ARGV[1] then return -1 end
redis.call('HSET', KEYS[1], 'msg', ARGV[2])
return 1
`);

/**
 * Scripts that change the first tasks of a state begin with these keys and arguments:
 *
 * KEYS[1]  LIST or ZSET of that state
 * KEYS[2]  SET groups
 * ARGV[1]  the state
 * ARGV[2]  number of tasks
 * ARGV[3]  group or ''
 * ARGV[4]  prefix of tasks
 *
 * They drop ids without a task, or whose task is in another state, and return the number of ids that were taken.
 *
 * `needSource(source, state, ...)`: fails if the source, or one of the other zsets, has a wrong type.
 * `take(source, state, limit, taskPrefix, group, change)`: takes the first ids out of a list, a zset or a group, calls
 * `change(task, id)` for each whose task is in that state, and returns the ids. Needs GROUP_NAMES.
 */
const TAKE_SOME = `
local function needSource(source, state, ...)
  need('zset', ...)
  return need(state == 'pending' and 'list' or 'zset', source)
end
local function firstOf(source, state, limit)
  if state ~= 'pending' then return redis.call('ZRANGE', source, 0, limit - 1) end
  local found, ids = redis.call('LRANGE', source, -limit, -1), {}
  for i = #found, 1, -1 do ids[#ids + 1] = found[i] end
  return ids
end
local function take(source, state, limit, taskPrefix, group, change)
  local ids = firstOf(source, state, limit)
  if state == 'pending' then redis.call('LTRIM', source, 0, -limit - 1)
  elseif #ids > 0 then redis.call('ZREMRANGEBYRANK', source, 0, #ids - 1) end
  for _, id in ipairs(ids) do
    local task = readTask(taskPrefix .. id, 'msg', 'state', 'group')
    if isGhost(task) then redis.call('DEL', taskPrefix .. id)
    elseif task[2] == state then change(taskPrefix .. id, id) end
    if state == 'scheduled' then leaveLater(prefixOf(taskPrefix), task[3], id) end
  end
  if group ~= '' then dropGroup(prefixOf(taskPrefix), group) end
  return ids
end
`;

/**
 * Removes tasks with their locks.
 *
 * KEYS, ARGV[1…4]  those of TAKE_SOME
 * ARGV[5]          channel of settled tasks
 */
export const DELETE_SOME = new Script(`${FREE_LOCK}${GROUP_NAMES}${TAKE_SOME}
needSource(KEYS[1], ARGV[1])
need('set', KEYS[2])
local ids = take(KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[4], ARGV[3], function(task, id)
  freeLockOf(task, id)
  redis.call('DEL', task)
end)
if #ids > 0 then redis.pcall('PUBLISH', ARGV[5], table.concat(ids, '\\0')) end
return #ids
`);

/**
 * Makes tasks pending.
 *
 * KEYS[1…2], ARGV[1…4]  those of TAKE_SOME
 * KEYS[3]               LIST pending
 * ARGV[5]               now, in nanoseconds
 * ARGV[6]               channel of work
 */
export const RUN_SOME = new Script(`${GROUP_NAMES}${TAKE_SOME}
needSource(KEYS[1], ARGV[1])
need('set', KEYS[2])
local waiting = need('list', KEYS[3])
local ids = take(KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[4], ARGV[3], function(task, id)
  redis.call('LPUSH', KEYS[3], id)
  redis.call('HSET', task, 'state', 'pending', 'pending_since', ARGV[5])
end)
if #ids > 0 and waiting == 0 then redis.pcall('PUBLISH', ARGV[6], '') end
return #ids
`);

/**
 * Archives tasks, and frees their locks.
 *
 * KEYS[1…2], ARGV[1…4]  those of TAKE_SOME
 * KEYS[3]               ZSET archived
 * ARGV[5]               now
 * ARGV[6]               tasks that were archived by then are given up
 * ARGV[7]               number of tasks that the archive keeps
 * ARGV[8]               channel of settled tasks
 */
export const ARCHIVE_SOME = new Script(`${FREE_LOCK}${GROUP_NAMES}${TRIM}${TAKE_SOME}
local limit = tonumber(ARGV[2])
needSource(KEYS[1], ARGV[1], KEYS[3])
need('set', KEYS[2])
local ids = take(KEYS[1], ARGV[1], limit, ARGV[4], ARGV[3], function(task, id)
  redis.call('ZADD', KEYS[3], ARGV[5], id)
  redis.call('HSET', task, 'state', 'archived')
  freeLockOf(task, id)
end)
trim(KEYS[3], ARGV[4], ARGV[6], tonumber(ARGV[7]), limit)
if #ids > 0 then redis.pcall('PUBLISH', ARGV[8], table.concat(ids, '\\0')) end
return #ids
`);

/** What one script changes at most: asynq's scripts have no limit, and a long one stops everything else in Redis. */
const TASKS_PER_SCRIPT = 500;

export function deleteTask(redis: RedisAccess, queue: string, id: string): Promise<void> {
  return changeTask(redis, queue, id, 'deleted', DELETE_TASK, [redis.keysOf(queue).settledChannel]);
}

export function runTask(redis: RedisAccess, queue: string, id: string): Promise<void> {
  const { workChannel } = redis.keysOf(queue);
  return changeTask(redis, queue, id, 'run now', RUN_TASK, [nanosOf(redis.wallNowMs), workChannel]);
}

export function archiveTask(redis: RedisAccess, queue: string, id: string): Promise<void> {
  const { taskPrefix, settledChannel } = redis.keysOf(queue);
  const nowMs = redis.wallNowMs;
  const args = [secondsUp(nowMs), taskPrefix, ...archiveLimits(redis, nowMs), settledChannel];
  return changeTask(redis, queue, id, 'archived', ARCHIVE_TASK, args);
}

/** Reads, changes and writes the message, again if it was changed in between. */
export async function updatePayload(
  redis: RedisAccess,
  queue: string,
  id: string,
  payload: Uint8Array,
): Promise<void> {
  await requireQueue(redis, queue);
  const key = redis.keysOf(queue).task(id);
  for (;;) {
    const msg = await redis.send((client) => client.hgetBuffer(key, 'msg'));
    if (msg === null) throw taskNotFound(queue, id);
    const changed: TaskMessage = { ...messageFor(queue, id, msg), payload };
    const reply = await redis.run(UPDATE_MESSAGE, [key], [msg, encoded(changed)]);
    if (reply === -1) continue;
    checkOutcome(queue, id, 'changed', reply);
    return;
  }
}

async function changeTask(
  redis: RedisAccess,
  queue: string,
  id: string,
  verb: string,
  script: Script,
  args: readonly ScriptArgument[],
): Promise<void> {
  await requireQueue(redis, queue);
  const keys = redis.keysOf(queue);
  const { pending, scheduled, retry, archived, completed, groups, aggregationSets, groupPrefix } = keys;
  const all = [pending, scheduled, retry, archived, completed, groups, aggregationSets, keys.task(id)];
  checkOutcome(queue, id, verb, await redis.run(script, all, [groupPrefix, id, ...args]));
}

function checkOutcome(queue: string, id: string, verb: string, reply: ScriptReply): void {
  if (reply === 0) throw taskNotFound(queue, id);
  if (reply !== 1) throw taskState(queue, id, textOf(reply), verb);
}

export function deleteAll(
  redis: RedisAccess,
  queue: string,
  state: TaskState,
  group: string | undefined,
): Promise<number> {
  if (state === 'active') return refuse(redis, queue, state, 'deleted');
  const { settledChannel } = redis.keysOf(queue);
  return changeAll(redis, queue, state, group, DELETE_SOME, [], () => [settledChannel]);
}

export function runAll(
  redis: RedisAccess,
  queue: string,
  state: TaskState,
  group: string | undefined,
): Promise<number> {
  if (state === 'active' || state === 'pending') return refuse(redis, queue, state, 'run now');
  const { pending, workChannel } = redis.keysOf(queue);
  const args = (): ScriptArgument[] => [nanosOf(redis.wallNowMs), workChannel];
  return changeAll(redis, queue, state, group, RUN_SOME, [pending], args);
}

export function archiveAll(
  redis: RedisAccess,
  queue: string,
  state: TaskState,
  group: string | undefined,
): Promise<number> {
  if (state === 'active' || state === 'archived') return refuse(redis, queue, state, 'archived');
  const { archived, settledChannel } = redis.keysOf(queue);
  return changeAll(redis, queue, state, group, ARCHIVE_SOME, [archived], () => {
    const nowMs = redis.wallNowMs;
    return [secondsUp(nowMs), ...archiveLimits(redis, nowMs), settledChannel];
  });
}

async function refuse(redis: RedisAccess, queue: string, state: TaskState, verb: string): Promise<never> {
  await requireQueue(redis, queue);
  throw bulkState(state, verb);
}

/** Changes no more tasks than there were at first, so that it ends even if tasks are added as fast. */
async function changeAll(
  redis: RedisAccess,
  queue: string,
  state: TaskState,
  group: string | undefined,
  script: Script,
  keys: readonly string[],
  args: () => readonly ScriptArgument[],
): Promise<number> {
  await requireQueue(redis, queue);
  const { groups, taskPrefix } = redis.keysOf(queue);
  const changeSome = async (source: Source, limit: number): Promise<number> => {
    const all = [state, limit, source.group, taskPrefix, ...args()];
    return numberOf(await redis.run(script, [source.key, groups, ...keys], all));
  };
  let done = 0;
  for (const source of await sourcesOf(redis, queue, state, group, false)) {
    for (let left = source.size; left > 0;) {
      const limit = Math.min(left, TASKS_PER_SCRIPT);
      const count = await changeSome(source, limit);
      done += count;
      left = count < limit ? 0 : left - count;
    }
  }
  return done;
}
