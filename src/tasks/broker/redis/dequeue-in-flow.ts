import { callEach } from '../../../core/report-uncaught.ts';
import type { RedisAccess } from './redis-access.ts';
import { itemsOf, numberOf } from './replies.ts';
import { NEXT_EPOCH, Script, type ScriptReply } from './script.ts';

/**
 * Leases tasks of a flow controlled queue, unless it is paused: one task of each key in its turn, then the next one of each, as far as
 * the limits allow. What is in no order is dropped, as DEQUEUE does. A task with a key that a Go program has put into the list of those
 * without key goes to those with its key.
 *
 * ARGV[1]  number of tasks, at most 1000; 0 to find out whether there are some
 * ARGV[2]  when the leases end
 * ARGV[3]  bytes after which no more tasks are taken
 *
 * Returns milliseconds after which a token comes, -1 for never, or -2 if the queue is not flow controlled; 1 if tasks may run now; and
 * what DEQUEUE returns.
 */
export const DEQUEUE_IN_FLOW = new Script(`${NEXT_EPOCH}
local limit, score, bytes = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
if redis.call('EXISTS', PAUSED) == 1 then return { -1, 0, {} } end
needFlow()
need('list', ACTIVE)
need('zset', LEASE)
local listed = need('list', PENDING)
if not isFlow() then return { -2, 0, {} } end
local reply, l = { nextEpoch(), 1 }, readLimits()
local LATER_MS = 250

-- Until when the next token comes. For keys without pending tasks that is checked less often.
local function againInMs()
  local heldUntilMs = queueHeldUntil()
  if heldUntilMs == math.huge then return -1 end
  local at = heldUntilMs or tonumber(redis.call('ZRANGEBYSCORE', PARKED, '-inf', '(+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
  if l.kt and not heldUntilMs then
    local empty = string.format('(%.17g', nowMs() + (l.kb - 1) * l.kt)
    local full = redis.call('ZRANGEBYSCORE', RATES, empty, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
    if full then at = math.min(at or math.huge, math.max(full - (l.kb - 1) * l.kt, nowMs() + LATER_MS)) end
  end
  return at and math.max(math.ceil(at - nowMs()), 1) or -1
end

writeAnyway(LEASE)
unparkDue()
if listed > 0 then
  -- A Go server may have added a task without key, or ended one and so freed its place.
  local isNew = redis.call('HSETNX', FIRSTS, '', '') == 1
  local isFree = not isNew and redis.call('ZSCORE', PARKED, '') == 'inf' and not heldUntil('')
  if isFree then redis.call('ZREM', PARKED, '') end
  if isNew or isFree then enterRing({ '' }) end
end
local size, most = redis.call('LLEN', RING), limit
if l.c then most = math.min(most, l.c - redis.call('LLEN', ACTIVE)) end
local queueFull, tokens
if l.t then
  queueFull, tokens = bucket(l.full, l.t, l.b)
  if l.full and l.full > queueFull then redis.call('HSET', LIMITS, 'full', queueFull) end -- the clock was set back
  most = math.min(most, tokens)
end
if most <= 0 or size == 0 then
  return { againInMs(), size > 0 and not queueHeldUntil() and 1 or 0, {} }
end

-- Keys in their turns: those of the ring, then those of them that have given a task and have more. What is known of the n-th key: its name,
-- its next task or false, tasks behind it that were read ahead, and the index of the first of them. If keys have limits, also
-- the score of its bucket, how many more tasks it may give, how many it has given, when its bucket was full, and whether that was too late.
local keys, heads, ahead, nextAhead = {}, {}, {}, {}
local scores, left, given, fullAt, isLate = {}, {}, {}, {}, {}
local known, visited, again, nextAgain, lastAgain = 0, 0, {}, 1, 0
local perKey, read, mostRead = math.ceil(most / size), 0, 2 * most + 1000 -- tasks, and keys of the ring
local perKeyDigits = tostring(perKey) -- Redis takes long to write a number that is an argument
local lackPlaces, hasBuckets = mayBeFull(most), l.kt and redis.call('ZCARD', RATES) > 0
local function readRing()
  local found = redis.call('LRANGE', RING, known, known + most - 1)
  local firsts = redis.call('HMGET', FIRSTS, unpack(found))
  local fulls = hasBuckets and redis.call('ZMSCORE', RATES, unpack(found))
  for i, key in ipairs(found) do
    keys[known + i], heads[known + i] = key, firsts[i]
    scores[known + i] = fulls and fulls[i]
  end
  known = known + #found
end

local listRead, listUsed = 0, 0
local function readAhead(key)
  if key ~= '' then
    local found = redis.pcall('LPOP', NEXT .. key, perKeyDigits)
    return found and not found.err and found or {}
  end
  local found = idsFrom(PENDING, listRead, perKey)
  listRead = listRead + #found
  return found
end
local function taskBehind(n)
  local key, some = keys[n], ahead[n]
  if perKey == 1 and key ~= '' then return popNext(key) end
  local at = some and nextAhead[n]
  if not some or not some[at] and #some == perKey then
    some, at = readAhead(key), 1
    ahead[n] = some
  end
  nextAhead[n] = at + 1
  return some[at] or false
end

local function visit(n)
  local key = keys[n]
  if key == '' then heads[n] = taskBehind(n) end
  if lackPlaces then left[n] = l.kc - activeOf(key) end
  if not l.kt then return end
  given[n], fullAt[n], tokens = 0, nowMs(), l.kb
  local full = tonumber(scores[n] or nil)
  if full then
    fullAt[n], tokens = bucket(full, l.kt, l.kb)
    isLate[n] = full > fullAt[n] -- the clock was set back
  end
  left[n] = math.min(left[n] or math.huge, tokens)
end
-- A key has one turn, unless another program has added one: its tasks would be in another order, or lost.
local isMet = {}
local function nextKey()
  while visited < size do
    if visited == known then readRing() end
    visited, read = visited + 1, read + 1
    local key = keys[visited]
    if not isMet[key] then
      isMet[key] = true
      visit(visited)
      return visited
    end
  end
  nextAgain = nextAgain + 1
  return again[nextAgain - 1]
end

local ids, names, leases, runs, keyless, ghosts, strays, seen = {}, {}, {}, {}, {}, {}, {}, {}
local taken, replied, gone = 0, 2, 0
-- Whether a task of the list of those without key is as it must be. One with a key is not.
local function isSoundKeyless(id, task)
  listUsed = listUsed + 1
  local isFree = task[3] == 'pending' or (task[3] == 'active' and not redis.call('ZSCORE', LEASE, id))
  if not task[1] or not isFree or seen[id] then return false end
  if not task[4] or task[4] == '' then return true end
  seen[id] = true
  append(strays, id, task[4])
  return false
end
-- The first task of a key that is as it must be, with its name and fields.
local function firstOf(n)
  local isKeyless = keys[n] == ''
  while heads[n] and read < mostRead do
    local id, task, isSound = heads[n], nil, nil
    local name = TASK .. id
    heads[n], read = taskBehind(n), read + 1
    if isKeyless then
      task = redis.pcall('HMGET', name, 'msg', 'x:recoveries', 'state', 'x:key')
      isSound = isSoundKeyless(id, task)
    else
      task = redis.pcall('HMGET', name, 'msg', 'x:recoveries', 'state')
      isSound = task[1] and task[3] == 'pending' and not seen[id]
      gone = gone + 1
    end
    if isSound then return id, name, task end
    if isGhost(task) then ghosts[#ghosts + 1] = name end
  end
end
local function take(n, id, name, task)
  local msg = task[1]
  seen[id] = true
  bytes = bytes - #msg
  taken = taken + 1
  ids[taken], names[taken] = id, name
  leases[2 * taken - 1], leases[2 * taken] = score, id
  reply[replied + 1], reply[replied + 2], reply[replied + 3] = id, msg, task[2] or 0
  replied = replied + 3
  if keys[n] == '' then keyless[#keyless + 1] = name
  elseif l.kc then append(runs, '0', prefixOf(keys[n]) .. id) end
  if left[n] then left[n] = left[n] - 1 end
  if l.kt then given[n] = given[n] + 1 end
end

local leaving, parking, staying, firsts, rates = {}, {}, {}, {}, {}
-- Adds a key that has more tasks to a list, and returns those that were read ahead.
local function keep(n, list)
  local key, some = keys[n], ahead[n]
  list[#list + 1] = key
  if key == '' then return end
  append(firsts, key, heads[n])
  if not some then return end
  local unused = {}
  for i = #some, nextAhead[n], -1 do unused[#unused + 1] = some[i] end
  push('LPUSH', NEXT .. key, unused)
end
local function noteRate(n)
  if not l.kt then return end
  local full = fullAt[n] + given[n] * l.kt
  if isLate[n] or given[n] > 0 and full > nowMs() then append(rates, full, keys[n]) end
end
while taken < most and bytes > 0 and read < mostRead do
  local n = nextKey()
  if not n then break end
  if not left[n] or left[n] >= 1 then
    local id, name, task = firstOf(n)
    if id then take(n, id, name, task) end
  end
  if heads[n] and (not left[n] or left[n] >= 1) then
    lastAgain = lastAgain + 1
    again[lastAgain] = n
  else
    noteRate(n)
    if heads[n] then keep(n, parking) else leaving[#leaving + 1] = keys[n] end
  end
end
for i = nextAgain, lastAgain do
  keep(again[i], staying)
  noteRate(again[i])
end
if most < limit and taken == most or taken < most and read < mostRead and bytes > 0 then reply[2] = 0 end
if #strays > 0 then reply[2] = 1 end

if listUsed > 0 then redis.call('LTRIM', PENDING, 0, -listUsed - 1) end
if gone > 0 then addWaiting(-gone) end
if #ghosts > 0 then redis.call('DEL', unpack(ghosts)) end
if taken > 0 then
  redis.call('LPUSH', ACTIVE, unpack(ids))
  redis.call('ZADD', LEASE, unpack(leases))
  if #runs > 0 then redis.call('ZADD', RUNS, unpack(runs)) end
  local epoch = reply[1]
  redis.call('SET', EPOCH, whole(epoch + taken - 1))
  for i, name in ipairs(names) do
    redis.call('HSET', name, 'state', 'active', 'x:lease', string.format('%d:%s', epoch + i - 1, score))
  end
  for _, name in ipairs(keyless) do redis.call('HDEL', name, 'pending_since') end
  if l.t then
    l.full = queueFull + taken * l.t
    redis.call('HSET', LIMITS, 'full', l.full)
  end
end

if #leaving > 0 then redis.call('HDEL', FIRSTS, unpack(leaving)) end
if #firsts > 0 then redis.call('HSET', FIRSTS, unpack(firsts)) end
redis.call('LTRIM', RING, visited, -1)
if #rates > 0 then
  local count = redis.call('ZCOUNT', RATES, '-inf', nowMs())
  if count > 0 then redis.call('ZREMRANGEBYRANK', RATES, 0, math.min(count, 1000) - 1) end
  redis.call('ZADD', RATES, unpack(rates))
end
if #staying > 0 then redis.call('RPUSH', RING, unpack(staying)) end
local parked = {}
for _, key in ipairs(parking) do append(parked, heldUntil(key) or nowMs(), key) end
if #parked > 0 then redis.call('ZADD', PARKED, unpack(parked)) end

for i = 1, #strays, 2 do
  redis.call('HSET', TASK .. strays[i], 'state', 'pending')
  enter(strays[i], strays[i + 1], false)
end
finishEntering()
return { againInMs(), 0, taken == 0 and reply[2] == 0 and {} or reply }
`);

/** What DEQUEUE_IN_FLOW returns if the queue has lost its limits, and has had no keys. */
const NO_FLOW = -2;

/** Leases tasks of a flow controlled queue. @returns the reply of DEQUEUE; undefined if the queue is not flow controlled any more. */
export async function dequeueInFlow(
  redis: RedisAccess,
  queue: string,
  args: readonly number[],
): Promise<ScriptReply | undefined> {
  const [againInMs, , reply = []] = itemsOf(await redis.runIn(queue, DEQUEUE_IN_FLOW, args));
  if (againInMs === NO_FLOW) {
    redis.setFlow(queue, false);
    return undefined;
  }
  awaitToken(redis, queue, numberOf(againInMs));
  return reply;
}

/** Notifies the listeners after a time if tasks may run then. @param inMs - -1 for never. */
function awaitToken(redis: RedisAccess, queue: string, inMs: number): void {
  const isHeard = [...redis.listeners].some((listener) => listener.work !== undefined);
  redis.awaitToken(queue, isHeard ? inMs : -1, () => {
    notifyOfTokens(redis, queue).catch(() => undefined); // servers poll as well
  });
}

/** Notifies the listeners if tasks may run now; else when the next token comes. */
export async function notifyOfTokens(redis: RedisAccess, queue: string): Promise<void> {
  const [againInMs = NO_FLOW, mayRun] = itemsOf(await redis.runIn(queue, DEQUEUE_IN_FLOW, [0, 0, 0]));
  if (mayRun === 1) callEach([...redis.listeners], (listener) => listener.work?.(queue));
  else if (againInMs !== NO_FLOW) awaitToken(redis, queue, numberOf(againInMs));
}
