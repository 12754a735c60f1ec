import { TASK_STATES, type TaskState } from '../../task-state.ts';
import type { Defect, DefectKind } from '../broker.ts';
import { requireQueue } from './inspection.ts';
import type { QueueKeys } from './keys.ts';
import type { RedisAccess } from './redis-access.ts';
import {
  itemsOf,
  messageIfOf,
  MOST_CHANGED,
  numberOf,
  rowsOf,
  Script,
  secondsDown,
  textOf,
} from './script.ts';
import { allKeysOfTasks, isList, keysWithPrefix, sizeOf } from './task-keys.ts';

/**
 * For scripts that check ids. They begin with these arguments, and return how many of ARGV[5…] they have checked, and per defect its kind,
 * the id or '', and the list, lock or group, which may be ''.
 *
 * ARGV[1]   1 to repair
 * ARGV[2]   key of a LIST or ZSET, or ''
 * ARGV[3]   state of its tasks, or ''
 * ARGV[4]   now
 * ARGV[5…]  ids, groups or locks
 *
 * `report(kind, id, where)`: adds a defect to the reply. Returns whether the caller must repair it.
 * `isInList(list, id)`: O(ids of the list). `isWaiting(id, key)`: whether a task is among the pending ones of a key.
 * `checkEach(check, step)`: checks each of ARGV[5…], or every `step`-th with the one behind it, until it has searched for long enough.
 * Returns the reply.
 */
const CHECK = `
local LIST, state, NOW, reply = ARGV[2], ARGV[3], ARGV[4], { 0 }
local searched, MOST_SEARCHED = 0, 1000000
local function isInList(list, id)
  searched = searched + (tonumber(redis.pcall('LLEN', list)) or 0)
  return type(redis.pcall('LPOS', list, id)) == 'number'
end
local function isWaiting(id, key)
  return redis.call('HGET', FIRSTS, key) == id or isInList(NEXT .. key, id)
end
local function report(kind, id, where)
  local at = #reply
  reply[at + 1], reply[at + 2], reply[at + 3] = kind, id, where
  return ARGV[1] == '1'
end
local function checkEach(check, step)
  local i = 5
  while i <= #ARGV and searched < MOST_SEARCHED do
    check(ARGV[i], ARGV[i + 1])
    i = i + (step or 1)
  end
  reply[1] = i - 5
  return reply
end
`;

/**
 * Checks whether ids that were read from a list or zset belong there, and removes those that do not. An id that has left it in the
 * meantime is ignored.
 */
export const CHECK_PLACE = new Script(`${CHECK}
local isList = LIST == PENDING or LIST == ACTIVE
local function isThere(id)
  if isList then return isInList(LIST, id) end
  return redis.call('ZSCORE', LIST, id)
end
need(isList and 'list' or 'zset', LIST)
return checkEach(function(id)
  local task = readTask(id, 'msg', 'state')
  if (not task[1] or task[2] ~= state) and isThere(id) then
    if report(task[1] and 'id-in-wrong-list' or 'id-without-task', id, LIST) then
      if isList then redis.call('LREM', LIST, 0, id) else redis.call('ZREM', LIST, id) end
    end
  end
end)
`);

/**
 * Checks whether pending tasks belong to the keys in whose order they were found, and removes those that do not. ARGV[5…] are, per task,
 * the key and the id.
 */
export const CHECK_WAITING = new Script(`${CHECK}
needFlow()
return checkEach(function(key, id)
  local task = readTask(id, 'msg', 'state', 'x:key')
  local isRight = task[1] and task[2] == state and task[3] == key
  if not isRight and isWaiting(id, key) then
    if report(task[1] and 'id-in-wrong-list' or 'id-without-task', id, NEXT .. key) then leaveKey(id, key) end
  end
end, 2)
`);

/** Checks whether keys with a list of pending tasks have a first one: else no server would find the others. ARGV[5…] are the keys. */
export const CHECK_FIRSTS = new Script(`${CHECK}
needFlow()
need('list', ACTIVE)
for i = 5, #ARGV do need('list', NEXT .. ARGV[i]) end
return checkEach(function(key)
  local list = NEXT .. key
  local first = redis.call('HEXISTS', FIRSTS, key) == 0 and redis.call('LINDEX', list, 0)
  if not first or not report('task-in-no-list', first, list) then return end
  redis.call('HSET', FIRSTS, key, popNext(key))
  enterRing({ key })
end)
`);

/**
 * Checks whether each key with pending tasks has one turn, or is held back, and no other key does: else no server would find the tasks, or
 * not in their order. O(keys of the queue), in one step.
 */
export const CHECK_TURNS = new Script(`${CHECK}
needFlow()
need('list', PENDING, ACTIVE)
local PIECE, firsts, seen = 1000, {}, {}
local found = redis.call('HGETALL', FIRSTS)
for i = 1, #found, 2 do firsts[found[i]] = found[i + 1] end
local function inPieces(keys, act)
  for at = 1, #keys, PIECE do act({ unpack(keys, at, math.min(at + PIECE - 1, #keys)) }) end
end
local function split(keys)
  local right, wrong = {}, {}
  for _, key in ipairs(keys) do
    local into = firsts[key] and not seen[key] and right or wrong
    into[#into + 1], seen[key] = key, true
  end
  return right, wrong
end
local turns, surplus = split(redis.call('LRANGE', RING, 0, -1))
if #surplus > 0 and report('wrong-count', '', RING) then
  redis.call('DEL', RING)
  inPieces(turns, function(keys) redis.call('RPUSH', RING, unpack(keys)) end)
end
local _, unheld = split(redis.call('ZRANGE', PARKED, 0, -1))
if #unheld > 0 and report('wrong-count', '', PARKED) then
  inPieces(unheld, function(keys) redis.call('ZREM', PARKED, unpack(keys)) end)
end
local lost = {}
for i = 1, #found, 2 do
  local key, first = found[i], found[i + 1]
  if not seen[key] then
    if key == '' then first = redis.call('LINDEX', PENDING, -1) or '' end
    if report('task-in-no-list', first, RING) then lost[#lost + 1] = key end
  end
end
inPieces(lost, function(keys) enterRing(keys) end)
return reply
`);

/** Checks the number of pending tasks with keys. O(keys of the queue), in one step. */
export const CHECK_COUNT = new Script(`${CHECK}
needFlow()
local count = 0
for _, key in ipairs(redis.call('HKEYS', FIRSTS)) do
  if key ~= '' then count = count + 1 + need('list', NEXT .. key) end
end
if tostring(count) ~= (redis.call('GET', WAITING) or '0') then
  if report('wrong-count', '', WAITING) then redis.call('SET', WAITING, count) end
end
return reply
`);

/**
 * Checks whether active tasks are leased, and adds a lease that has ended for those that are not, so that they are recovered: asynq's
 * recoverer reads only the leases, and never finds them. Checks, too, whether those with a key count as its runs.
 */
export const CHECK_LEASES = new Script(`${CHECK}
need('zset', LEASE)
needFlow()
return checkEach(function(id)
  local task = readTask(id, 'msg', 'state', 'x:key')
  local key = task[3] or ''
  if not task[1] or task[2] ~= 'active' then return end
  local isLost = not redis.call('ZSCORE', LEASE, id)
  if isLost and report('active-without-lease', id, ACTIVE) then redis.call('ZADD', LEASE, NOW, id) end
  local isUncounted = key ~= '' and readLimits().kc and not redis.call('ZSCORE', RUNS, prefixOf(key) .. id)
  if isUncounted and report('wrong-count', id, RUNS) then takePlace(id, key) end
end)
`);

/**
 * Checks whether tasks are in the list of their state, and adds those that are in none. A hash without a message is removed: it would
 * block its id for ever.
 */
export const CHECK_TASKS = new Script(`${CHECK}
local LISTS = { pending = PENDING, active = ACTIVE }
need('list', PENDING, ACTIVE)
need('zset', SCHEDULED, RETRY, ARCHIVED, COMPLETED, LEASE, SETS)
need('set', GROUPS)
needFlow()
local tasks = {}
for _, set in ipairs(redis.call('ZRANGE', SETS, 0, -1)) do need('zset', set) end
local function checkGroup(id, group)
  local key = GROUP .. group
  if redis.call('ZSCORE', key, id) then
    local isListed = redis.call('SISMEMBER', GROUPS, group) == 1
    if not isListed and report('group-not-listed', id, group) then redis.call('SADD', GROUPS, group) end
  elseif not isHeld(id) and report('task-in-no-list', id, '') then
    redis.call('ZADD', key, NOW, id)
    redis.call('SADD', GROUPS, group)
  end
end
local function check(id)
  local task = tasks[id]
  local is = task[2]
  local list, zset = LISTS[is], zsetOf(is, '')
  if not task[1] then
    local isGhostly = redis.call('EXISTS', TASK .. id) == 1
    if isGhostly and report('task-without-message', id, '') then redis.call('DEL', TASK .. id) end
  elseif is == 'aggregating' then
    checkGroup(id, task[3] or '')
  elseif list then
    local key = is == 'pending' and task[4] or ''
    if key ~= '' and isWaiting(id, key) then return end
    if isInList(list, id) or not report('task-in-no-list', id, '') then return end
    if key ~= '' then
      enter(id, key, false)
      return
    end
    redis.call('LPUSH', list, id)
    if is == 'active' then
      redis.call('ZADD', LEASE, 'NX', NOW, id)
      takePlace(id, task[4])
    end
  elseif not (zset and redis.call('ZSCORE', zset, id)) and report('task-in-no-list', id, '') then
    redis.call('ZADD', zset or ARCHIVED, NOW, id)
    if not zset then redis.call('HSET', TASK .. id, 'state', 'archived') end
  end
end
checkEach(function(id)
  tasks[id] = readTask(id, 'msg', 'state', 'group', 'x:key')
  if tasks[id][2] == 'aggregating' then need('zset', GROUP .. (tasks[id][3] or '')) end
end)
checkEach(check)
finishEntering()
return reply
`);

/** Checks whether registered groups have tasks, or scheduled tasks that will enter them, and removes the names of those that do not. */
export const CHECK_GROUPS = new Script(`${CHECK}
need('set', GROUPS)
local function isExpected(group)
  local ids = redis.pcall('SRANDMEMBER', LATER .. group, 1000)
  for _, id in ipairs(ids) do
    local task = readTask(id, 'msg', 'state', 'group')
    if task[2] == 'scheduled' and task[3] == group then return true end
  end
  return false
end
return checkEach(function(group)
  local isEmpty = redis.call('EXISTS', GROUP .. group) == 0
  if isEmpty and redis.call('SISMEMBER', GROUPS, group) == 1 and not isExpected(group) then
    if report('group-without-tasks', '', group) then
      redis.call('SREM', GROUPS, group)
      redis.call('DEL', LATER .. group)
    end
  end
end)
`);

/** Checks whether the tasks that hold locks exist and have not ended, and frees the other locks. */
export const CHECK_LOCKS = new Script(`${CHECK}
return checkEach(function(lock)
  local id = redis.pcall('GET', lock)
  if type(id) == 'string' then
    local is = readTask(id, 'state')[1]
    local isLeaked = not is or is == 'completed' or is == 'archived'
    if isLeaked and report('leaked-lock', id, lock) then redis.call('DEL', lock) end
  end
end)
`);

/**
 * Checks a queue from both sides: from lists to tasks, then from tasks to lists; then its locks. A defect is checked again by
 * the script that repairs it, in one atomic step, because another process may have been in the middle of a change.
 */
export async function repair(
  redis: RedisAccess,
  queue: string,
  { apply }: { readonly apply: boolean },
): Promise<Defect[]> {
  await requireQueue(redis, queue);
  return new Round(redis, queue, apply).run();
}

class Round {
  readonly #defects: Defect[] = [];
  readonly #redis: RedisAccess;
  readonly #queue: string;
  readonly #keys: QueueKeys;
  readonly #apply: boolean;
  /** Ids that were found in the right lists, where Redis would have to search for them. */
  readonly #listed = new Set<string>();

  constructor(redis: RedisAccess, queue: string, apply: boolean) {
    this.#redis = redis;
    this.#queue = queue;
    this.#keys = redis.keysOf(queue);
    this.#apply = apply;
  }

  async run(): Promise<Defect[]> {
    await this.#checkLists();
    await this.#checkTasks();
    await this.#check(CHECK_COUNT, []);
    for await (const locks of keysWithPrefix(this.#redis, this.#keys.lockPrefix))
      await this.#check(CHECK_LOCKS, locks);
    return this.#defects;
  }

  async #checkLists(): Promise<void> {
    for (const state of TASK_STATES)
      for await (const key of allKeysOfTasks(this.#redis, this.#queue, state))
        if (key !== this.#keys.waiting) await this.#checkKey(key, state);
    await this.#checkKey(this.#keys.lease, 'active');
    await this.#checkWaiting();
    const names = await this.#redis.send((client) => client.smembers(this.#keys.groups));
    for (let first = 0; first < names.length; first += MOST_CHANGED) {
      await this.#check(CHECK_GROUPS, names.slice(first, first + MOST_CHANGED));
    }
  }

  async #checkTasks(): Promise<void> {
    const { taskPrefix } = this.#keys;
    for await (const found of keysWithPrefix(this.#redis, taskPrefix)) {
      const ids = found.map((name) => name.slice(taskPrefix.length));
      const unlisted = ids.filter((id) => !this.#listed.has(id));
      await this.#check(CHECK_TASKS, unlisted);
      await this.#checkMessages(ids);
    }
  }

  async #checkKey(key: string, state: TaskState): Promise<void> {
    const { active } = this.#keys;
    for await (const ids of this.#idsIn(key)) {
      if (isList(this.#redis, this.#queue, key)) for (const id of ids) this.#listed.add(id);
      await this.#check(CHECK_PLACE, ids, key, state);
      if (key === active) await this.#check(CHECK_LEASES, ids);
    }
  }

  /** Checks the pending tasks with keys, and the turns of the keys. */
  async #checkWaiting(): Promise<void> {
    const { firsts, nextPrefix } = this.#keys;
    await this.#check(CHECK_TURNS, []);
    for await (const lists of keysWithPrefix(this.#redis, nextPrefix)) {
      const keys = lists.map((list) => list.slice(nextPrefix.length));
      await this.#check(CHECK_FIRSTS, keys);
    }
    for (let cursor = ''; cursor !== '0';) {
      const [next, found] = await this.#redis.send((client) =>
        client.hscan(firsts, cursor || '0', 'COUNT', MOST_CHANGED),
      );
      cursor = next;
      const tasks = new Map<string, string>();
      for (let at = 0; at < found.length; at += 2) tasks.set(found[at] ?? '', found[at + 1] ?? '');
      tasks.delete('');
      await this.#checkTasksOf(tasks);
    }
  }

  /** @param firsts - the first tasks of keys. */
  async #checkTasksOf(firsts: ReadonlyMap<string, string>): Promise<void> {
    const listOf = (key: string): string => this.#keys.nextPrefix + key;
    const sizes = await this.#redis.send((client) =>
      Promise.all(Array.from(firsts.keys(), (key) => client.llen(listOf(key)))),
    );
    const found: string[] = [];
    const check = async (): Promise<void> => {
      await this.#check(CHECK_WAITING, found.splice(0), '', 'pending');
    };
    for (const [at, [key, first]] of [...firsts].entries()) {
      found.push(key, first);
      this.#listed.add(first);
      if (sizes[at] === 0) continue;
      for await (const ids of this.#idsIn(listOf(key))) {
        for (const id of ids) {
          found.push(key, id);
          this.#listed.add(id);
        }
        if (found.length >= MOST_CHANGED) await check();
      }
    }
    await check();
  }

  async #check(script: Script, ids: readonly string[], key = '', state = ''): Promise<void> {
    const nowS = secondsDown(this.#redis.wallNowMs);
    const args = [this.#apply ? 1 : 0, key, state, nowS, ...ids];
    const reply = itemsOf(await this.#redis.runIn(this.#queue, script, args));
    for (const row of rowsOf(reply, 1, 3)) {
      const [kind = '', id = '', where = ''] = row.map(textOf);
      this.#defects.push({ kind: kind as DefectKind, queue: this.#queue, id, where });
      this.#listed.delete(id); // the list may be the wrong one
    }
    const rest = ids.slice(numberOf(reply[0]));
    if (rest.length > 0) await this.#check(script, rest, key, state);
  }

  async #checkMessages(ids: readonly string[]): Promise<void> {
    const messages = await this.#redis.send((client) =>
      Promise.all(ids.map((id) => client.hgetBuffer(this.#keys.task(id), 'msg').catch(nullIfWrongType))),
    );
    for (const [at, id] of ids.entries()) {
      const message = messages[at] ?? null;
      if (message !== null && messageIfOf(this.#queue, id, message) === undefined) {
        this.#defects.push({ kind: 'unreadable-message', queue: this.#queue, id, where: '' });
      }
    }
  }

  /** In pieces, from the end: an id that is removed from a piece, or added in front, does not move ids that are still to be read. */
  async *#idsIn(key: string): AsyncGenerator<string[]> {
    const size = await sizeOf(this.#redis, this.#queue, key);
    for (let end = size; end > 0; end -= MOST_CHANGED) {
      const range = [key, String(Math.max(end - MOST_CHANGED, 0)), String(end - 1)] as const;
      const ids = await this.#redis.send((client) =>
        isList(this.#redis, this.#queue, key) ? client.lrange(...range) : client.zrange(...range),
      );
      if (ids.length > 0) yield ids;
    }
  }
}

/** A key of another type is reported as a task without a message. */
function nullIfWrongType(error: unknown): null {
  if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return null;
  throw error;
}
