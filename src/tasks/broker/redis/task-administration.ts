import type { TaskMessage } from '../../task-message.ts';
import { TASK_CHANGES, type TaskChange, type TaskState } from '../../task-state.ts';
import type { TaskTarget } from '../broker.ts';
import { bulkState, taskNotFound, taskState } from '../broker-errors.ts';
import { requireQueue, sourcesOf } from './inspection.ts';
import { FREE_LOCK, GROUP_NAMES, TRIM } from './lua.ts';
import type { RedisAccess } from './redis-access.ts';
import { Script, type ScriptArgument, type ScriptReply } from './script.ts';
import { encoded, messageFor, nanosOf, numberOf, secondsUp, textOf } from './script-values.ts';
import { archiveLimits } from './settle.ts';

/* What an inspector does to one task, or to all tasks of a state. */

/**
 * For scripts that change one task. They return 1, 0 if there is no such task, or the state that does not allow the change.
 *
 * `needPlaces(state, group)`: fails if a key that the task leaves, or may enter, has a wrong type.
 * `leave(id, state, group)`: removes a task from the key that its state names; not an active one.
 * `isHeld(id)`: whether it is in a set that a server is aggregating. All need GROUP_NAMES.
 */
const LEAVE = `
local PENDING, ARCHIVED, SETS = PREFIX .. 'pending', PREFIX .. 'archived', PREFIX .. 'aggregation_sets'
local ZSETS = { scheduled = PREFIX .. 'scheduled', retry = PREFIX .. 'retry', archived = ARCHIVED, completed = PREFIX .. 'completed' }
local function needPlaces(state, group)
  need('list', PENDING)
  need('set', GROUPS)
  need('zset', ARCHIVED, ZSETS[state] or ARCHIVED)
  if state == 'aggregating' then need('zset', GROUP .. (group or '')) end
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
    redis.call('ZREM', GROUP .. (group or ''), id)
    dropGroup(group or '')
  elseif ZSETS[state] then
    redis.call('ZREM', ZSETS[state], id)
    if state == 'scheduled' then leaveLater(group, id) end
  end
end
`;

/**
 * Removes a task with its lock; not an active one, nor one that is being aggregated.
 *
 * KEYS[1]  prefix of the queue's keys
 * ARGV[1]  id
 *
 * Returns 1, 0 or a state; see LEAVE.
 */
export const DELETE_TASK = new Script(`${FREE_LOCK}${GROUP_NAMES}${LEAVE}
local id = ARGV[1]
need('hash', TASK .. id)
local task = redis.call('HMGET', TASK .. id, 'msg', 'state', 'group')
if not task[1] then return 0 end
if task[2] == 'active' then return 'active' end
if task[2] == 'aggregating' and isHeld(id) then return 'being aggregated' end
needPlaces(task[2], task[3])
leave(id, task[2], task[3])
freeLockOf(id)
redis.call('DEL', TASK .. id)
redis.pcall('PUBLISH', PREFIX .. 'x:settled', id)
return 1
`);

/**
 * Makes a task pending; not an active one, nor one that is being aggregated.
 *
 * KEYS[1]  prefix of the queue's keys
 * ARGV[1]  id
 * ARGV[2]  now, in nanoseconds
 *
 * Returns 1, 0 or a state; see LEAVE.
 */
export const RUN_TASK = new Script(`${GROUP_NAMES}${LEAVE}
local id = ARGV[1]
need('hash', TASK .. id)
local task = redis.call('HMGET', TASK .. id, 'msg', 'state', 'group')
if not task[1] then return 0 end
if task[2] == 'active' or task[2] == 'pending' then return task[2] end
if task[2] == 'aggregating' and isHeld(id) then return 'being aggregated' end
needPlaces(task[2], task[3])
local size = redis.call('LPUSH', PENDING, id)
leave(id, task[2], task[3])
redis.call('HSET', TASK .. id, 'state', 'pending', 'pending_since', ARGV[2])
if size == 1 then redis.pcall('PUBLISH', PREFIX .. 'x:work', '') end
return 1
`);

/**
 * Archives a task, and frees its lock; not an active one, nor one that is being aggregated.
 *
 * KEYS[1]  prefix of the queue's keys
 * ARGV[1]  id
 * ARGV[2]  now
 * ARGV[3]  tasks that were archived by then are given up
 * ARGV[4]  number of tasks that the archive keeps
 *
 * Returns 1, 0 or a state; see LEAVE.
 */
export const ARCHIVE_TASK = new Script(`${FREE_LOCK}${TRIM}${GROUP_NAMES}${LEAVE}
local id = ARGV[1]
need('hash', TASK .. id)
local task = redis.call('HMGET', TASK .. id, 'msg', 'state', 'group')
if not task[1] then return 0 end
if task[2] == 'active' or task[2] == 'archived' then return task[2] end
if task[2] == 'aggregating' and isHeld(id) then return 'being aggregated' end
needPlaces(task[2], task[3])
redis.call('ZADD', ARCHIVED, ARGV[2], id)
leave(id, task[2], task[3])
redis.call('HSET', TASK .. id, 'state', 'archived')
freeLockOf(id)
trim(ARGV[3], tonumber(ARGV[4]), 1000)
redis.pcall('PUBLISH', PREFIX .. 'x:settled', id)
return 1
`);

/**
 * Replaces the msg of a scheduled task if it is still the one that was read.
 *
 * KEYS[1]  prefix of the queue's keys
 * ARGV[1]  id
 * ARGV[2]  the msg that was read
 * ARGV[3]  the new msg
 *
 * Returns 1, 0 if there is no such task, -1 if its msg has changed, or the state that does not allow the change.
 */
export const UPDATE_MESSAGE = new Script(`
local KEY = TASK .. ARGV[1]
need('hash', KEY)
local task = redis.call('HMGET', KEY, 'msg', 'state')
if not task[1] then return 0 end
if task[2] ~= 'scheduled' then return task[2] end
if task[1] ~= ARGV[2] then return -1 end
redis.call('HSET', KEY, 'msg', ARGV[3])
return 1
`);

/**
 * For scripts that change the first tasks of a state. They begin with these arguments, drop ids without a task, or whose task is in
 * another state, and return the number of ids that were taken.
 *
 * KEYS[1]  prefix of the queue's keys
 * ARGV[1]  the state
 * ARGV[2]  group or ''
 * ARGV[3]  number of tasks
 *
 * `needSource(...)`: fails if the key of the tasks, the SET of groups, or one of the other zsets has a wrong type.
 * `take(change)`: takes the first ids, calls `change(id)` for each whose task is in that state, and returns the ids. Needs
 * GROUP_NAMES.
 */
const TAKE_SOME = `
local state, group, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
local SOURCE = state == 'aggregating' and GROUP .. group or PREFIX .. state
local function needSource(...)
  need('zset', ...)
  need('set', GROUPS)
  need(state == 'pending' and 'list' or 'zset', SOURCE)
end
local function firstOf()
  if state ~= 'pending' then return redis.call('ZRANGE', SOURCE, 0, limit - 1) end
  local found, ids = redis.call('LRANGE', SOURCE, -limit, -1), {}
  for i = #found, 1, -1 do ids[#ids + 1] = found[i] end
  return ids
end
local function take(change)
  local ids = firstOf()
  if state == 'pending' then redis.call('LTRIM', SOURCE, 0, -limit - 1)
  elseif #ids > 0 then redis.call('ZREMRANGEBYRANK', SOURCE, 0, #ids - 1) end
  for _, id in ipairs(ids) do
    local task = readTask(id, 'msg', 'state', 'group')
    if isGhost(task) then redis.call('DEL', TASK .. id)
    elseif task[2] == state then change(id) end
    if state == 'scheduled' then leaveLater(task[3], id) end
  end
  if group ~= '' then dropGroup(group) end
  return ids
end
`;

/**
 * Removes tasks with their locks.
 *
 * KEYS, ARGV[1…3]  those of TAKE_SOME
 */
export const DELETE_SOME = new Script(`${FREE_LOCK}${GROUP_NAMES}${TAKE_SOME}
needSource()
local ids = take(function(id)
  freeLockOf(id)
  redis.call('DEL', TASK .. id)
end)
if #ids > 0 then redis.pcall('PUBLISH', PREFIX .. 'x:settled', table.concat(ids, '\\0')) end
return #ids
`);

/**
 * Makes tasks pending.
 *
 * KEYS, ARGV[1…3]  those of TAKE_SOME
 * ARGV[4]          now, in nanoseconds
 */
export const RUN_SOME = new Script(`${GROUP_NAMES}${TAKE_SOME}
local PENDING = PREFIX .. 'pending'
needSource()
local size = need('list', PENDING)
local ids = take(function(id)
  redis.call('LPUSH', PENDING, id)
  redis.call('HSET', TASK .. id, 'state', 'pending', 'pending_since', ARGV[4])
end)
if #ids > 0 and size == 0 then redis.pcall('PUBLISH', PREFIX .. 'x:work', '') end
return #ids
`);

/**
 * Archives tasks, and frees their locks.
 *
 * KEYS, ARGV[1…3]  those of TAKE_SOME
 * ARGV[4]          now
 * ARGV[5]          tasks that were archived by then are given up
 * ARGV[6]          number of tasks that the archive keeps
 */
export const ARCHIVE_SOME = new Script(`${FREE_LOCK}${GROUP_NAMES}${TRIM}${TAKE_SOME}
needSource(ARCHIVED)
local ids = take(function(id)
  redis.call('ZADD', ARCHIVED, ARGV[4], id)
  redis.call('HSET', TASK .. id, 'state', 'archived')
  freeLockOf(id)
end)
trim(ARGV[5], tonumber(ARGV[6]), limit)
if #ids > 0 then redis.pcall('PUBLISH', PREFIX .. 'x:settled', table.concat(ids, '\\0')) end
return #ids
`);

/** What one script changes at most: asynq's scripts have no limit, and a long one stops everything else in Redis. */
const TASKS_PER_SCRIPT = 500;

interface ChangeScripts {
  readonly one: Script;
  readonly some: Script;
  /** The arguments of both, after those that name the tasks. */
  readonly args: (redis: RedisAccess) => readonly ScriptArgument[];
}

const SCRIPTS: Readonly<Record<TaskChange, ChangeScripts>> = {
  delete: { one: DELETE_TASK, some: DELETE_SOME, args: () => [] },
  run: { one: RUN_TASK, some: RUN_SOME, args: ({ wallNowMs }) => [nanosOf(wallNowMs)] },
  archive: {
    one: ARCHIVE_TASK,
    some: ARCHIVE_SOME,
    args: (redis) => {
      const nowMs = redis.wallNowMs;
      return [secondsUp(nowMs), ...archiveLimits(redis, nowMs)];
    },
  },
};

export async function change(
  redis: RedisAccess,
  queue: string,
  target: TaskTarget,
  change: TaskChange,
): Promise<number> {
  await requireQueue(redis, queue);
  if (!('id' in target)) return await changeAll(redis, queue, target.state, target.group, change);
  const { one, args } = SCRIPTS[change];
  const reply = await redis.runIn(queue, one, [target.id, ...args(redis)]);
  checkOutcome(queue, target.id, TASK_CHANGES[change].done, reply);
  return 1;
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
    const reply = await redis.runIn(queue, UPDATE_MESSAGE, [id, msg, encoded(changed)]);
    if (reply === -1) continue;
    checkOutcome(queue, id, 'changed', reply);
    return;
  }
}

function checkOutcome(queue: string, id: string, verb: string, reply: ScriptReply): void {
  if (reply === 0) throw taskNotFound(queue, id);
  if (reply !== 1) throw taskState(queue, id, textOf(reply), verb);
}

/** Changes no more tasks than there were at first, so that it ends even if tasks are added as fast. */
async function changeAll(
  redis: RedisAccess,
  queue: string,
  state: TaskState,
  group: string | undefined,
  change: TaskChange,
): Promise<number> {
  const { done: verb, refused } = TASK_CHANGES[change];
  if (refused.includes(state)) throw bulkState(state, verb);
  const { some, args } = SCRIPTS[change];
  let done = 0;
  for (const source of await sourcesOf(redis, queue, state, group, false)) {
    for (let left = source.size; left > 0;) {
      const limit = Math.min(left, TASKS_PER_SCRIPT);
      const count = numberOf(await redis.runIn(queue, some, [state, source.group, limit, ...args(redis)]));
      done += count;
      left = count < limit ? 0 : left - count;
    }
  }
  return done;
}
