import { encodeTaskMessage } from '../../wire/message-codec.ts';
import { taskDuplicate, taskIdConflict, tickEarly } from '../broker-errors.ts';
import { MARK_KEPT_MS, MOST_AHEAD_MS, MOST_SET_BACK_MS } from '../broker-settings.ts';
import { replacedBy, requireNewTask } from '../../task-options.ts';
import type { NewTask, TaskRecord } from '../broker.ts';
import { ADD_PLAIN_TASK, ADD_TASK } from './add-task.ts';
import type { RedisAccess, RedisOperations, SharedScript } from './redis-access.ts';
import { toBrokerError } from './redis-errors.ts';
import { bytesOf, itemsOf, messageFor, msOfSeconds, numberOf, secondsUp, textOf } from './replies.ts';
import { Script, type ScriptArgument, type ScriptReply } from './script.ts';

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
 * As ENQUEUE, for tasks with keys, for those that are to be the next, and for flow controlled queues. Mostly all tasks of a call are
 * pending at once and have no lock. Then they have fewer arguments, and Redis looks for all their ids at once.
 *
 * ARGV[2]   1 if all tasks have different ids, no score, no group and no lock, and none is to be the next; else ''
 * ARGV[3…]  per task: id, msg, key or ''; unless ARGV[2] is 1, also score or '', group or '', lock or '', seconds until the lock expires
 *           or '', 1 if it is to be the next
 */
export const ENQUEUE_IN_FLOW = new Script(`${ADD_TASK}
local args, call, outcomes, names, n = ARGV, redis.call, {}, {}, 0
local function addPending(name, msg, key)
  if key ~= '' then call('HSET', name, 'msg', msg, 'state', 'pending', 'pending_since', NOW_NS, 'x:key', key)
  else call('HSET', name, 'msg', msg, 'state', 'pending', 'pending_since', NOW_NS) end
end
local isPlain = args[2] == '1'
if isPlain then
  for i = 3, #args, 3 do
    n = n + 1
    names[n] = TASK .. args[i]
  end
end
if isPlain and call('EXISTS', unpack(names)) == 0 and not damage('', '') then
  for i = 1, n do
    local at = 3 * i
    addPending(names[i], args[at + 1], args[at + 2])
    enter(args[at], args[at + 2], false)
    outcomes[i] = 1
  end
  added = n
elseif isPlain then
  for i = 3, #args, 3 do outcomes[#outcomes + 1] = add(args[i], args[i + 1], '', '', '', '', args[i + 2], false) end
else
  for i = 3, #args, 8 do
    local id, msg, key, score, group, lock, ttl, isNext = unpack(args, i, i + 7)
    outcomes[#outcomes + 1] = add(id, msg, score, group, lock, ttl, key, isNext == '1')
  end
end
finish()
return outcomes
`);

/**
 * What scripts share that add the task of a tick: `needTick()`, `isEarly()`, `isAdded()` (that tick or a later one), and `markTick()`, which
 * does nothing without a tick. The mark of a later tick that is too far ahead of the time is ignored. `markTick` also checks some marks of
 * other entries, and removes those of entries that have not ticked for long: eventually all of them.
 *
 * ARGV[11]  key of the schedule entry; absent without a tick
 * ARGV[12]  the tick, in milliseconds
 * ARGV[13]  milliseconds that a tick may be ahead of now
 * ARGV[14]  milliseconds that a mark may be ahead of now
 * ARGV[15]  milliseconds that a mark is kept after its tick
 */
const TICK = `
local ENTRY, TICK, AHEAD, SET_BACK, KEPT = unpack(ARGV, 11)
local function needTick() if ENTRY then need('hash', TICKS) end end
local function isEarly() return tonumber(TICK) > nowMs() + AHEAD end
local function isAdded()
  local last = ENTRY and tonumber(redis.call('HGET', TICKS, ENTRY) or '')
  return last and last >= tonumber(TICK) and last <= nowMs() + SET_BACK
end
local function markTick()
  if not ENTRY then return end
  redis.call('HSET', TICKS, ENTRY, TICK)
  redis.call('PEXPIRE', TICKS, KEPT)
  local oldest = math.min(nowMs(), TICK) - KEPT
  local marks = redis.call('HRANDFIELD', TICKS, 10, 'WITHVALUES')
  for i = 1, #marks, 2 do
    if (tonumber(marks[i + 1]) or 0) < oldest then redis.call('HDEL', TICKS, marks[i]) end
  end
end
`;

/**
 * Makes a task that waits another one, if it still is what was read, and if its tick was not added. It stays where it is unless its state,
 * group or key is another one, or it is to be the next one and is not. The tick counts as added even if the state refuses it.
 *
 * KEYS       those of ADD_TASK
 * ARGV[1]    now, in milliseconds
 * ARGV[2]    id
 * ARGV[3]    the msg that was read
 * ARGV[4]    the new msg
 * ARGV[5]    score or ''
 * ARGV[6]    group or ''
 * ARGV[7]    lock
 * ARGV[8]    seconds until the lock expires, or '' for as before
 * ARGV[9]    key or ''
 * ARGV[10]   1 if it is to be the next
 * ARGV[11…]  those of TICK
 *
 * Returns what ADD_TASK's `add` returns for the new state, -1 if the task or its lock has changed, nil if the tick or a later one was
 * added before, or the state that refuses it.
 */
export const REPLACE_TASK = new Script(`${ADD_TASK}${TICK}
local id, msg, score, group, lock, key, isNext = ARGV[2], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[9], ARGV[10] == '1'
need('string', lock)
need('hash', TASK .. id)
needTick()
if isAdded() then return nil end
local task = redis.call('HMGET', TASK .. id, 'msg', 'state', 'group', 'x:key')
local from, fromGroup = task[2] or '', task[3] or ''
if redis.call('GET', lock) ~= id or task[1] ~= ARGV[3] then return -1 end
local SOURCE = zsetOf(from, fromGroup)
local waits = from == 'pending' or from == 'scheduled' or from == 'retry' or from == 'aggregating'
local refusal = not waits and from or from == 'aggregating' and isHeld(id) and 'being aggregated'
if refusal then
  markTick()
  return refusal
end
need('set', GROUPS)
if SOURCE then need('zset', SOURCE) else need('list', PENDING) end
needFlow()
local wrong = damage(score, group)
if wrong then return wrong end
markTick()
local to = score ~= '' and 'scheduled' or group ~= '' and 'aggregating' or 'pending'
local function isFirst()
  if key == '' then return redis.call('LINDEX', PENDING, -1) == id end
  return redis.call('HGET', FIRSTS, key) == id
end
local outcome = ({ pending = 1, scheduled = 2, aggregating = 3 })[to]
if ARGV[8] ~= '' then redis.call('SET', lock, id, 'EX', ARGV[8]) end
if to == from and group == fromGroup and key == (task[4] or '') and to ~= 'scheduled'
  and (not isNext or to == 'pending' and isFirst()) then
  redis.call('HSET', TASK .. id, 'msg', msg)
  return outcome
end
leave(id, from, fromGroup, task[4])
redis.call('HDEL', TASK .. id, 'group', 'pending_since', 'x:key')
if to == 'pending' then enter(id, key, isNext) end
if to == 'scheduled' then schedule(id, score, group)
elseif to == 'aggregating' then
  redis.call('ZADD', GROUP .. group, NOW, id)
  redis.call('SADD', GROUPS, group)
  grown[group] = true
end
write(id, msg, to, group, '', '', keyField(key))
if to == 'pending' then makePending(id, NOW_NS) end
finish()
return outcome
`);

/**
 * Adds the task of a tick, unless that tick or a later one was added. The tick counts as added even if the task is refused, but not if the
 * task is to replace the one that holds its lock: then REPLACE_TASK adds the tick.
 *
 * KEYS       those of ADD_TASK
 * ARGV[1]    now, in milliseconds
 * ARGV[2…7]  the task, as for ENQUEUE
 * ARGV[8]    key or ''
 * ARGV[9]    1 if it is to be the next
 * ARGV[10]   1 if it replaces a duplicate, else ''
 * ARGV[11…]  those of TICK
 *
 * Returns what `add` returns, nil if the tick or a later one was added before, or -1 if it is too far ahead.
 */
export const ENQUEUE_TICK = new Script(`${ADD_TASK}${TICK}
needTick()
if ARGV[6] ~= '' then need('string', ARGV[6]) end
local wrong = damage(ARGV[4], ARGV[5])
if wrong then return wrong end
if isEarly() then return -1 end
if isAdded() then return nil end
local outcome = add(ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9] == '1')
if type(outcome) ~= 'string' or ARGV[10] == '' then markTick() end
finish()
return outcome
`);

/** States of an added task, by what the function `add` of a script returns; 0 is a conflict of ids. */
const STATES = [undefined, 'pending', 'scheduled', 'aggregating'] as const;

/** A new task, and its arguments of ENQUEUE. */
interface TaskArguments {
  readonly task: NewTask;
  /** When it is due, in seconds; 0 for now. */
  readonly score: number;
  readonly args: readonly ScriptArgument[];
  /** What its runs have written, if it replaces a task. */
  readonly written?: Pick<TaskRecord, 'result' | 'progress'>;
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
    const { queue } = task.message;
    const added = argumentsOf(task, redis.wallNowMs);
    const tickArgs = [tick.entryKey, tick.atMs, MOST_AHEAD_MS, MOST_SET_BACK_MS, MARK_KEPT_MS];
    const args = [redis.wallNowDigits, ...added.args, ...turnOf(task), replaces(task) ? 1 : '', ...tickArgs];
    const add = (): Promise<ScriptReply> => redis.runToEnqueue(queue, ENQUEUE_TICK, args);
    const [placed, reply] = await addOrReplace(redis, added, add, tickArgs);
    if (reply === -1) throw tickEarly(tick);
    return reply === null ? undefined : recordOfNew(redis, placed, reply);
  },

  async lastTickMs(redis, queue, entryKey) {
    const { ticks } = redis.keysOf(queue);
    const last = await redis.send((client) => client.hgetBuffer(ticks, entryKey));
    return last === null ? undefined : numberOf(last);
  },
} satisfies RedisOperations;

async function enqueue(redis: RedisAccess, task: NewTask): Promise<TaskRecord> {
  const added = argumentsOf(task, redis.wallNowMs);
  const add = (): Promise<ScriptReply> => redis.runShared(NEW_TASKS, task.message.queue, added);
  return recordOfNew(redis, ...(await addOrReplace(redis, added, add, [])));
}

/**
 * Duplicates of one lock replace its task in the order of their calls.
 *
 * @param add - adds the task. @returns what ADD_TASK's `add` returns, or another reply that ends the call.
 * @returns the task that was added or has replaced another one, and the last reply.
 */
async function addOrReplace(
  redis: RedisAccess,
  added: TaskArguments,
  add: () => Promise<ScriptReply>,
  tickArgs: readonly ScriptArgument[],
): Promise<[TaskArguments, ScriptReply]> {
  const reply = await add();
  if (!replaces(added.task) || !isDuplicate(reply)) return [added, reply];
  return redis.replacements.run(added.task.message.uniqueKey, () =>
    replaceOrAdd(redis, added, add, tickArgs),
  );
}

/** Reads the task that holds the lock, and makes it the new one; again if either has changed in between. */
async function replaceOrAdd(
  redis: RedisAccess,
  added: TaskArguments,
  add: () => Promise<ScriptReply>,
  tickArgs: readonly ScriptArgument[],
): Promise<[TaskArguments, ScriptReply]> {
  const { queue, uniqueKey: lock } = added.task.message;
  for (;;) {
    const id = await redis.send((client) => client.get(lock));
    const [msg, result, progress] = id === null ? [] : await readWaiting(redis, queue, id);
    if (id === null || msg == null) {
      const reply = await add();
      if (isDuplicate(reply) && textOf(reply) !== id) continue;
      return [added, reply];
    }
    const message = replacedBy(messageFor(queue, id, msg), added.task.message);
    const replaced = argumentsOf({ ...added.task, message }, redis.wallNowMs);
    const [, newMsg, score, group, , lockS] = replaced.args;
    const reply = await redis.runToEnqueue(queue, REPLACE_TASK, [
      ...[redis.wallNowDigits, id, msg, newMsg, score, group, lock],
      ...[added.task.onDuplicate === 'extend' ? lockS : '', ...turnOf(added.task), ...tickArgs],
    ] as ScriptArgument[]);
    if (reply === -1) continue;
    if (isDuplicate(reply)) throw taskDuplicate(added.task.message, id);
    const written = { result: bytesOf(result), progress: progress?.toString() };
    return [{ ...replaced, written }, reply];
  }
}

function readWaiting(redis: RedisAccess, queue: string, id: string): Promise<(Buffer | null)[]> {
  const key = redis.keysOf(queue).task(id);
  return redis.send((client) => client.hmgetBuffer(key, 'msg', 'result', 'x:progress'));
}

function replaces({ onDuplicate = 'reject' }: NewTask): boolean {
  return onDuplicate !== 'reject';
}

/** Whether a script has returned a text: the id of the task that holds the lock, or the state that does not allow it. */
function isDuplicate(reply: ScriptReply): boolean {
  return Buffer.isBuffer(reply);
}

const NEW_TASKS: SharedScript<TaskArguments, ScriptReply> = {
  run: async (redis, queue, tasks) => {
    const isInFlow = redis.wasInFlow(queue) || tasks.some(({ task }) => hasTurn(task));
    const args = isInFlow ? argumentsInFlow(tasks) : tasks.flatMap((added) => added.args);
    const script = isInFlow ? ENQUEUE_IN_FLOW : ENQUEUE;
    const reply = itemsOf(await redis.runToEnqueue(queue, script, [redis.wallNowDigits, ...args]));
    if (isInFlow && tasks.some(({ task }) => task.message.key !== '')) redis.setFlow(queue, true);
    return reply;
  },
  bytesOf: ({ task }) => task.message.payload.length,
};

/** Whether a task cannot simply be added to the end of the list of pending tasks. */
function hasTurn({ message, isNext }: NewTask): boolean {
  return message.key !== '' || isNext === true;
}

/** ARGV[2…] of ENQUEUE_IN_FLOW. */
function argumentsInFlow(tasks: readonly TaskArguments[]): ScriptArgument[] {
  const ids = new Set(tasks.map(({ task }) => task.message.id));
  const isPlain = ids.size === tasks.length && tasks.every(isPlainTask);
  const args: ScriptArgument[] = [isPlain ? 1 : ''];
  for (const added of tasks) {
    const [id = '', msg = '', ...others] = added.args;
    const [key = '', isNext = ''] = turnOf(added.task);
    args.push(id, msg, key);
    if (!isPlain) args.push(...others, isNext);
  }
  return args;
}

/** Whether a task is pending at once, without a lock, and not before others. */
function isPlainTask({ task, score, args }: TaskArguments): boolean {
  return score === 0 && task.isNext !== true && task.message.group === '' && args[4] === '';
}

/** The last arguments of a task for scripts that add one task. */
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
  { task: { message }, score, written }: TaskArguments,
  reply: ScriptReply,
): TaskRecord {
  if (reply instanceof Error) throw toBrokerError(reply);
  if (typeof reply !== 'number') throw taskDuplicate(message, textOf(reply));
  const state = STATES[reply];
  if (state === undefined) throw taskIdConflict(message.queue, message.id);
  return {
    message,
    state,
    nextProcessAtMs: state === 'pending' ? redis.wallNowMs : state === 'scheduled' ? msOfSeconds(score) : 0,
    result: written?.result,
    progress: written?.progress,
    isOrphaned: false,
  };
}
