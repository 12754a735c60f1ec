import { DAY_MS, utcDay } from '../../../core/units.ts';
import type { TaskMessage } from '../../task-options.ts';
import { TASK_CHANGES, type TaskChange, type TaskState } from '../../task-state.ts';
import { encodeTaskMessage } from '../../wire/message-codec.ts';
import {
  bulkState,
  queueNotEmpty,
  queueNotFound,
  queueState,
  taskNotFound,
  taskState,
} from '../broker-errors.ts';
import { HISTORY_DAYS } from '../broker-settings.ts';
import { requireQueue } from './inspection.ts';
import { QUEUES_KEY } from './keys.ts';
import type { RedisAccess, RedisOperations } from './redis-access.ts';
import { messageFor, nanosOf, numberOf, secondsDown, secondsUp, textOf } from './replies.ts';
import { MOST_CHANGED, Script, type ScriptArgument, type ScriptReply } from './script.ts';
import { archiveLimits } from './settle.ts';
import { keysOfTasks, sizeOf } from './task-keys.ts';

/**
 * A change of tasks, for a script that changes one task and for one that changes the first tasks of a state. `ARGS` is the index of
 * the first argument that follows those of the script.
 *
 * `needTarget()`: fails if a key that the change writes has a wrong type.
 * `change(id, key)`: changes a task; `key` is the field `x:key` of its hash, or false. The script removes it from the key of its state.
 * `finish(ids)`: called at the end, with at least one id.
 */
const CHANGES: Readonly<Record<TaskChange, string>> = {
  delete: `
local function needTarget() end
local function change(id)
  freeLockOf(id)
  redis.call('DEL', TASK .. id)
end
local function finish(ids) redis.pcall('PUBLISH', SETTLED, table.concat(ids, '\\0')) end
`,

  /** ARGV[ARGS]  now, in nanoseconds */
  run: `
local function needTarget() need('list', PENDING, ACTIVE) end
local function change(id, key)
  enter(id, key or '', false)
  makePending(id, ARGV[ARGS])
end
local function finish() finishEntering() end
`,

  /**
   * ARGV[ARGS]      now
   * ARGV[ARGS + 1]  tasks that were archived by then are given up
   * ARGV[ARGS + 2]  number of tasks that the archive keeps
   */
  archive: `
local function needTarget() need('zset', ARCHIVED) end
local function change(id) archive(id, ARGV[ARGS]) end
local function finish(ids)
  trim(ARGV[ARGS + 1], tonumber(ARGV[ARGS + 2]), MAX_TRIMMED)
  redis.pcall('PUBLISH', SETTLED, table.concat(ids, '\\0'))
end
`,
};

/**
 * Returns a script that changes one task, unless it is in a state that refuses the change, or in a set that is being aggregated.
 *
 * ARGV[1]   id
 * ARGV[2…]  those of the change
 *
 * It returns 1, 0 if there is no such task, or the state that refuses the change.
 */
function changeOne(change: TaskChange): Script {
  const refused = TASK_CHANGES[change].refused.map((state) => `${state} = true`);
  return new Script(`
local ARGS, MAX_TRIMMED, REFUSED = 2, 1000, { ${refused.join(', ')} }
${CHANGES[change]}
local id = ARGV[1]
need('hash', TASK .. id)
local task = redis.call('HMGET', TASK .. id, 'msg', 'state', 'group', 'x:key')
local state, group, key = task[2], task[3] or '', task[4]
if not task[1] then return 0 end
if REFUSED[state] then return state end
if state == 'aggregating' and isHeld(id) then return 'being aggregated' end
local SOURCE = zsetOf(state, group)
need('set', GROUPS)
if state == 'pending' then need('list', PENDING) elseif SOURCE then need('zset', SOURCE) end
needTarget()
needFlow()
change(id, key)
leave(id, state, group, key)
finish({ id })
return 1
`);
}

/**
 * Returns a script that changes the first tasks of a state. It drops ids without a task, or whose task is in another state.
 *
 * ARGV[1]   the state
 * ARGV[2]   group or ''
 * ARGV[3]   number of tasks
 * ARGV[4…]  those of the change
 *
 * It returns the number of ids that were taken.
 */
function changeSome(change: TaskChange): Script {
  return new Script(`
local state, group, limit, ARGS = ARGV[1], ARGV[2], tonumber(ARGV[3]), 4
local MAX_TRIMMED, SOURCE = limit, state == 'aggregating' and GROUP .. group or PREFIX .. state
${CHANGES[change]}
local function take()
  if state ~= 'pending' then
    local ids = redis.call('ZRANGE', SOURCE, 0, limit - 1)
    if #ids > 0 then redis.call('ZREMRANGEBYRANK', SOURCE, 0, #ids - 1) end
    return ids
  end
  return takePending(limit)
end
need('set', GROUPS)
need(state == 'pending' and 'list' or 'zset', SOURCE)
needTarget()
needFlow()
local ids = take()
for _, id in ipairs(ids) do
  local task = readTask(id, 'msg', 'state', 'group', 'x:key')
  if isGhost(task) then redis.call('DEL', TASK .. id)
  elseif task[2] == state then change(id, task[4]) end
  if state == 'scheduled' then leaveLater(task[3], id) end
end
if group ~= '' then dropGroup(group) end
if #ids > 0 then finish(ids) end
return #ids
`);
}

export const DELETE_TASK = changeOne('delete');
export const RUN_TASK = changeOne('run');
export const ARCHIVE_TASK = changeOne('archive');
export const DELETE_SOME = changeSome('delete');
export const RUN_SOME = changeSome('run');
export const ARCHIVE_SOME = changeSome('archive');

/**
 * Replaces the msg of a scheduled task if it is still the one that was read.
 *
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
 * Pauses a queue. A queue that was removed in the meantime does not come back paused.
 *
 * KEYS[2]  `QUEUES`; see RedisAccess.runWithQueues
 * ARGV[1]  now
 *
 * Returns 1, 0 if it is already paused, or -1 if there is no such queue.
 */
export const PAUSE = new Script(`
if QUEUES then need('set', QUEUES) end
if QUEUES and redis.call('SISMEMBER', QUEUES, queueName()) == 0 then return -1 end
return redis.call('SETNX', PAUSED, ARGV[1])
`);

/** Ends a pause. Returns 1, or 0 if it is not paused. */
export const RESUME = new Script(`
local size = need('list', PENDING) + need('list', RING) + need('zset', PARKED)
if redis.call('DEL', PAUSED) == 0 then return 0 end
if size > 0 then redis.pcall('PUBLISH', WORK, '') end
return 1
`);

/**
 * Removes a queue without tasks, with every key that it has: counts, pause, ticks, limits. asynq leaves some of them behind. It may remove
 * tasks in any state first, with their locks; then the queue is removed by a call that finds none. Changes nothing if some are active.
 *
 * KEYS[2]   `QUEUES`; see RedisAccess.runWithQueues
 * ARGV[1]   number of tasks that may be removed
 * ARGV[2…]  days that may have counts, as in the keys of counts
 *
 * Returns the number of tasks that were removed, or else of those that the queue has: 0 if it was removed. -1 if some are active.
 */
export const REMOVE_QUEUE = new Script(`
local ZSETS, limit = { SCHEDULED, RETRY, ARCHIVED, COMPLETED }, tonumber(ARGV[1])
if need('list', ACTIVE) > 0 then return -1 end
local size = need('list', PENDING)
for _, zset in ipairs(ZSETS) do size = size + need('zset', zset) end
need('zset', SETS)
need('set', GROUPS)
if QUEUES then need('set', QUEUES) end
needFlow()
local removed = {}
local function remove(ids)
  for _, id in ipairs(ids) do
    freeLockOf(id)
    redis.call('DEL', TASK .. id)
    removed[#removed + 1] = id
  end
end
local function clear(zset)
  local ids = redis.call('ZRANGE', zset, 0, limit - #removed - 1)
  if #removed == limit or #ids == 0 then return end
  redis.call('ZREMRANGEBYRANK', zset, 0, #ids - 1)
  remove(ids)
end
local function removeSome()
  local groups = redis.call('SRANDMEMBER', GROUPS, limit)
  local sets = redis.call('ZRANGE', SETS, 0, limit - 1)
  for _, group in ipairs(groups) do need('zset', GROUP .. group) end
  need('zset', SETS, unpack(sets))
  remove(takePending(limit))
  for _, zset in ipairs(ZSETS) do clear(zset) end
  for _, group in ipairs(groups) do
    clear(GROUP .. group)
    if redis.call('EXISTS', GROUP .. group, SCHEDULED) == 0 then
      redis.call('SREM', GROUPS, group)
      redis.call('DEL', LATER .. group)
    end
  end
  for _, set in ipairs(sets) do
    clear(set)
    if redis.call('EXISTS', set) == 0 then redis.call('ZREM', SETS, set) end
  end
  if #removed > 0 then redis.pcall('PUBLISH', SETTLED, table.concat(removed, '\\0')) end
end
if limit > 0 then removeSome() end
if #removed > 0 then return #removed end
local waiting = tonumber(redis.call('GET', WAITING)) or 0
size = size + math.max(waiting, redis.call('HLEN', FIRSTS) - redis.call('HEXISTS', FIRSTS, ''))
local groups = redis.call('SMEMBERS', GROUPS)
for _, group in ipairs(groups) do size = size + need('zset', GROUP .. group) end
for _, set in ipairs(redis.call('ZRANGE', SETS, 0, -1)) do size = size + need('zset', set) end
if size > 0 then return size end
for _, group in ipairs(groups) do redis.call('DEL', LATER .. group) end
for i = 2, #ARGV do redis.call('DEL', PROCESSED .. ':' .. ARGV[i], FAILED .. ':' .. ARGV[i]) end
redis.call('DEL', ACTIVE, PENDING, GROUPS, SETS, LEASE, PAUSED, PROCESSED, FAILED, EPOCH, TICKS, unpack(ZSETS))
redis.call('DEL', LIMITS, WAITING, FIRSTS, RING, PARKED, RUNS, RATES)
if QUEUES then redis.call('SREM', QUEUES, queueName()) end
return 0
`);

interface ChangeScripts {
  readonly one: Script;
  readonly some: Script;
  /** Arguments of both scripts, after those that name the tasks. */
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

/** Days that may have counts: from tomorrow, for a process whose clock is ahead, to a day that is certainly too old. */
const DAYS_COUNTED = HISTORY_DAYS + 3;

/** Operations that change one task or all tasks of a state, and queues. */
export const ADMINISTRATION = {
  async change(redis, queue, target, change) {
    await requireQueue(redis, queue);
    if (!('id' in target)) return await changeAll(redis, queue, target.state, target.group, change);
    const { one, args } = SCRIPTS[change];
    const reply = await redis.runIn(queue, one, [target.id, ...args(redis)]);
    checkOutcome(queue, target.id, TASK_CHANGES[change].done, reply);
    return 1;
  },

  /** Reads, changes and writes the message, again if it was changed in between. */
  async updatePayload(redis, queue, id, payload) {
    await requireQueue(redis, queue);
    const key = redis.keysOf(queue).task(id);
    for (;;) {
      const msg = await redis.send((client) => client.hgetBuffer(key, 'msg'));
      if (msg === null) throw taskNotFound(queue, id);
      const changed: TaskMessage = { ...messageFor(queue, id, msg), payload };
      const reply = await redis.runIn(queue, UPDATE_MESSAGE, [id, msg, encodeTaskMessage(changed)]);
      if (reply === -1) continue;
      checkOutcome(queue, id, 'changed', reply);
      return;
    }
  },

  async pause(redis, queue) {
    await requireQueue(redis, queue);
    const reply = await redis.runWithQueues(queue, PAUSE, [secondsDown(redis.wallNowMs)]);
    if (reply === -1) throw queueNotFound(queue);
    if (reply !== 1) throw queueState(queue, 'paused already');
  },

  async resume(redis, queue) {
    await requireQueue(redis, queue);
    if ((await redis.runIn(queue, RESUME, [])) !== 1) throw queueState(queue, 'not paused');
  },

  /** In pieces: an interruption leaves a queue with fewer tasks, and no other trace. */
  async removeQueue(redis, queue, { force }) {
    await requireQueue(redis, queue);
    const nowMs = redis.wallNowMs;
    const days = Array.from({ length: DAYS_COUNTED }, (_, at) => utcDay(nowMs + (1 - at) * DAY_MS));
    for (;;) {
      const args = [force ? MOST_CHANGED : 0, ...days];
      const size = numberOf(await redis.runWithQueues(queue, REMOVE_QUEUE, args));
      if (size === 0) break;
      if (size < 0) throw queueNotEmpty(queue, 'active');
      if (!force) throw queueNotEmpty(queue, size);
    }
    if (redis.isCluster) await unregister(redis, queue);
    redis.forget(queue);
  },
} satisfies RedisOperations;

function checkOutcome(queue: string, id: string, verb: string, reply: ScriptReply): void {
  if (reply === 0) throw taskNotFound(queue, id);
  if (reply !== 1) throw taskState(queue, id, textOf(reply), verb);
}

/** Changes no more tasks than each key held at first, so that it ends even if tasks are added as fast. */
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
  const { groupPrefix } = redis.keysOf(queue);
  for (const key of await keysOfTasks(redis, queue, state, group)) {
    const name = state === 'aggregating' ? key.slice(groupPrefix.length) : '';
    for (let left = await sizeOf(redis, queue, key); left > 0;) {
      const limit = Math.min(left, MOST_CHANGED);
      const count = numberOf(await redis.runIn(queue, some, [state, name, limit, ...args(redis)]));
      done += count;
      left = count < limit ? 0 : left - count;
    }
  }
  return done;
}

/** In a cluster this is a separate step. A task that was added in between registers the queue again. */
async function unregister(redis: RedisAccess, queue: string): Promise<void> {
  const keys = redis.keysOf(queue);
  const lists = [keys.active, keys.pending, keys.scheduled, keys.retry, keys.archived, keys.completed];
  lists.push(keys.groups, keys.aggregationSets, keys.limits, keys.waiting);
  await redis.send((client) => client.srem(QUEUES_KEY, queue));
  const isThere = await redis.send((client) => client.exists(...lists));
  if (isThere > 0) await redis.send((client) => client.sadd(QUEUES_KEY, queue));
}
