import { encodeTaskMessage } from '../../wire/task-message-codec.ts';
import { taskDuplicate, taskIdConflict, tickEarly } from '../broker-errors.ts';
import { MARK_KEPT_MS, MOST_AHEAD_MS, MOST_SET_BACK_MS } from '../broker-settings.ts';
import { replacedBy, requireNewTask } from '../../task-options.ts';
import type { NewTask, TaskRecord } from '../broker.ts';
import type { RedisAccess, RedisOperations, SharedScript } from './redis-access.ts';
import { toBrokerError } from './redis-errors.ts';
import {
  itemsOf,
  messageFor,
  msOfSeconds,
  numberOf,
  Script,
  type ScriptArgument,
  type ScriptReply,
  secondsUp,
  textOf,
} from './script.ts';

/**
 * `add(id, msg, score, group, lock, ttl)`: adds a task: scheduled if it has a score, aggregating if it has a group, else pending.
 * It returns 1, 2 or 3 for pending, scheduled and aggregating, 0 if the id is taken, the id of the task that holds the lock, or
 * an error if a key that it needs has a wrong type. Only that task is refused then.
 * `damage(score, group)`: returns that error beforehand.
 * `finish()`: after the last task, registers the queue, adds the ids to the pending list, and notifies the servers.
 *
 * The group of a scheduled task is registered as well: see `dropGroup` in script.ts.
 *
 * KEYS[2]  SET of all queues; see RedisAccess.keysToEnqueue
 * ARGV[1]  now, in milliseconds
 */
const addTask = ({ damage, signature, others, pending, finish }: Record<string, string>): string => `
local QUEUES, NOW_MS = KEYS[2], ARGV[1]
local NOW, NOW_NS, DAY = math.ceil(NOW_MS / 1000), NOW_MS .. '000000', 86400
local pushed, grown, added, checked, sound = {}, {}, 0, {}, {}
local function check(kind, key)
  if checked[key] == nil then checked[key] = wrongType(kind, key) or false end
  return checked[key]
end
local function damage(score, group)
  local wrong = QUEUES and check('set', QUEUES)
  if wrong then return wrong end
  if score ~= '' then wrong = check('zset', SCHEDULED)
  elseif group == '' then wrong = check('list', PENDING) end
${damage}  if wrong or group == '' then return wrong end
  return check('set', GROUPS) or (score ~= '' and check('set', LATER .. group) or check('zset', GROUP .. group))
end
local function write(id, msg, state, group, lock, ttl, ...)
  redis.call('HSET', TASK .. id, 'msg', msg, 'state', state, ...)
  if group ~= '' then redis.call('HSET', TASK .. id, 'group', group) end
  if lock ~= '' then
    redis.call('HSET', TASK .. id, 'unique_key', lock)
    redis.call('SET', lock, id, 'EX', ttl)
  end
  added = added + 1
end
local function schedule(id, score, group)
  redis.call('ZADD', SCHEDULED, score, id)
  if group == '' then return end
  redis.call('SADD', GROUPS, group)
  redis.call('SADD', LATER .. group, id)
  local ttl = score - NOW + DAY
  if redis.call('TTL', LATER .. group) < ttl then redis.call('EXPIRE', LATER .. group, ttl) end
end
local function add(id, msg, score, group, lock, ttl${signature})
  local list = score ~= '' and SCHEDULED or PENDING
  if group ~= '' or not sound[list] then
    local wrong = damage(score, group)
    if wrong then return wrong end
    sound[list] = group == ''
  end
  local owner = lock ~= '' and redis.pcall('GET', lock)
  if owner then return type(owner) == 'string' and owner or wrongType('string', lock) end
  if redis.call('EXISTS', TASK .. id) == 1 then return 0 end
  if score ~= '' then
    schedule(id, score, group)
    write(id, msg, 'scheduled', group, lock, ttl${others})
    return 2
  end
  if group ~= '' then
    redis.call('ZADD', GROUP .. group, NOW, id)
    redis.call('SADD', GROUPS, group)
    write(id, msg, 'aggregating', group, lock, ttl${others})
    grown[group] = true
    return 3
  end
${pending}  return 1
end
local function finish()
  if added > 0 and QUEUES then redis.call('SADD', QUEUES, queueName()) end
${finish}  for group in pairs(grown) do redis.pcall('PUBLISH', WORK, group) end
end
`;

const ADD_PLAIN_TASK = addTask({
  damage: '',
  signature: '',
  others: '',
  pending: `  write(id, msg, 'pending', group, lock, ttl, 'pending_since', NOW_NS)
  pushed[#pushed + 1] = id
`,
  finish: `  if #pushed > 0 then
    local size = redis.call('LPUSH', PENDING, unpack(pushed))
    if size == #pushed then redis.pcall('PUBLISH', WORK, '') end
  end
`,
});

/** As above, for a queue that may be flow controlled. `add` has two more arguments: the key or '', and whether the task is the next one. */
export const ADD_TASK = addTask({
  damage: `  wrong = wrong or flowDamage(score == '' and group == '')
`,
  signature: ', key, isNext',
  others: ', placeField(mark(key))',
  pending: `  write(id, msg, 'pending', group, lock, ttl, 'pending_since', NOW_NS, placeField(enter(id, key, isNext)))
`,
  finish: `  finishEntering()
`,
}).replace(
  'local function damage(',
  `local function placeField(place) if place then return 'x:key', place end end
local function flowDamage(isPending)
  local wrong = check('string', SEQ)
  if wrong or not isPending then return wrong end
  wrong = check('hash', LIMITS) or check('list', ACTIVE)
  for _, zset in ipairs({ WAITING, RING, PARKED, RUNS, RATES }) do wrong = wrong or check('zset', zset) end
  return wrong
end
local function damage(`,
);

/**
 * Adds tasks to a queue in their order, each independently of the others.
 *
 * KEYS      those of ADD_TASK
 * ARGV[1]   now, in milliseconds
 * ARGV[2…]  per task: id, msg, score or '', group or '', lock or '', seconds until the lock expires or ''
 *
 * Returns per task what ADD_TASK's `add` returns.
 */
export const ENQUEUE = new Script(`${ADD_PLAIN_TASK}
local outcomes = {}
for i = 2, #ARGV, 6 do
  outcomes[#outcomes + 1] = add(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5])
end
finish()
return outcomes
`);

/**
 * As ENQUEUE, for tasks with keys, for those that are to be the next, and for flow controlled queues.
 *
 * ARGV[2…]  per task: those of ENQUEUE, key or '', 1 if it is to be the next
 */
export const ENQUEUE_IN_FLOW = new Script(`${ADD_TASK}
local outcomes = {}
for i = 2, #ARGV, 8 do
  outcomes[#outcomes + 1] =
    add(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7] == '1')
end
finish()
return outcomes
`);

/**
 * Makes a task that waits another one, if it still is what was read. It stays where it is unless its state or group is another one.
 *
 * KEYS      those of ADD_TASK
 * ARGV[1]   now, in milliseconds
 * ARGV[2]   id
 * ARGV[3]   the msg that was read
 * ARGV[4]   the new msg
 * ARGV[5]   score or ''
 * ARGV[6]   group or ''
 * ARGV[7]   lock
 * ARGV[8]   seconds until the lock expires, or '' for as before
 * ARGV[9]   key or ''
 * ARGV[10]  1 if it is to be the next
 *
 * Returns what ADD_TASK's `add` returns for the new state, -1 if the task or its lock has changed, or the state that refuses it.
 */
export const REPLACE_TASK = new Script(`${ADD_TASK}
local id, msg, score, group, lock, key, isNext = ARGV[2], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[9], ARGV[10] == '1'
need('string', lock)
need('hash', TASK .. id)
local task = redis.call('HMGET', TASK .. id, 'msg', 'state', 'group', 'x:key')
local from, fromGroup = task[2], task[3] or ''
if redis.call('GET', lock) ~= id or task[1] ~= ARGV[3] then return -1 end
local SOURCE = zsetOf(from, fromGroup)
local waits = from == 'pending' or from == 'scheduled' or from == 'retry' or from == 'aggregating'
if not waits then return from end
if from == 'aggregating' and isHeld(id) then return 'being aggregated' end
need('set', GROUPS)
if SOURCE then need('zset', SOURCE) else need('list', PENDING) end
needFlow()
local wrong = damage(score, group)
if wrong then return wrong end
local to = score ~= '' and 'scheduled' or group ~= '' and 'aggregating' or 'pending'
local outcome = ({ pending = 1, scheduled = 2, aggregating = 3 })[to]
if ARGV[8] ~= '' then redis.call('SET', lock, id, 'EX', ARGV[8]) end
if to == from and group == fromGroup and key == keyIn(task[4]) and to ~= 'scheduled' and not isNext then
  redis.call('HSET', TASK .. id, 'msg', msg)
  return outcome
end
leave(id, from, fromGroup, task[4])
redis.call('HDEL', TASK .. id, 'group', 'pending_since', 'x:key')
local place
if to == 'pending' then place = enter(id, key, isNext) else place = mark(key) end
if to == 'scheduled' then schedule(id, score, group)
elseif to == 'aggregating' then
  redis.call('ZADD', GROUP .. group, NOW, id)
  redis.call('SADD', GROUPS, group)
  grown[group] = true
end
write(id, msg, to, group, '', '', placeField(place))
if to == 'pending' then makePending(id, NOW_NS) end
finish()
return outcome
`);

/**
 * Adds the task of a tick, unless that tick or a later one was added. The tick counts as added even if the task is refused. A tick
 * that is too far ahead of the time is refused; the mark of a later one that is too far ahead is ignored. Each tick also checks
 * some marks of other entries, and removes those of entries that have not ticked for long: eventually all of them.
 *
 * KEYS        those of ADD_TASK
 * ARGV[1]     now, in milliseconds
 * ARGV[2…7]   the task, as for ENQUEUE
 * ARGV[8]     key of the schedule entry
 * ARGV[9]     the tick, in milliseconds
 * ARGV[10]    now, in milliseconds, or '' for the clock of Redis
 * ARGV[11]    milliseconds that a tick may be ahead of now
 * ARGV[12]    milliseconds that a mark may be ahead of now
 * ARGV[13]    milliseconds that a mark is kept after its tick
 * ARGV[14]    key or ''
 * ARGV[15]    1 if it is to be the next
 *
 * Returns what `add` returns, nil if the tick or a later one was added before, or -1 if it is too far ahead.
 */
export const ENQUEUE_TICK = new Script(`${ADD_TASK}
need('hash', TICKS)
if ARGV[6] ~= '' then need('string', ARGV[6]) end
local wrong = damage(ARGV[4], ARGV[5])
if wrong then return wrong end
local time = redis.call('TIME')
local now = tonumber(ARGV[10]) or time[1] * 1000 + time[2] / 1000
local last, tick = tonumber(redis.call('HGET', TICKS, ARGV[8]) or ''), tonumber(ARGV[9])
if tick > now + ARGV[11] then return -1 end
if last and last >= tick and last <= now + ARGV[12] then return nil end
redis.call('HSET', TICKS, ARGV[8], ARGV[9])
redis.call('PEXPIRE', TICKS, ARGV[13])
local oldest = math.min(now, tick) - ARGV[13]
local marks = redis.call('HRANDFIELD', TICKS, 10, 'WITHVALUES')
for i = 1, #marks, 2 do
  if (tonumber(marks[i + 1]) or 0) < oldest then redis.call('HDEL', TICKS, marks[i]) end
end
local outcome = add(ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[14], ARGV[15] == '1')
finish()
return outcome
`);

/** By what `add` returns; 0 is a conflict. */
const STATES = [undefined, 'pending', 'scheduled', 'aggregating'] as const;

/** A new task, and its arguments of ENQUEUE. */
interface TaskArguments {
  readonly task: NewTask;
  /** When it is due, in seconds; 0 for now. */
  readonly score: number;
  readonly args: readonly ScriptArgument[];
}

/** Operations that add tasks. Calls of `enqueue` in one turn of the event loop share a script. */
export const ENQUEUING = {
  enqueue,

  enqueueMany: (redis, tasks) =>
    Promise.allSettled(
      tasks.map(async (task) => {
        requireNewTask(task);
        return enqueue(redis, task);
      }),
    ),

  async enqueueTick(redis, task, tick) {
    const { entryKey, atMs } = tick;
    const { queue } = task.message;
    const added = argumentsOf(task, redis.wallNowMs);
    const reply = await redis.run(ENQUEUE_TICK, await redis.keysToEnqueue(queue), [
      ...[redis.wallNowDigits, ...added.args, entryKey, atMs, redis.virtualNowDigits],
      ...[MOST_AHEAD_MS, MOST_SET_BACK_MS, MARK_KEPT_MS, ...turnOf(task)],
    ]);
    if (reply === -1) throw tickEarly(tick);
    return reply === null ? undefined : addedOrReplaced(redis, added, reply);
  },

  async lastTickMs(redis, queue, entryKey) {
    const { ticks } = redis.keysOf(queue);
    const last = await redis.send((client) => client.hgetBuffer(ticks, entryKey));
    return last === null ? undefined : numberOf(last);
  },
} satisfies RedisOperations;

async function enqueue(redis: RedisAccess, task: NewTask): Promise<TaskRecord> {
  const added = argumentsOf(task, redis.wallNowMs);
  return addedOrReplaced(redis, added, await redis.runShared(NEW_TASKS, task.message.queue, added));
}

/** @param reply - what ADD_TASK's `add` has returned. Duplicates of one lock replace its task in the order of their calls. */
async function addedOrReplaced(
  redis: RedisAccess,
  added: TaskArguments,
  reply: ScriptReply,
): Promise<TaskRecord> {
  const { onDuplicate = 'reject', message } = added.task;
  if (onDuplicate === 'reject' || !isDuplicate(reply)) return recordOfNew(redis, added, reply);
  return redis.inTurn(message.uniqueKey, () => replaceOrAdd(redis, added));
}

/** Reads the task that holds the lock, and makes it the new one; again if either has changed in between. */
async function replaceOrAdd(redis: RedisAccess, added: TaskArguments): Promise<TaskRecord> {
  const { queue, uniqueKey: lock } = added.task.message;
  for (;;) {
    const id = await redis.send((client) => client.get(lock));
    const msg =
      id === null
        ? null
        : await redis.send((client) => client.hgetBuffer(redis.keysOf(queue).task(id), 'msg'));
    if (id === null || msg === null) {
      const reply = await redis.runShared(NEW_TASKS, queue, added);
      if (isDuplicate(reply) && textOf(reply) !== id) continue;
      return recordOfNew(redis, added, reply);
    }
    const message = replacedBy(messageFor(queue, id, msg), added.task.message);
    const replaced = argumentsOf({ ...added.task, message }, redis.wallNowMs);
    const [, newMsg, score, group, , lockS] = replaced.args;
    const reply = await redis.run(REPLACE_TASK, await redis.keysToEnqueue(queue), [
      ...[redis.wallNowDigits, id, msg, newMsg, score, group, lock],
      ...[added.task.onDuplicate === 'extend' ? lockS : '', ...turnOf(added.task)],
    ] as ScriptArgument[]);
    if (reply === -1) continue;
    if (isDuplicate(reply)) throw taskDuplicate(queue, id);
    return recordOfNew(redis, replaced, reply);
  }
}

/** Whether a script has returned a text: who holds the lock, or the state that does not allow it. */
function isDuplicate(reply: ScriptReply): boolean {
  return typeof reply !== 'number' && !(reply instanceof Error);
}

const NEW_TASKS: SharedScript<TaskArguments, ScriptReply> = {
  run: async (redis, queue, tasks) => {
    const args: ScriptArgument[] = [redis.wallNowDigits];
    const isInFlow = redis.wasInFlow(queue) || tasks.some(({ task }) => hasTurn(task));
    for (const { args: own, task } of tasks) {
      args.push(...own);
      if (isInFlow) args.push(...turnOf(task));
    }
    const keys = await redis.keysToEnqueue(queue);
    const reply = itemsOf(await redis.run(isInFlow ? ENQUEUE_IN_FLOW : ENQUEUE, keys, args));
    if (isInFlow && tasks.some(({ task }) => task.message.key !== '')) redis.setFlow(queue, true);
    return reply;
  },
  bytesOf: ({ task }) => task.message.payload.length,
};

/** Whether a task cannot simply be added to the end of the list of pending tasks. */
function hasTurn({ message, isNext }: NewTask): boolean {
  return message.key !== '' || isNext === true;
}

/** The last arguments of a task for ENQUEUE_IN_FLOW. */
export function turnOf({ message, isNext }: NewTask): ScriptArgument[] {
  return [message.key, isNext === true ? 1 : ''];
}

/** @throws EscapementError `ERR_WIRE_MESSAGE` - the message cannot be encoded. */
export function argumentsOf(task: NewTask, wallNowMs: number): TaskArguments {
  const { message, processAtMs, uniqueTtlMs } = task;
  const isLater = processAtMs > wallNowMs;
  const score = isLater ? secondsUp(processAtMs) : 0;
  const lock = uniqueTtlMs > 0 ? message.uniqueKey : '';
  const lockMs = uniqueTtlMs + (isLater ? processAtMs - wallNowMs : 0);
  const lockS = lock === '' ? '' : secondsUp(lockMs);
  return {
    task,
    score,
    args: [message.id, encodeTaskMessage(message), isLater ? score : '', message.group, lock, lockS],
  };
}

/** @throws EscapementError `ERR_TASK_ID_CONFLICT`, `ERR_TASK_DUPLICATE` or `ERR_WIRE_MESSAGE` - the task was refused. */
export function recordOfNew(
  redis: RedisAccess,
  { task: { message }, score }: TaskArguments,
  reply: ScriptReply,
): TaskRecord {
  if (reply instanceof Error) throw toBrokerError(reply);
  if (typeof reply !== 'number') throw taskDuplicate(message.queue, textOf(reply));
  const state = STATES[reply];
  if (state === undefined) throw taskIdConflict(message.queue, message.id);
  return {
    message,
    state,
    nextProcessAtMs: state === 'pending' ? redis.wallNowMs : state === 'scheduled' ? msOfSeconds(score) : 0,
    result: undefined,
    progress: undefined,
    isOrphaned: false,
  };
}
