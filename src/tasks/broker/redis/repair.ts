import type { Defect, DefectKind } from '../broker.ts';
import { groupsOf } from './groups.ts';
import { requireQueue } from './inspection.ts';
import type { QueueKeys } from './keys.ts';
import type { RedisAccess } from './redis-access.ts';
import { listOf, messageIfOf, numberOf, Script, secondsDown, secondsUp, textOf } from './script.ts';
import type { ScriptArgument, ScriptReply } from './script.ts';

/**
 * Checks whether ids that were read from a list or zset belong there, and removes those that do not. An id that has left it in the
 * meantime is ignored.
 *
 * KEYS[1]   prefix of the queue's keys
 * ARGV[1]   key of the LIST or ZSET
 * ARGV[2]   `list` or `zset`
 * ARGV[3]   state of its tasks
 * ARGV[4]   1 to repair
 * ARGV[5…]  ids
 *
 * Returns id and 1 per id without a task, id and 2 per id whose task is in another state.
 */
export const CHECK_PLACE = new Script(`
local PLACE, isList = ARGV[1], ARGV[2] == 'list'
local function isThere(id)
  if isList then return redis.call('LPOS', PLACE, id) end
  return redis.call('ZSCORE', PLACE, id)
end
need(ARGV[2], PLACE)
local reply = {}
for i = 5, #ARGV do
  local id = ARGV[i]
  local task = readTask(id, 'msg', 'state')
  if (not task[1] or task[2] ~= ARGV[3]) and isThere(id) then
    reply[#reply + 1] = id
    reply[#reply + 1] = task[1] and 2 or 1
    if ARGV[4] == '1' then
      if isList then redis.call('LREM', PLACE, 0, id) else redis.call('ZREM', PLACE, id) end
    end
  end
end
return reply
`);

/**
 * Checks whether active tasks are leased, and gives those that are not a lease that has ended, so that they are recovered: asynq's
 * recoverer reads only the leases, and never finds them.
 *
 * KEYS[1]   prefix of the queue's keys
 * ARGV[1]   end of such a lease
 * ARGV[2]   1 to repair
 * ARGV[3…]  ids
 *
 * Returns the ids of those that are not leased.
 */
export const CHECK_LEASES = new Script(`
local reply = {}
need('zset', LEASE)
for i = 3, #ARGV do
  local id = ARGV[i]
  local task = readTask(id, 'msg', 'state')
  if task[1] and task[2] == 'active' and not redis.call('ZSCORE', LEASE, id) then
    reply[#reply + 1] = id
    if ARGV[2] == '1' then redis.call('ZADD', LEASE, ARGV[1], id) end
  end
end
return reply
`);

/**
 * Checks whether tasks are where their state says, and adds those that are nowhere. A hash without a message is removed: it would
 * block its id for ever.
 *
 * KEYS[1]   prefix of the queue's keys
 * ARGV[1]   now
 * ARGV[2]   1 to repair
 * ARGV[3…]  ids
 *
 * Returns per defect id, 1 if the task has no message, 2 if it is nowhere, 3 if its group is not listed, and the group or ''.
 */
export const CHECK_TASKS = new Script(`
local NOW, isRepaired = ARGV[1], ARGV[2] == '1'
local LISTS = { pending = PENDING, active = ACTIVE }
local ZSETS = { scheduled = SCHEDULED, retry = RETRY, archived = ARCHIVED, completed = COMPLETED }
need('list', PENDING, ACTIVE)
need('zset', SCHEDULED, RETRY, ARCHIVED, COMPLETED, LEASE, SETS)
need('set', GROUPS)
local reply, tasks = {}, {}
local sets = redis.call('ZRANGE', SETS, 0, -1)
for _, set in ipairs(sets) do need('zset', set) end
local function report(id, what, where)
  local at = #reply
  reply[at + 1], reply[at + 2], reply[at + 3] = id, what, where
  return isRepaired
end
local function isHeld(id)
  for _, set in ipairs(sets) do
    if redis.call('ZSCORE', set, id) then return true end
  end
  return false
end
local function checkGroup(id, group)
  local key = GROUP .. group
  if redis.call('ZSCORE', key, id) then
    if redis.call('SISMEMBER', GROUPS, group) == 0 and report(id, 3, group) then redis.call('SADD', GROUPS, group) end
  elseif not isHeld(id) and report(id, 2, '') then
    redis.call('ZADD', key, NOW, id)
    redis.call('SADD', GROUPS, group)
  end
end
local function check(id, task)
  local state = task[2]
  if not task[1] then
    if redis.call('EXISTS', TASK .. id) == 1 and report(id, 1, '') then redis.call('DEL', TASK .. id) end
  elseif state == 'aggregating' then
    checkGroup(id, task[3] or '')
  elseif LISTS[state] then
    if redis.call('LPOS', LISTS[state], id) or not report(id, 2, '') then return end
    redis.call('LPUSH', LISTS[state], id)
    if state == 'active' then redis.call('ZADD', LEASE, 'NX', NOW, id) end
  elseif not (ZSETS[state] and redis.call('ZSCORE', ZSETS[state], id)) and report(id, 2, '') then
    redis.call('ZADD', ZSETS[state] or ZSETS.archived, NOW, id)
    if not ZSETS[state] then redis.call('HSET', TASK .. id, 'state', 'archived') end
  end
end
for i = 3, #ARGV do
  local task = readTask(ARGV[i], 'msg', 'state', 'group')
  if task[2] == 'aggregating' then need('zset', GROUP .. (task[3] or '')) end
  tasks[i] = task
end
for i = 3, #ARGV do check(ARGV[i], tasks[i]) end
return reply
`);

/**
 * Checks whether registered groups have tasks, or scheduled tasks that will enter them, and removes the names of those that do not.
 *
 * KEYS[1]   prefix of the queue's keys
 * ARGV[1]   1 to repair
 * ARGV[2…]  groups
 *
 * Returns the groups without tasks.
 */
export const CHECK_GROUPS = new Script(`
need('set', GROUPS)
local function isExpected(group)
  local ids = redis.pcall('SRANDMEMBER', LATER .. group, 1000)
  for _, id in ipairs(ids) do
    local task = readTask(id, 'msg', 'state', 'group')
    if task[2] == 'scheduled' and task[3] == group then return true end
  end
  return false
end
local reply = {}
for i = 2, #ARGV do
  local group = ARGV[i]
  local isEmpty = redis.call('EXISTS', GROUP .. group) == 0
  if isEmpty and redis.call('SISMEMBER', GROUPS, group) == 1 and not isExpected(group) then
    reply[#reply + 1] = group
    if ARGV[1] == '1' then
      redis.call('SREM', GROUPS, group)
      redis.call('DEL', LATER .. group)
    end
  end
end
return reply
`);

/**
 * Checks whether the tasks that hold locks exist and have not ended, and frees the other locks.
 *
 * KEYS[1]   prefix of the queue's keys
 * ARGV[1]   1 to repair
 * ARGV[2…]  locks
 *
 * Returns lock and id per lock that is freed.
 */
export const CHECK_LOCKS = new Script(`
local reply = {}
for i = 2, #ARGV do
  local lock = ARGV[i]
  local id = redis.pcall('GET', lock)
  local isLock = type(id) == 'string'
  local state = isLock and readTask(id, 'state')[1]
  if isLock and (not state or state == 'completed' or state == 'archived') then
    reply[#reply + 1] = lock
    reply[#reply + 1] = id
    if ARGV[1] == '1' then redis.call('DEL', lock) end
  end
end
return reply
`);

/** Ids that one script checks. */
const PER_SCRIPT = 500;

/** Keys that Redis visits for one step of a scan. */
const PER_SCAN = 1_000;

/** By the numbers that CHECK_PLACE and CHECK_TASKS return. */
const OF_PLACE: readonly (DefectKind | undefined)[] = [undefined, 'id-without-task', 'id-in-wrong-list'];
const OF_TASK: readonly (DefectKind | undefined)[] = [
  undefined,
  'task-without-message',
  'task-in-no-list',
  'group-not-listed',
];

/**
 * Checks a queue from both sides: from lists to tasks, then from tasks to lists; then its locks. A defect is checked again by
 * the script that repairs it, in one atomic step, because another process may have been in the middle of a change.
 */
export async function repair(redis: RedisAccess, queue: string, apply: boolean): Promise<Defect[]> {
  await requireQueue(redis, queue);
  const round = new Round(redis, queue, apply);
  await round.checkLists();
  await round.checkTasks();
  await round.checkLocks();
  return round.defects;
}

class Round {
  readonly defects: Defect[] = [];
  readonly #redis: RedisAccess;
  readonly #queue: string;
  readonly #keys: QueueKeys;
  readonly #flag: 0 | 1;
  /** Ids that were found in the lists, where Redis would have to search for them. */
  readonly #listed = new Set<string>();

  constructor(redis: RedisAccess, queue: string, apply: boolean) {
    this.#redis = redis;
    this.#queue = queue;
    this.#keys = redis.keysOf(queue);
    this.#flag = apply ? 1 : 0;
  }

  async checkLists(): Promise<void> {
    const keys = this.#keys;
    for (const state of ['pending', 'active'] as const) {
      for await (const ids of this.#idsOf(keys[state], true)) {
        for (const id of ids) this.#listed.add(id);
        await this.#checkPlace(keys[state], 'list', state, ids);
        if (state === 'active') await this.#checkLeases(ids);
      }
    }
    for (const state of ['scheduled', 'retry', 'archived', 'completed'] as const) {
      await this.#checkZset(keys[state], state);
    }
    await this.#checkZset(keys.lease, 'active');
    for (const { group } of await groupsOf(this.#redis, this.#queue)) {
      await this.#checkZset(keys.group(group), 'aggregating');
    }
    await this.#checkGroups();
    const sets = await this.#redis.send((client) => client.zrange(keys.aggregationSets, '0', '-1'));
    for (const set of sets) await this.#checkZset(set, 'aggregating');
  }

  async checkTasks(): Promise<void> {
    const { taskPrefix } = this.#keys;
    for await (const found of this.#scan(taskPrefix)) {
      const ids = found.map((name) => name.slice(taskPrefix.length));
      const unlisted = ids.filter((id) => !this.#listed.has(id));
      const reply = await this.#run(CHECK_TASKS, [secondsUp(this.#redis.wallNowMs), this.#flag, ...unlisted]);
      for (let at = 0; at < reply.length; at += 3) {
        this.#report(OF_TASK[numberOf(reply[at + 1])], reply[at], textOf(reply[at + 2]));
      }
      await this.#checkMessages(ids);
    }
  }

  async checkLocks(): Promise<void> {
    for await (const locks of this.#scan(this.#keys.lockPrefix)) {
      const reply = await this.#run(CHECK_LOCKS, [this.#flag, ...locks]);
      for (let at = 0; at < reply.length; at += 2) {
        this.#report('leaked-lock', reply[at + 1], textOf(reply[at]));
      }
    }
  }

  async #checkGroups(): Promise<void> {
    const names = await this.#redis.send((client) => client.smembers(this.#keys.groups));
    for (let first = 0; first < names.length; first += PER_SCRIPT) {
      const some = names.slice(first, first + PER_SCRIPT);
      for (const group of await this.#run(CHECK_GROUPS, [this.#flag, ...some])) {
        this.#report('group-without-tasks', undefined, textOf(group));
      }
    }
  }

  async #checkZset(key: string, state: string): Promise<void> {
    for await (const ids of this.#idsOf(key, false)) await this.#checkPlace(key, 'zset', state, ids);
  }

  async #checkPlace(key: string, kind: string, state: string, ids: readonly string[]): Promise<void> {
    const reply = await this.#run(CHECK_PLACE, [key, kind, state, this.#flag, ...ids]);
    for (let at = 0; at < reply.length; at += 2) {
      this.#report(OF_PLACE[numberOf(reply[at + 1])], reply[at], key);
    }
  }

  async #checkLeases(ids: readonly string[]): Promise<void> {
    const args = [secondsDown(this.#redis.wallNowMs), this.#flag, ...ids];
    for (const id of await this.#run(CHECK_LEASES, args)) {
      this.#report('active-without-lease', id, this.#keys.active);
    }
  }

  async #checkMessages(ids: readonly string[]): Promise<void> {
    const messages = await this.#redis.send((client) =>
      Promise.all(ids.map((id) => client.hgetBuffer(this.#keys.task(id), 'msg').catch(nullIfWrongType))),
    );
    for (const [at, id] of ids.entries()) {
      const message = messages[at] ?? null;
      if (message !== null && messageIfOf(this.#queue, id, message) === undefined) {
        this.defects.push({ kind: 'unreadable-message', queue: this.#queue, id, where: '' });
      }
    }
  }

  /** In pieces, from the end: an id that is removed from a piece, or added in front, does not move ids that are still to be read. */
  async *#idsOf(key: string, isList: boolean): AsyncGenerator<string[]> {
    const size = await this.#redis.send((client) => (isList ? client.llen(key) : client.zcard(key)));
    for (let end = size; end > 0; end -= PER_SCRIPT) {
      const [first, last] = [String(Math.max(end - PER_SCRIPT, 0)), String(end - 1)];
      const ids = await this.#redis.send((client) =>
        isList ? client.lrange(key, first, last) : client.zrange(key, first, last),
      );
      if (ids.length > 0) yield ids;
    }
  }

  /** Keys that begin with a prefix, on all nodes of a cluster. */
  async *#scan(prefix: string): AsyncGenerator<string[]> {
    const pattern = `${prefix.replaceAll(/[*?[\]\\]/gu, String.raw`\$&`)}*`;
    const nodes = await this.#redis.send((client) =>
      Promise.resolve('nodes' in client ? client.nodes('master') : [client]),
    );
    for (const node of nodes) {
      for (let cursor = ''; cursor !== '0';) {
        const [next, names] = await this.#redis.send(() =>
          node.scan(cursor || '0', 'MATCH', pattern, 'COUNT', PER_SCAN),
        );
        cursor = next;
        if (names.length > 0) yield names;
      }
    }
  }

  async #run(script: Script, args: readonly ScriptArgument[]): Promise<ScriptReply[]> {
    return listOf(await this.#redis.runIn(this.#queue, script, args));
  }

  #report(kind: DefectKind | undefined, id: ScriptReply | undefined, where: string): void {
    if (kind !== undefined) this.defects.push({ kind, queue: this.#queue, id: textOf(id), where });
  }
}

/** A key of another type is reported as a task without a message. */
function nullIfWrongType(error: unknown): null {
  if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return null;
  throw error;
}
