/*
 * The turns of keys, and limits. A queue that has a key `x:limits` or `x:seq` is flow controlled; all others are as asynq has them, and
 * the scripts that run most often do not read a key more for them (see `Script.inFlow`).
 *
 *      pending      LIST     tasks without key, as asynq has them: the key ''
 *      x:waiting    ZSET     tasks with a key      1:a:4503599627370497:ID   1:a:4503599627370499:ID   1:b:4503599627370498:ID
 *      x:ring       ZSET     turns of keys         b 7, c 8, a 9: the first one gives its first task, and goes to the end
 *      x:parked     ZSET     keys at their limit   d +inf (no place), e 1764000000123 (no token): enter the ring at the end
 *
 * A key is in the ring or parked if it has pending tasks, and in neither if it has none; only '' may be in neither for a while, if a Go
 * client has added a task, or may be in the ring without a task, if a Go server has taken it.
 *
 * Places are counted, not kept: the active tasks of a queue are those in its list, those of a key are in `x:run`, and those of '' are
 * the rest. A bucket is one number: when it is full again (the virtual scheduling of the generic cell rate algorithm, ITU-T I.371).
 *
 * The field `x:key` of a task's hash is 16 digits and its key. The digits are its place among the tasks of its key while it is pending.
 */

/** Begins what a script has in front that reads the time: its last argument is the time in milliseconds, or '' for Redis's. */
export const CLOCK = 'local CLOCK = table.remove(ARGV)';

/** Functions of scripts, in the order in which they use each other; see script.ts. */
export const FLOW_LIBRARY: readonly string[] = [
  `
${CLOCK}
local function nowMs()
  if CLOCK == '' then
    local time = redis.call('TIME')
    CLOCK = time[1] * 1000 + time[2] / 1000
  end
  return tonumber(CLOCK)
end`,

  `
local function isFlow() return redis.call('EXISTS', LIMITS, SEQ) > 0 end`,
  `
local function needFlow()
  need('hash', LIMITS)
  need('string', SEQ)
  need('zset', WAITING, RING, PARKED, RUNS, RATES)
end`,

  // The limits of the queue: `c` of its active tasks; `t` milliseconds for a token and `b` tokens in its bucket, which is full at `full`;
  // `kc`, `kt` and `kb` the same of each key. nil for no limit.
  `
local limits
local function readLimits()
  if limits then return limits end
  limits = {}
  local names = { 'c', 't', 'b', 'kc', 'kt', 'kb', 'full' }
  local values = redis.call('HMGET', LIMITS, unpack(names))
  for i, name in ipairs(names) do limits[name] = tonumber(values[i] or '') end
  return limits
end`,
  // Returns when a bucket is full, and the tokens in it. A millionth of a token may be missing: times are not exact.
  `
local function bucket(full, t, b)
  local now = nowMs()
  local at = math.min(math.max(tonumber(full or 0), now), now + b * t)
  return at, math.floor((now + b * t - at) / t + 0.000001)
end`,
  // When a bucket has a token that has none; nil if it has one.
  `
local function emptyUntil(full, t, b)
  local at, tokens = bucket(full, t, b)
  return tokens < 1 and at - (b - 1) * t or nil
end`,
  // When tasks of the queue may run: nil for now, math.huge for when there is a place.
  `
local function queueHeldUntil()
  local l = readLimits()
  if l.c and redis.call('LLEN', ACTIVE) >= l.c then return math.huge end
  return l.t and emptyUntil(l.full, l.t, l.b)
end`,

  // Members of x:waiting and x:run sort by their keys. No key is the beginning of another one: its length comes first.
  `
local function keyIn(place) return place and string.sub(place, 17) or '' end
local sizes = {} -- Lua takes long to write a number
local function sizeIn(key)
  local size = sizes[#key]
  if not size then
    size = #key .. ':'
    sizes[#key] = size
  end
  return size
end
local function prefixOf(key) return sizeIn(key) .. key .. ':' end
local function rangeOf(key)
  local prefix = prefixOf(key)
  return '[' .. prefix, '(' .. string.sub(prefix, 1, -2) .. ';'
end
local function memberOf(place, id) return prefixOf(keyIn(place)) .. string.sub(place, 1, 16) .. ':' .. id end
local function splitMember(member)
  local size, at = string.match(member, '^(%d+):()')
  return string.sub(member, at, at + size - 1), string.sub(member, at + size + 1)
end
local function idOf(member)
  local _, rest = splitMember(member)
  return string.sub(rest, 18)
end`,
  // Whether a key has pending tasks.
  `
local function hasPending(key)
  if key == '' then return redis.call('EXISTS', PENDING) == 1 end
  local min, max = rangeOf(key)
  return #redis.call('ZRANGEBYLEX', WAITING, min, max, 'LIMIT', 0, 1) > 0
end`,
  // Number of active tasks of a key. Those that a Go server has leased count as tasks without key.
  `
local function activeOf(key)
  if key ~= '' then return redis.call('ZLEXCOUNT', RUNS, rangeOf(key)) end
  return math.max(redis.call('LLEN', ACTIVE) - redis.call('ZCARD', RUNS), 0)
end`,
  // When tasks of a key may run as far as the limits of each key go: nil for now, math.huge for when there is a place. `heldIf` is for
  // callers that have read the bucket, and whether a key may have no place: `mayBeFull` is false if all keys have places after `more` runs.
  `
local function mayBeFull(more)
  local l = readLimits()
  return l.kc and math.max(redis.call('ZCARD', RUNS), redis.call('LLEN', ACTIVE)) + more >= l.kc
end
local function heldIf(key, isLimited, full)
  local l = readLimits()
  if isLimited and activeOf(key) >= l.kc then return math.huge end
  return full and emptyUntil(full, l.kt, l.kb)
end
local function heldUntil(key)
  local l = readLimits()
  return heldIf(key, l.kc, l.kt and redis.call('ZSCORE', RATES, key))
end`,

  `
local function lastTurn() return tonumber(redis.call('ZRANGE', RING, -1, -1, 'WITHSCORES')[2] or 0) end
local function append(rows, score, member)
  local at = #rows
  rows[at + 1], rows[at + 2] = score, member
end
local function digitsOf(turn) return string.format('%d', turn) end -- Redis takes long to write a number`,
  // Keys that wait longer than any token takes, because the clock was set back, wait for one token from now on.
  `
local function boundParked()
  local l = readLimits()
  if not l.kt then return end
  local latest = string.format('(%.17g', nowMs() + 2 * l.kt)
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', PARKED, latest, '(+inf', 'LIMIT', 0, 1000)) do
    redis.call('ZADD', RATES, 'XX', 'LT', nowMs() + l.kb * l.kt, key)
    redis.call('ZADD', PARKED, nowMs() + l.kt, key)
  end
end`,
  // Keys whose token has come enter the ring.
  `
local function unparkDue()
  if redis.call('ZCARD', PARKED) == 0 then return false end
  local due = redis.call('ZRANGEBYSCORE', PARKED, '-inf', nowMs(), 'LIMIT', 0, 1000)
  if #due == 0 then
    boundParked()
    return true
  end
  local turn, rows = lastTurn(), {}
  for i, key in ipairs(due) do append(rows, turn + i, key) end
  redis.call('ZADD', RING, unpack(rows))
  redis.call('ZREM', PARKED, unpack(due))
  return true
end`,
  // Keys that have pending tasks enter the ring in order, unless they are there; those at their limit are parked.
  `
local function without(zset, keys)
  local scores, others = redis.call('ZMSCORE', zset, unpack(keys)), {}
  for i, key in ipairs(keys) do if not scores[i] then others[#others + 1] = key end end
  return others
end
local function enterKeys(keys)
  local hasParked, l = unparkDue(), readLimits()
  if hasParked then keys = without(PARKED, keys) end
  local isLimited = l.kc or l.kt
  if isLimited and #keys > 0 then keys = without(RING, keys) end
  if #keys == 0 then return end
  local fulls = l.kt and redis.call('ZCARD', RATES) > 0 and redis.call('ZMSCORE', RATES, unpack(keys))
  local turn, entering, parked, lackPlaces, n = lastTurn(), {}, {}, mayBeFull(0), 0
  for i, key in ipairs(keys) do
    local at = isLimited and heldIf(key, lackPlaces, fulls and fulls[i])
    if at then append(parked, at, key)
    else
      entering[n + 1], entering[n + 2] = digitsOf(turn + i), key
      n = n + 2
    end
  end
  if n > 0 then redis.call('ZADD', RING, 'NX', unpack(entering)) end
  if #parked > 0 then redis.call('ZADD', PARKED, unpack(parked)) end
end`,
  // Parked keys that no limit holds back any more enter the ring; the others wait as long as the limits require now.
  `
local function checkParked(keys)
  local free = {}
  for _, key in ipairs(keys) do
    local at = heldUntil(key)
    if at then redis.call('ZADD', PARKED, 'XX', at, key)
    elseif redis.call('ZREM', PARKED, key) == 1 then free[#free + 1] = key end
  end
  for first = 1, #free, 1000 do enterKeys({ unpack(free, first, math.min(first + 999, #free)) }) end
end`,
  // Notifies servers if tasks may run and none could before: the ring was empty, or the queue had no place.
  `
local function wake(sizeBefore, wasFull)
  if sizeBefore > 0 and not wasFull then return end
  if redis.call('ZCARD', RING) > 0 and not queueHeldUntil() then redis.pcall('PUBLISH', WORK, '') end
end`,

  // `enter(id, key, isNext)`: adds a pending task to the end or the head of those with its key. Returns its field 'x:key', or nil if it
  // has no key. `mark(key)`: returns that field of a task that is not pending.
  // `finishEntering()`: called at the end.
  `
local tails, heads, rows, rowsEntered, keysEntered, prefixEntered, sequence = {}, {}, {}, 0, {}, {}, nil
local function mark(key)
  if key == '' then return nil end
  sequence = sequence or tonumber(redis.call('GET', SEQ) or 0) or 0
  return '0000000000000000' .. key
end
local function enter(id, key, isNext)
  local prefix = prefixEntered[key]
  if not prefix then
    prefix = prefixOf(key)
    keysEntered[#keysEntered + 1], prefixEntered[key] = key, prefix
  end
  if key == '' then
    local list = isNext and heads or tails
    list[#list + 1] = id
    return nil
  end
  if not sequence then mark(key) end
  sequence = sequence + 1
  local digits = string.format('%d', 2 ^ 52 + (isNext and -sequence or sequence))
  rows[rowsEntered + 1], rows[rowsEntered + 2] = '0', prefix .. digits .. ':' .. id
  rowsEntered = rowsEntered + 2
  return digits .. key
end
local function finishEntering()
  if sequence then redis.call('SET', SEQ, string.format('%.0f', sequence)) end
  if #keysEntered == 0 then return end
  local listed, keys = redis.call('LLEN', PENDING), keysEntered
  if listed > 0 then
    keys = { '' }
    for _, key in ipairs(keysEntered) do if key ~= '' then keys[#keys + 1] = key end end
  end
  if #tails > 0 then redis.call('LPUSH', PENDING, unpack(tails)) end
  if #heads > 0 then redis.call('RPUSH', PENDING, unpack(heads)) end
  if #rows > 0 then redis.call('ZADD', WAITING, unpack(rows)) end
  if isFlow() then
    local size = redis.call('ZCARD', RING)
    enterKeys(keys)
    wake(size)
  elseif listed == 0 then redis.pcall('PUBLISH', WORK, '') end
end`,

  // A key that has no more pending tasks leaves the ring.
  `
local function leaveRing(key)
  if hasPending(key) then return end
  redis.call('ZREM', RING, key)
  redis.call('ZREM', PARKED, key)
end`,
  // A task is no longer pending.
  `
local function leavePending(id, place)
  local key = keyIn(place)
  if key == '' or redis.call('ZREM', WAITING, memberOf(place, id)) == 0 then
    key = ''
    redis.call('LREM', PENDING, 1, id)
  end
  leaveRing(key)
end`,

  // Removes the first tasks with keys, as `leavePending`.
  `
local function leaveFirst(count)
  if not isFlow() then return end
  local members, isIn = count > 0 and redis.call('ZRANGE', WAITING, 0, count - 1) or {}, { [''] = true }
  if #members > 0 then redis.call('ZREMRANGEBYRANK', WAITING, 0, #members - 1) end
  for _, member in ipairs(members) do isIn[splitMember(member)] = true end
  for key in pairs(isIn) do leaveRing(key) end
end`,

  // The runs of tasks have ended: their places are free. `places` are the fields 'x:key' of their hashes, or false.
  `
local function freePlaces(ids, places)
  local members, keys, isIn = {}, {}, {}
  for i, id in ipairs(ids) do
    local key = keyIn(places[i])
    if key ~= '' then members[#members + 1] = prefixOf(key) .. id end
    if not isIn[key] then keys[#keys + 1] = key end
    isIn[key] = true
  end
  if #members > 0 then redis.call('ZREM', RUNS, unpack(members)) end
  local l = readLimits()
  if not l.c and not l.kc then return end
  local size, free = redis.call('ZCARD', RING), {}
  for _, key in ipairs(l.kc and redis.call('ZCARD', PARKED) > 0 and keys or {}) do
    if redis.call('ZSCORE', PARKED, key) == 'inf' then
      local at = heldUntil(key)
      if not at then free[#free + 1] = key elseif at < math.huge then redis.call('ZADD', PARKED, at, key) end
    end
  end
  if #free > 0 then
    redis.call('ZREM', PARKED, unpack(free))
    enterKeys(free)
  end
  wake(size, l.c and redis.call('LLEN', ACTIVE) + #ids >= l.c)
end`,
];
