import { randomUUID } from 'node:crypto';
import type { TaskMessage } from '../../task-options.ts';
import { setLost } from '../broker-errors.ts';
import type { GroupInfo } from '../broker.ts';
import { ADD_TASK } from './add-task.ts';
import { argumentsOf, recordOfNew, turnOf } from './enqueue.ts';
import type { RedisAccess, RedisOperations } from './redis-access.ts';
import { itemsOf, messageIfOf, numberOf, rowsOf, secondsDown, secondsUp, textOf } from './replies.ts';
import { MOST_READ, MOST_REPLY_BYTES, Script, type ScriptReply } from './script.ts';

/**
 * Lists some groups of a queue with their sizes. A group whose key has a wrong type is left out: the others are aggregated anyway.
 *
 * ARGV[1]  cursor; 0 to begin
 * ARGV[2]  approximate number of groups
 *
 * Returns the next cursor, 0 at the end, then name and size per group that has tasks. A group may be returned twice.
 */
export const LIST_GROUPS = new Script(`
need('set', GROUPS)
local found = redis.call('SSCAN', GROUPS, ARGV[1], 'COUNT', ARGV[2])
local reply = { found[1] }
for _, group in ipairs(found[2]) do
  local _, size = wrongType('zset', GROUP .. group)
  if size and size > 0 then
    reply[#reply + 1] = group
    reply[#reply + 1] = size
  end
end
return reply
`);

/**
 * Takes the oldest tasks out of a group if the group is due: it has enough tasks, its oldest task has waited too long, or no task
 * was added for a while. Ids without a task, or whose task is elsewhere, are dropped.
 *
 * ARGV[1]  name of the group
 * ARGV[2]  key of the new set
 * ARGV[3]  now
 * ARGV[4]  seconds without a new task after which the group is due
 * ARGV[5]  seconds that the oldest task waits at most; 0 for no limit
 * ARGV[6]  number of tasks that makes the group due; 0 for no number
 * ARGV[7]  number of tasks that are taken
 * ARGV[8]  when the tasks return to the group unless they are replaced
 * ARGV[9]  bytes after which no more tasks are taken
 *
 * Returns the seconds until the group is due (after the taking), or -1 if it is empty; then id and msg per task.
 */
export const TAKE_GROUP = new Script(`
local KEY, SET = GROUP .. ARGV[1], ARGV[2]
local now, grace, delay, enough = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
need('zset', KEY, SET, SETS)
need('set', GROUPS)
local function due()
  local size = redis.call('ZCARD', KEY)
  if size == 0 then return -1 end
  if enough > 0 and size >= enough then return 0 end
  local newest = tonumber(redis.call('ZRANGE', KEY, -1, -1, 'WITHSCORES')[2])
  local wait = newest + grace - now
  if delay > 0 then
    local oldest = tonumber(redis.call('ZRANGE', KEY, 0, 0, 'WITHSCORES')[2])
    wait = math.min(wait, oldest + delay - now)
  end
  return math.max(wait, 0)
end
local reply = { due() }
if reply[1] > 0 then return reply end
local rows = redis.call('ZRANGE', KEY, 0, ARGV[7] - 1, 'WITHSCORES')
local bytes, read = tonumber(ARGV[9]), 0
for i = 1, #rows, 2 do
  if bytes <= 0 then break end
  read = read + 1
  local id = rows[i]
  local task = readTask(id, 'msg', 'state')
  if task[1] and task[2] == 'aggregating' then
    redis.call('ZADD', SET, rows[i + 1], id)
    bytes = bytes - #task[1]
    reply[#reply + 1] = id
    reply[#reply + 1] = task[1]
  elseif isGhost(task) then redis.call('DEL', TASK .. id) end
end
if read > 0 then redis.call('ZREMRANGEBYRANK', KEY, 0, read - 1) end
if #reply > 1 then redis.call('ZADD', SETS, ARGV[8], SET) end
reply[1] = due()
if reply[1] == -1 then dropGroup(ARGV[1]) end
return reply
`);

/**
 * Archives tasks of a set whose message cannot be decoded, or is the message of another task, and frees their locks. A set without
 * tasks is removed.
 *
 * ARGV[1]   key of the set
 * ARGV[2]   now
 * ARGV[3…]  ids
 */
export const ARCHIVE_FROM_SET = new Script(`
local SET = ARGV[1]
need('zset', SET, SETS, ARCHIVED)
for i = 3, #ARGV do
  local id = ARGV[i]
  if redis.call('ZREM', SET, id) == 1 and readTask(id, 'msg')[1] then
    archive(id, ARGV[2])
    redis.pcall('PUBLISH', SETTLED, id)
  end
end
if redis.call('EXISTS', SET) == 0 then redis.call('ZREM', SETS, SET) end
`);

/**
 * Replaces the tasks of a set by one task: removes them with their locks and adds it, or does neither.
 *
 * KEYS       those of ADD_TASK
 * ARGV[1]    now, in milliseconds
 * ARGV[2…7]  the new task, as for ENQUEUE
 * ARGV[8]    key of the set
 * ARGV[9]    key of the new task or ''
 * ARGV[10]   1 if the new task is to be the next
 *
 * Returns what ADD_TASK's `add` returns, or nil if the set is no longer held.
 */
export const REPLACE_SET = new Script(`${ADD_TASK}
local SET, id, lock = ARGV[8], ARGV[2], ARGV[6]
need('zset', SETS, SET)
local members = redis.call('ZRANGE', SET, 0, -1)
if #members == 0 then return nil end
local wrong = damage(ARGV[4], ARGV[5])
if wrong then return wrong end
local leaving = {}
for _, member in ipairs(members) do leaving[member] = true end
if lock ~= '' then need('string', lock) end
local owner = lock ~= '' and redis.call('GET', lock)
if owner and not leaving[owner] then return owner end
if not leaving[id] and redis.call('EXISTS', TASK .. id) == 1 then return 0 end
for _, member in ipairs(members) do
  freeLockOf(member)
  redis.call('DEL', TASK .. member)
end
redis.call('DEL', SET)
redis.call('ZREM', SETS, SET)
local outcome = add(id, ARGV[3], ARGV[4], ARGV[5], lock, ARGV[7], ARGV[9], ARGV[10] == '1')
finish()
redis.pcall('PUBLISH', SETTLED, table.concat(members, '\\0'))
return outcome
`);

/**
 * Puts sets that were held too long back into their groups, and adds the names of these groups: asynq leaves the names out, and no
 * server aggregates such a group until a new task enters it. What is registered as a set and cannot belong to this queue is
 * removed from the sets.
 *
 * ARGV[1]  now
 * ARGV[2]  number of sets
 *
 * Returns the number of tasks and the number of sets: there may be more if that is ARGV[2].
 */
export const RECLAIM_SETS = new Script(`
need('zset', SETS)
need('set', GROUPS)
local sets = redis.call('ZRANGEBYSCORE', SETS, '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
local groupOf = {}
for _, set in ipairs(sets) do
  local key = string.sub(set, 1, #GROUP) == GROUP and string.match(set, '^(.*):')
  if key and #key > #GROUP then
    need('zset', set, key)
    groupOf[set] = string.sub(key, #GROUP + 1)
  end
end
local count = 0
local function putBack(set, group)
  local rows = redis.call('ZRANGE', set, 0, -1, 'WITHSCORES')
  for i = 1, #rows, 2 do redis.call('ZADD', GROUP .. group, rows[i + 1], rows[i]) end
  redis.call('DEL', set)
  if #rows == 0 then return end
  count = count + #rows / 2
  redis.call('SADD', GROUPS, group)
  redis.pcall('PUBLISH', WORK, group)
end
for _, set in ipairs(sets) do
  if groupOf[set] then putBack(set, groupOf[set]) end
  redis.call('ZREM', SETS, set)
end
return { count, #sets }
`);

/** What one script takes at most from a group without a limit: the rest becomes a set of its own. */
const MAX_SET_SIZE = 10_000;

const SETS_PER_SCRIPT = 10;

export const GROUPS = {
  groups: groupsOf,

  async takeGroup(redis, queue, group, limits, holdMs) {
    const { graceMs, maxDelayMs, maxSize } = limits;
    const id = randomUUID();
    const set = redis.keysOf(queue).aggregationSet(group, id);
    const nowMs = redis.wallNowMs;
    const limitsS = [secondsDown(nowMs), secondsUp(graceMs), secondsUp(maxDelayMs)];
    const count = maxSize === 0 ? MAX_SET_SIZE : maxSize;
    const args = [group, set, ...limitsS, maxSize, count, secondsUp(nowMs + holdMs), MOST_REPLY_BYTES];
    const reply = itemsOf(await redis.runIn(queue, TAKE_GROUP, args));
    const againInS = numberOf(reply[0]);
    const messages = await readMembers(redis, queue, set, reply);
    return {
      set: messages.length === 0 ? undefined : { id, queue, group, messages },
      againInMs: againInS < 0 ? undefined : againInS * 1_000,
    };
  },

  async replaceSet(redis, set, task) {
    const { queue, group, id } = set;
    const added = argumentsOf(task, redis.wallNowMs);
    const setKey = redis.keysOf(queue).aggregationSet(group, id);
    const args = [redis.wallNowDigits, ...added.args, setKey, ...turnOf(task)];
    const reply = await redis.runToEnqueue(queue, REPLACE_SET, args);
    if (reply === null) throw setLost(queue, group);
    return recordOfNew(redis, added, reply);
  },

  async reclaimSets(redis, queues) {
    let count = 0;
    for (const queue of new Set(queues)) {
      for (let sets = SETS_PER_SCRIPT; sets === SETS_PER_SCRIPT;) {
        const args = [secondsDown(redis.wallNowMs), SETS_PER_SCRIPT];
        const reply = itemsOf(await redis.runIn(queue, RECLAIM_SETS, args));
        count += numberOf(reply[0]);
        sets = numberOf(reply[1]);
      }
    }
    return count;
  },
} satisfies RedisOperations;

export async function groupsOf(redis: RedisAccess, queue: string): Promise<readonly GroupInfo[]> {
  const infos = new Map<string, GroupInfo>();
  for await (const info of groupsFrom(redis, queue, '')) infos.set(info.group, info);
  return [...infos.values()].sort((a, b) => (a.group < b.group ? -1 : 1));
}

/** Yields the groups from a cursor of LIST_GROUPS on: '' to begin. A group may come twice. */
export async function* groupsFrom(
  redis: RedisAccess,
  queue: string,
  from: string,
): AsyncGenerator<GroupInfo> {
  for (let cursor = from; cursor !== '0';) {
    const reply = itemsOf(await redis.runIn(queue, LIST_GROUPS, [cursor || '0', MOST_READ]));
    for (const [name, size] of rowsOf(reply, 1, 2)) yield { group: textOf(name), size: numberOf(size) };
    cursor = textOf(reply[0]);
  }
}

/** Tasks whose message cannot be decoded are archived: with them, the set could never be replaced. */
async function readMembers(
  redis: RedisAccess,
  queue: string,
  set: string,
  reply: readonly ScriptReply[],
): Promise<TaskMessage[]> {
  const messages: TaskMessage[] = [];
  const unreadable: string[] = [];
  for (const [name, msg] of rowsOf(reply, 1, 2)) {
    const id = textOf(name);
    const message = messageIfOf(queue, id, msg);
    if (message === undefined) unreadable.push(id);
    else messages.push(message);
  }
  if (unreadable.length > 0) {
    await redis.runIn(queue, ARCHIVE_FROM_SET, [set, secondsUp(redis.wallNowMs), ...unreadable]);
  }
  return messages;
}
