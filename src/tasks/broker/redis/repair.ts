import { TASK_STATES, type TaskState } from '../../task-state.ts';
import type { Defect, DefectKind } from '../broker.ts';
import { requireQueue } from './inspection.ts';
import type { QueueKeys } from './keys.ts';
import type { RedisAccess } from './redis-access.ts';
import { itemsOf, messageIfOf, numberOf, rowsOf, secondsDown, textOf } from './replies.ts';
import { MOST_CHANGED, Script, type ScriptArgument, type ScriptReply } from './script.ts';
import { allKeysOfTasks, isList, keysWithPrefix, sizeOf } from './task-keys.ts';

/**
 * For scripts that check. They begin with these arguments, and return a value of their own; then per defect its kind, the id or '', and
 * the list, lock or group, which may be ''.
 *
 * ARGV[1]  1 to repair
 * ARGV[2]  now
 *
 * `report(kind, id, where)`: adds a defect to the reply. Returns whether the caller must repair it.
 */
const CHECK = `
local NOW, reply = ARGV[2], { 0 }
local function report(kind, id, where)
  local at = #reply
  reply[at + 1], reply[at + 2], reply[at + 3] = kind, id, where
  return ARGV[1] == '1'
end
`;

/**
 * For those that return ids that are where they belong. `mustLeave(id, state, key, where)`: checks whether an id that was found belongs
 * to the tasks of a state, and of a key if it is not ''. Returns whether the caller must remove it.
 */
const CHECK_IDS = `${CHECK}
local right = {}
reply[1] = right
local function mustLeave(id, state, key, where)
  local task = readTask(id, 'msg', 'state', 'x:key')
  if task[1] and task[2] == state and (key == '' or task[3] == key) then
    right[#right + 1] = id
    return false
  end
  return report(task[1] and 'id-in-wrong-list' or 'id-without-task', id, where)
end
`;

/**
 * Checks whether the ids in a range of a list or zset belong there, and removes those that do not. In a list they are marked by their
 * index, and then removed by one LREM, instead of one that searches for each; it begins at the end, where a repair does.
 *
 * ARGV[3]  key of the LIST or ZSET
 * ARGV[4]  state of its tasks
 * ARGV[5]  key of its pending tasks, if the list is that of a key, or ''
 * ARGV[6]  index of the first id
 * ARGV[7]  index of the last id
 */
export const CHECK_PLACE = new Script(`${CHECK_IDS}
local LIST, state, key, first, last = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local isList, MARK, marked = LIST == PENDING or LIST == ACTIVE or key ~= '', '', 0
need('string', WAITING)
need('zset', LEASE)
need(isList and 'list' or 'zset', LIST)
for i, id in ipairs(redis.call(isList and 'LRANGE' or 'ZRANGE', LIST, first, last)) do
  if mustLeave(id, state, key, LIST) then
    if not isList then redis.call('ZREM', LIST, id)
    else
      if marked == 0 then writeAnyway(LEASE) end
      redis.call('LSET', LIST, first + i - 1, MARK)
      marked = marked + 1
    end
  end
end
if marked > 0 then redis.call('LREM', LIST, -marked, MARK) end
if key ~= '' and marked > 0 then addWaiting(-marked) end
return reply
`);

/**
 * Checks whether the first tasks of keys belong to them, and whether keys with a list of pending tasks have a first one: else no server
 * would find the others. ARGV[3…] are the keys.
 */
export const CHECK_FIRSTS = new Script(`${CHECK_IDS}
needFlow()
need('list', ACTIVE)
for i = 3, #ARGV do need('list', NEXT .. ARGV[i]) end
for i = 3, #ARGV do
  local key = ARGV[i]
  local list = NEXT .. key
  local first = redis.call('HGET', FIRSTS, key)
  local second = not first and redis.call('LINDEX', list, 0)
  if first and mustLeave(first, 'pending', key, list) then leaveKey(first, key) end
  if second and report('task-in-no-list', second, list) then
    redis.call('HSET', FIRSTS, key, popNext(key))
    enterRing({ key })
  end
end
return reply
`);

/**
 * Checks whether each key with pending tasks has one turn, or is held back, and no other key does: else no server would find the tasks, or
 * not in their order. Checks, too, the number of these tasks. O(keys of the queue), in one step.
 */
export const CHECK_TURNS = new Script(`${CHECK}
needFlow()
need('list', ACTIVE)
local keys, lacks, turns, wrong, count = redis.call('HKEYS', FIRSTS), {}, {}, nil, 0
for _, key in ipairs(keys) do
  lacks[key] = true
  if key ~= '' then count = count + 1 + need('list', NEXT .. key) end
end
local function takeTurns(list, found)
  for _, key in ipairs(found) do
    if lacks[key] then turns[#turns + 1] = key else wrong = wrong or list end
    lacks[key] = nil
  end
end
takeTurns(RING, redis.call('LRANGE', RING, 0, -1))
takeTurns(PARKED, redis.call('ZRANGE', PARKED, 0, -1))
for _, key in ipairs(keys) do
  if lacks[key] then turns[#turns + 1], wrong = key, wrong or RING end
end
if wrong and report('wrong-count', '', wrong) then
  redis.call('DEL', RING, PARKED)
  for first = 1, #turns, 1000 do enterRing({ unpack(turns, first, math.min(first + 999, #turns)) }) end
end
if tostring(count) ~= (redis.call('GET', WAITING) or '0') and report('wrong-count', '', WAITING) then
  redis.call('SET', WAITING, count)
end
return reply
`);

/**
 * Checks whether active tasks are leased, and adds a lease that has ended for those that are not, so that they are recovered: asynq's
 * recoverer reads only the leases, and never finds them. Checks, too, whether those with a key count as its runs. ARGV[3…] are
 * the ids.
 */
export const CHECK_LEASES = new Script(`${CHECK}
need('zset', LEASE)
needFlow()
for i = 3, #ARGV do
  local id = ARGV[i]
  local task = readTask(id, 'msg', 'state', 'x:key')
  local key, isActive = task[3] or '', task[1] and task[2] == 'active'
  local isLost = isActive and not redis.call('ZSCORE', LEASE, id)
  if isLost and report('active-without-lease', id, ACTIVE) then redis.call('ZADD', LEASE, NOW, id) end
  local isCounted = isActive and key ~= '' and readLimits().kc
  local isMissing = isCounted and not redis.call('ZSCORE', RUNS, prefixOf(key) .. id)
  if isMissing and report('wrong-count', id, RUNS) then takePlace(id, key) end
end
return reply
`);

/**
 * Checks whether tasks are in the list of their state, and adds those that are in none. A hash without a message is removed: it would
 * block its id for ever. ARGV[3…] are ids. Returns the number of those that it has checked before it had searched for long enough: a
 * search takes O(ids of the list).
 */
export const CHECK_TASKS = new Script(`${CHECK}
local LISTS = { pending = PENDING, active = ACTIVE }
local searched, MOST_SEARCHED = 0, 1000000
need('list', PENDING, ACTIVE)
need('zset', SCHEDULED, RETRY, ARCHIVED, COMPLETED, LEASE, SETS)
need('set', GROUPS)
needFlow()
local tasks = {}
for _, set in ipairs(redis.call('ZRANGE', SETS, 0, -1)) do need('zset', set) end
local function isInList(list, id)
  searched = searched + (tonumber(redis.pcall('LLEN', list)) or 0)
  return type(redis.pcall('LPOS', list, id)) == 'number'
end
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
    if key ~= '' and (redis.call('HGET', FIRSTS, key) == id or isInList(NEXT .. key, id)) then return end
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
for i = 3, #ARGV do
  local task = readTask(ARGV[i], 'msg', 'state', 'group', 'x:key')
  tasks[ARGV[i]] = task
  if task[2] == 'aggregating' then need('zset', GROUP .. (task[3] or '')) end
end
while reply[1] < #ARGV - 2 and searched < MOST_SEARCHED do
  check(ARGV[reply[1] + 3])
  reply[1] = reply[1] + 1
end
finishEntering()
return reply
`);

/**
 * Checks whether registered groups have tasks, or scheduled tasks that will enter them, and removes the names of those that do not.
 * ARGV[3…] are their names.
 */
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
for i = 3, #ARGV do
  local group = ARGV[i]
  local isEmpty = redis.call('EXISTS', GROUP .. group) == 0
  if isEmpty and redis.call('SISMEMBER', GROUPS, group) == 1 and not isExpected(group) then
    if report('group-without-tasks', '', group) then
      redis.call('SREM', GROUPS, group)
      redis.call('DEL', LATER .. group)
    end
  end
end
return reply
`);

/** Checks whether the tasks that hold locks exist and have not ended, and frees the other locks. ARGV[3…] are their keys. */
export const CHECK_LOCKS = new Script(`${CHECK}
for i = 3, #ARGV do
  local lock = ARGV[i]
  local id = redis.pcall('GET', lock)
  if type(id) == 'string' then
    local is = readTask(id, 'state')[1]
    local isLeaked = not is or is == 'completed' or is == 'archived'
    if isLeaked and report('leaked-lock', id, lock) then redis.call('DEL', lock) end
  end
end
return reply
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
    await this.#check(CHECK_TURNS, []);
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
    const groups = await this.#redis.send((client) => client.smembers(this.#keys.groups));
    for (const some of inPieces(groups)) await this.#check(CHECK_GROUPS, some);
  }

  async #checkTasks(): Promise<void> {
    const { taskPrefix } = this.#keys;
    for await (const found of keysWithPrefix(this.#redis, taskPrefix)) {
      const ids = found.map((name) => name.slice(taskPrefix.length));
      let unlisted = ids.filter((id) => !this.#listed.has(id));
      while (unlisted.length > 0)
        unlisted = unlisted.slice(numberOf(await this.#check(CHECK_TASKS, unlisted)));
      await this.#checkMessages(ids);
    }
  }

  /**
   * In pieces, from the end: an id that is removed from a piece, or added behind it, does not move ids that are still to be read.
   *
   * @param owner - key of the pending tasks in that list.
   */
  async #checkKey(key: string, state: TaskState, owner = ''): Promise<void> {
    const size = await sizeOf(this.#redis, this.#queue, key);
    for (let end = size; end > 0; end -= MOST_CHANGED) {
      const args = [key, state, owner, Math.max(end - MOST_CHANGED, 0), end - 1];
      const ids = itemsOf(await this.#check(CHECK_PLACE, args)).map(textOf);
      if (isList(this.#redis, this.#queue, key)) for (const id of ids) this.#listed.add(id);
      if (key === this.#keys.active) await this.#check(CHECK_LEASES, ids);
    }
  }

  /** Checks the pending tasks with keys. */
  async #checkWaiting(): Promise<void> {
    const { firsts, nextPrefix, ring } = this.#keys;
    const behind = new Set<string>();
    for await (const lists of keysWithPrefix(this.#redis, nextPrefix))
      for (const list of lists) behind.add(list.slice(nextPrefix.length));
    behind.delete('');
    for (const key of behind) await this.#checkKey(nextPrefix + key, 'pending', key);
    const [turns, others] = await this.#redis.send((client) =>
      Promise.all([client.lrange(ring, '0', '-1'), client.hkeys(firsts)]),
    );
    // In the order of the ring, which Redis searches from its beginning for a key that leaves it.
    const keys = new Set([...turns, ...others, ...behind]);
    keys.delete('');
    for (const some of inPieces([...keys]))
      for (const id of itemsOf(await this.#check(CHECK_FIRSTS, some))) this.#listed.add(textOf(id));
  }

  /** Returns the value of the script's own. */
  async #check(script: Script, args: readonly ScriptArgument[]): Promise<ScriptReply | undefined> {
    const nowS = secondsDown(this.#redis.wallNowMs);
    const all = [this.#apply ? 1 : 0, nowS, ...args];
    const reply = itemsOf(await this.#redis.runIn(this.#queue, script, all));
    for (const row of rowsOf(reply, 1, 3)) {
      const [kind = '', id = '', where = ''] = row.map(textOf);
      this.#defects.push({ kind: kind as DefectKind, queue: this.#queue, id, where });
    }
    return reply[0];
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
}

function* inPieces(names: readonly string[]): Generator<readonly string[]> {
  for (let at = 0; at < names.length; at += MOST_CHANGED) yield names.slice(at, at + MOST_CHANGED);
}

/** A key of another type is reported as a task without a message. */
function nullIfWrongType(error: unknown): null {
  if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return null;
  throw error;
}
