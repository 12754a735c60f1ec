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
export const DEQUEUE_BY_TURNS = `
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
  most = math.min(most, tokens)
end
if most <= 0 or size == 0 then
  return { againInMs(), size > 0 and not queueHeldUntil() and 1 or 0, {} }
end

-- Keys in their turns: those of the ring, then those of them that have given a task and have more.
local perKey, read, mostRead = math.ceil(most / size) + 1, 0, most + 1000
local perKeyDigits = tostring(perKey) -- Redis takes long to write a number that is an argument
local inRing, nextInRing, again, nextAgain = {}, 1, {}, 1
local function visit(key)
  local one = { key = key, prefix = false, members = false, at = 1, isWhole = false, left = math.huge, given = 0, full = false }
  if key ~= '' then one.prefix = prefixOf(key) end
  if l.kc then one.left = l.kc - activeOf(key) end
  if l.kt then
    one.full, tokens = bucket(redis.call('ZSCORE', RATES, key), l.kt, l.kb)
    one.left = math.min(one.left, tokens)
  end
  return one
end
local function nextKey()
  if nextInRing > #inRing and #inRing < size then
    for _, key in ipairs(redis.call('ZRANGE', RING, #inRing, #inRing + most - 1)) do inRing[#inRing + 1] = key end
  end
  if nextInRing <= #inRing then
    nextInRing = nextInRing + 1
    return visit(inRing[nextInRing - 1])
  end
  nextAgain = nextAgain + 1
  return again[nextAgain - 1]
end

local listRead, listUsed = 0, 0
local function readMembers(one)
  local members, prefix = {}, one.prefix
  if prefix then
    local min = one.members and '(' .. one.members[#one.members] or '[' .. prefix
    members = redis.call('ZRANGEBYLEX', WAITING, min, '(' .. string.sub(prefix, 1, -2) .. ';', 'LIMIT', '0', perKeyDigits)
  else
    local found = redis.call('LRANGE', PENDING, -listRead - perKey, -listRead - 1)
    for i = #found, 1, -1 do members[#members + 1] = found[i] end
    listRead = listRead + #found
  end
  one.members, one.at, one.isWhole = members, 1, #members < perKey
end
local function hasMore(one)
  if one.members and one.at <= #one.members then return true end
  if one.isWhole then return false end
  readMembers(one)
  return #one.members > 0
end

local ids, leases, runs, keyless, gone, ghosts, strays, seen = {}, {}, {}, {}, {}, {}, {}, {}
-- The first task of a key that is as it must be, and its key in the list of those without key.
local function firstOf(one)
  while read < mostRead and hasMore(one) do
    local member = one.members[one.at]
    one.at, read = one.at + 1, read + 1
    local id, task, isSound
    if one.prefix then
      id = string.sub(member, #one.prefix + 18)
      task = readTask(id, 'msg', 'x:recoveries', 'state')
      isSound = task[1] and task[3] == 'pending' and not seen[id]
      gone[#gone + 1] = member
    else
      id, listUsed = member, listUsed + 1
      task = readTask(id, 'msg', 'x:recoveries', 'state', 'x:key')
      local isFree = task[3] == 'pending' or (task[3] == 'active' and not redis.call('ZSCORE', LEASE, id))
      isSound = task[1] and isFree and not seen[id]
      if isSound and keyIn(task[4]) ~= '' then
        seen[id], isSound = true, false
        append(strays, id, keyIn(task[4]))
      end
    end
    if isSound then return id, task end
    if isGhost(task) then ghosts[#ghosts + 1] = TASK .. id end
  end
end

local leaving, parking, rates = {}, {}, {}
local function noteRate(one)
  if one.given > 0 and one.full then append(rates, one.full + one.given * l.kt, one.key) end
end
while #ids < most and bytes > 0 and read < mostRead do
  local one = nextKey()
  if not one then break end
  local id, task
  if one.left >= 1 then id, task = firstOf(one) end
  if id then
    seen[id] = true
    bytes = bytes - #task[1]
    ids[#ids + 1] = id
    append(leases, score, id)
    if one.prefix then append(runs, '0', one.prefix .. id) else keyless[#keyless + 1] = id end
    local at = #reply
    reply[at + 1], reply[at + 2], reply[at + 3] = id, task[1], task[2] or 0
    one.left, one.given = one.left - 1, one.given + 1
  end
  local isOver = not hasMore(one)
  if isOver or one.left < 1 then
    noteRate(one)
    local list = isOver and leaving or parking
    list[#list + 1] = one.key
  else again[#again + 1] = one end
end
if most < limit and #ids == most or #ids < most and read < mostRead and bytes > 0 then reply[2] = 0 end
if #strays > 0 then reply[2] = 1 end

if listUsed > 0 then redis.call('LTRIM', PENDING, 0, -listUsed - 1) end
for first = 1, #gone, 4000 do redis.call('ZREM', WAITING, unpack(gone, first, math.min(first + 3999, #gone))) end
if #ghosts > 0 then redis.call('DEL', unpack(ghosts)) end
if #ids > 0 then
  redis.call('LPUSH', ACTIVE, unpack(ids))
  redis.call('ZADD', LEASE, unpack(leases))
  if #runs > 0 then redis.call('ZADD', RUNS, unpack(runs)) end
  local epoch = reply[1]
  redis.call('SET', EPOCH, whole(epoch + #ids - 1))
  for i, id in ipairs(ids) do
    redis.call('HSET', TASK .. id, 'state', 'active', 'x:lease', whole(epoch + i - 1) .. ':' .. score)
  end
  for _, id in ipairs(keyless) do redis.call('HDEL', TASK .. id, 'pending_since') end
  if l.t then
    l.full = queueFull + #ids * l.t
    redis.call('HSET', LIMITS, 'full', l.full)
  end
end

local turn, staying = lastTurn(), {}
for i = nextAgain, #again do
  local one = again[i]
  append(staying, turn + i, one.key)
  noteRate(one)
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
return { againInMs(), 0, #ids == 0 and reply[2] == 0 and {} or reply }
`;
