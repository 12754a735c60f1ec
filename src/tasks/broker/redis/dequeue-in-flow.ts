import { NEXT_EPOCH, Script } from './script.ts';

/**
 * Leases tasks of a flow controlled queue, unless it is paused: one task of each key in its turn, then the next one of each, as far as
 * the limits allow. What is in no order is dropped, as DEQUEUE does. A task with a key that a Go program has put into the list of those
 * without key goes to those with its key.
 *
 * ARGV[1]  number of tasks, at most 1000; 0 to find out whether there are some
 * ARGV[2]  when the leases end
 * ARGV[3]  bytes after which no more tasks are taken
 * ARGV[4]  now, in milliseconds, or '' for the clock of Redis
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
if listed > 0 and not redis.call('ZSCORE', RING, '') then
  -- A Go server may have added a task without key, or ended one and so freed its place.
  if redis.call('ZSCORE', PARKED, '') == 'inf' and not heldUntil('') then redis.call('ZREM', PARKED, '') end
  enterKeys({ '' })
else unparkDue() end
local size, most = redis.call('ZCARD', RING), limit
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
-- the score of its bucket, the beginning of its members or false, those that were read, the next one of them, whether they are all,
-- how many more tasks it may give, how many it has given, when its bucket was full, and whether that was too late.
local keys, scores, prefixes, members, nextMember, isWhole = {}, {}, {}, {}, {}, {}
local left, given, fullAt, isLate = {}, {}, {}, {}
local known, visited, again, nextAgain, lastAgain = 0, 0, {}, 1, 0
local perKey, read, mostRead = math.ceil(most / size) + 1, 0, 2 * most + 1000 -- members, and keys of the ring
local perKeyDigits = tostring(perKey) -- Redis takes long to write a number that is an argument
local lackPlaces, hasBuckets = mayBeFull(most), l.kt and redis.call('ZCARD', RATES) > 0
local function readRing()
  local found = redis.call('ZRANGE', RING, known, known + most - 1)
  local fulls = hasBuckets and redis.call('ZMSCORE', RATES, unpack(found))
  for i, key in ipairs(found) do
    keys[known + i] = key
    scores[known + i] = fulls and fulls[i]
  end
  known = known + #found
end
local function visit(n)
  local key = keys[n]
  prefixes[n] = key ~= '' and prefixOf(key)
  nextMember[n], given[n], left[n] = 1, 0, math.huge
  if lackPlaces then left[n] = l.kc - activeOf(key) end
  if l.kt then
    fullAt[n], tokens = nowMs(), l.kb
    local full = tonumber(scores[n] or nil)
    if full then
      fullAt[n], tokens = bucket(full, l.kt, l.kb)
      isLate[n] = full > fullAt[n] -- the clock was set back
    end
    left[n] = math.min(left[n], tokens)
  end
end
local function nextKey()
  if visited == known and known < size then readRing() end
  if visited < known then
    visited, read = visited + 1, read + 1
    visit(visited)
    return visited
  end
  nextAgain = nextAgain + 1
  return again[nextAgain - 1]
end

local listRead, listUsed = 0, 0
local function readMembers(n)
  local prefix, before, found = prefixes[n], members[n], {}
  if prefix then
    local key = keys[n]
    local from = before and '(' .. before[#before] or '[' .. prefix
    found = redis.call('ZRANGEBYLEX', WAITING, from, '(' .. sizeIn(key) .. key .. ';', 'LIMIT', '0', perKeyDigits)
  else
    local listed = redis.call('LRANGE', PENDING, -listRead - perKey, -listRead - 1)
    for i = #listed, 1, -1 do found[#found + 1] = listed[i] end
    listRead = listRead + #found
  end
  members[n], nextMember[n], isWhole[n] = found, 1, #found < perKey
end
local function hasMore(n)
  local found = members[n]
  if found and found[nextMember[n]] then return true end
  if isWhole[n] then return false end
  readMembers(n)
  return members[n][1] ~= nil
end

local ids, names, leases, runs, keyless, gone, ghosts, strays, seen = {}, {}, {}, {}, {}, {}, {}, {}, {}
local taken, runsTaken, replied = 0, 0, 2
-- The first task of a key that is as it must be, with its name and fields, and its key in the list of those without key.
local function firstOf(n)
  local prefix = prefixes[n]
  while read < mostRead and hasMore(n) do
    local member = members[n][nextMember[n]]
    nextMember[n], read = nextMember[n] + 1, read + 1
    local id, name, task, isSound
    if prefix then
      id = string.sub(member, #prefix + 18)
      name = TASK .. id
      task = redis.pcall('HMGET', name, 'msg', 'x:recoveries', 'state')
      isSound = task[1] and task[3] == 'pending' and not seen[id]
      gone[#gone + 1] = member
    else
      id, listUsed = member, listUsed + 1
      name = TASK .. id
      task = redis.pcall('HMGET', name, 'msg', 'x:recoveries', 'state', 'x:key')
      local isFree = task[3] == 'pending' or (task[3] == 'active' and not redis.call('ZSCORE', LEASE, id))
      isSound = task[1] and isFree and not seen[id]
      if isSound and keyIn(task[4]) ~= '' then
        seen[id], isSound = true, false
        append(strays, id, keyIn(task[4]))
      end
    end
    if isSound then return id, name, task end
    if isGhost(task) then ghosts[#ghosts + 1] = name end
  end
end
local function take(n, id, name, task)
  local msg, prefix = task[1], prefixes[n]
  seen[id] = true
  bytes = bytes - #msg
  taken = taken + 1
  ids[taken], names[taken] = id, name
  leases[2 * taken - 1], leases[2 * taken] = score, id
  if prefix then
    runs[runsTaken + 1], runs[runsTaken + 2] = '0', prefix .. id
    runsTaken = runsTaken + 2
  else keyless[#keyless + 1] = name end
  reply[replied + 1], reply[replied + 2], reply[replied + 3] = id, msg, task[2] or 0
  replied = replied + 3
  left[n], given[n] = left[n] - 1, given[n] + 1
end

local leaving, parking, rates = {}, {}, {}
local function noteRate(n)
  if not l.kt then return end
  local full = fullAt[n] + given[n] * l.kt
  if isLate[n] or given[n] > 0 and full > nowMs() then append(rates, full, keys[n]) end
end
while taken < most and bytes > 0 and read < mostRead do
  local n = nextKey()
  if not n then break end
  if left[n] >= 1 then
    local id, name, task = firstOf(n)
    if id then take(n, id, name, task) end
  end
  local isOver = not hasMore(n)
  if isOver or left[n] < 1 then
    noteRate(n)
    local list = isOver and leaving or parking
    list[#list + 1] = keys[n]
  else
    lastAgain = lastAgain + 1
    again[lastAgain] = n
  end
end
if most < limit and taken == most or taken < most and read < mostRead and bytes > 0 then reply[2] = 0 end
if #strays > 0 then reply[2] = 1 end

if listUsed > 0 then redis.call('LTRIM', PENDING, 0, -listUsed - 1) end
for first = 1, #gone, 4000 do redis.call('ZREM', WAITING, unpack(gone, first, math.min(first + 3999, #gone))) end
if #ghosts > 0 then redis.call('DEL', unpack(ghosts)) end
if taken > 0 then
  redis.call('LPUSH', ACTIVE, unpack(ids))
  redis.call('ZADD', LEASE, unpack(leases))
  if runsTaken > 0 then redis.call('ZADD', RUNS, unpack(runs)) end
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

local turn, staying = lastTurn(), {}
for i = nextAgain, lastAgain do
  append(staying, digitsOf(turn + i), keys[again[i]])
  noteRate(again[i])
end
if #rates > 0 then
  local count = redis.call('ZCOUNT', RATES, '-inf', nowMs())
  if count > 0 then redis.call('ZREMRANGEBYRANK', RATES, 0, math.min(count, 1000) - 1) end
  redis.call('ZADD', RATES, unpack(rates))
end
if #staying > 0 then redis.call('ZADD', RING, unpack(staying)) end
local parked = {}
for _, key in ipairs(parking) do
  leaving[#leaving + 1] = key
  append(parked, heldUntil(key) or nowMs(), key)
end
if #leaving > 0 then redis.call('ZREM', RING, unpack(leaving)) end
if #parked > 0 then redis.call('ZADD', PARKED, unpack(parked)) end

for i = 1, #strays, 2 do
  redis.call('HSET', TASK .. strays[i], 'x:key', enter(strays[i], strays[i + 1], false), 'state', 'pending')
end
finishEntering()
return { againInMs(), 0, taken == 0 and reply[2] == 0 and {} or reply }
`);
