/*
 * The turns of keys, and limits. A queue that has a key `x:limits` or `x:waiting` is flow controlled; all others are as asynq has them,
 * and the scripts that run most often do not read a key more for them (see `Script.inFlow`).
 *
 *      x:ring       LIST     turns of keys         b, '', a: the first one gives its first task, and goes to the end
 *      x:first      HASH     first tasks of keys   b: ID, a: ID, d: ID, e: ID, '': ''
 *      x:next:a     LIST     those behind them     ID ID ID; x:next:b, x:next:d
 *      pending      LIST     tasks without key, as asynq has them: they are those of the key ''
 *      x:parked     ZSET     keys at their limit   d +inf (no place), e 1764000000123 (no token): enter the ring at the end
 *
 * A key with pending tasks is in `x:first`, and either in the ring or parked; other keys are in none of them. Only '' may lack its turn for
 * a while, if a Go client has added a task, or have it without a task, if a Go server has taken it.
 *
 * Places are counted, not kept: the active tasks of a queue are those in its list; those of a key are in `x:run` if keys have a limit of
 * them, and those of '' are the rest. A bucket is one number: when it is full again (the virtual scheduling of the generic cell
 * rate algorithm, ITU-T I.371).
 *
 * The field `x:key` of a task's hash is its key.
 */

/** The first line of a script that reads the time: its last argument, see keys.ts. */
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
local function isFlow() return redis.call('EXISTS', LIMITS, WAITING) > 0 end`,
  `
local function needFlow()
  need('hash', LIMITS, FIRSTS)
  need('string', WAITING)
  need('list', RING)
  need('zset', PARKED, RUNS, RATES)
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

  // Members of x:run sort by their keys. No key is the beginning of another one: its length comes first. They have more than 64 bytes, so
  // that Redis keeps them in a skip list even if they are few: else it would walk through all of them.
  `
local LONG = string.rep('-', 64)
local sizes = {} -- Lua takes long to write a number
local function prefixOf(key)
  local size = sizes[#key]
  if not size then
    size = LONG .. #key .. ':'
    sizes[#key] = size
  end
  return size .. key .. ':'
end
local function rangeOf(key)
  local prefix = prefixOf(key)
  return '[' .. prefix, '(' .. string.sub(prefix, 1, -2) .. ';'
end
local function splitMember(member)
  local size, at = string.match(member, '^-+(%d+):()')
  if not size then return '', '' end
  return string.sub(member, at, at + size - 1), string.sub(member, at + size + 1)
end`,
  // A task with that key or none is active.
  `
local function takePlace(id, key)
  if key and key ~= '' and readLimits().kc then redis.call('ZADD', RUNS, 0, prefixOf(key) .. id) end
end`,
  // Adds to the number of pending tasks with keys. One that is not a number starts again: it must not stop a script in the middle of its writes.
  `
local function addWaiting(n)
  if type(redis.pcall('INCRBY', WAITING, n)) ~= 'number' then redis.call('SET', WAITING, math.max(n, 0)) end
end`,
  // Some ids of a list, in the order in which tasks leave it: at its right end.
  `
local function idsFrom(list, from, count)
  local ids = redis.call('LRANGE', list, -from - count, -from - 1)
  for i = 1, #ids / 2 do ids[i], ids[#ids + 1 - i] = ids[#ids + 1 - i], ids[i] end
  return ids
end`,
  // Some keys in their turns: those of the ring, then parked ones; and the number of all of them.
  `
local function keysFrom(from)
  local ringed, MOST = redis.call('LLEN', RING), 1000
  local keys = redis.call('LRANGE', RING, from, from + MOST - 1)
  if #keys < MOST then
    local first = math.max(from - ringed, 0)
    for _, key in ipairs(redis.call('ZRANGE', PARKED, first, first + MOST - 1)) do keys[#keys + 1] = key end
  end
  return keys, ringed + redis.call('ZCARD', PARKED)
end`,
  // Number of pending tasks of a key.
  `
local function pendingOf(key)
  if key == '' then return redis.call('LLEN', PENDING) end
  return redis.call('HEXISTS', FIRSTS, key) + need('list', NEXT .. key)
end`,
  // Number of active tasks of a key, if keys have a limit of them. Those that a Go server has leased count as tasks without key.
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
local function append(rows, score, member)
  local at = #rows
  rows[at + 1], rows[at + 2] = score, member
end`,
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
  if redis.call('ZCARD', PARKED) == 0 then return end
  local due = redis.call('ZRANGEBYSCORE', PARKED, '-inf', nowMs(), 'LIMIT', 0, 1000)
  if #due == 0 then return boundParked() end
  redis.call('RPUSH', RING, unpack(due))
  redis.call('ZREM', PARKED, unpack(due))
end`,
  // Keys in `x:first` that are not in the ring enter it in order; those at their limit are parked. At most 1000.
  `
local function enterRing(keys)
  if #keys == 0 then return end
  local l, lackPlaces, entering, parked = readLimits(), mayBeFull(0), keys, {}
  local fulls = l.kt and redis.call('ZCARD', RATES) > 0 and redis.call('ZMSCORE', RATES, unpack(keys))
  if lackPlaces or fulls then
    entering = {}
    for i, key in ipairs(keys) do
      local at = heldIf(key, lackPlaces, fulls and fulls[i])
      if at then append(parked, at, key) else entering[#entering + 1] = key end
    end
  end
  if #entering > 0 then redis.call('RPUSH', RING, unpack(entering)) end
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
  for first = 1, #free, 1000 do enterRing({ unpack(free, first, math.min(first + 999, #free)) }) end
end`,
  // Notifies servers if tasks may run and none could before: the ring was empty, or the queue had no place.
  `
local function wake(sizeBefore, wasFull)
  if sizeBefore > 0 and not wasFull then return end
  if redis.call('LLEN', RING) > 0 and not queueHeldUntil() then redis.pcall('PUBLISH', WORK, '') end
end`,

  // The list of a key may have another type, if another program has written it. Then it is empty, or is replaced.
  `
local function push(command, list, ids)
  if #ids == 0 then return end
  local size = redis.pcall(command, list, unpack(ids))
  if type(size) == 'number' then return end
  if not string.find(size.err, 'WRONGTYPE', 1, true) then error(size.err, 0) end
  redis.call('DEL', list)
  redis.call(command, list, unpack(ids))
end
local function popNext(key)
  local id = redis.pcall('LPOP', NEXT .. key)
  return type(id) == 'string' and id
end`,
  // `enter(id, key, isNext)`: adds a pending task to the end or the head of those with its key. `mark(key)`: the queue has a task with
  // that key, which is not pending. `finishEntering()`: called at the end.
  `
local tails, heads, keysEntered, sawKeys, waiting = {}, {}, {}, false, 0
local function mark(key)
  if key ~= '' then sawKeys = true end
end
local function enter(id, key, isNext)
  local lists = isNext and heads or tails
  local ids = lists[key]
  if key ~= '' then waiting = waiting + 1 end
  if ids then ids[#ids + 1] = id return end
  lists[key] = { id }
  if not (isNext and tails or heads)[key] then keysEntered[#keysEntered + 1] = key end
end
-- Adds the tasks of a key that has this first one, or false. Returns the first one then.
local function addToKey(key, first)
  local next, last = heads[key], tails[key]
  if next then
    if first then table.insert(next, 1, first) end
    first = table.remove(next)
    push('LPUSH', NEXT .. key, next)
  end
  if not last then return first end
  first = first or table.remove(last, 1)
  push('RPUSH', NEXT .. key, last)
  return first
end
-- Adds the tasks of keys that have a list, which is faster than to read their first tasks. Returns the other keys.
local function addBehind(keys)
  local others = {}
  for _, key in ipairs(keys) do
    local ids = key ~= '' and not heads[key] and tails[key]
    local size = ids and redis.pcall('RPUSHX', NEXT .. key, unpack(ids))
    if type(size) ~= 'number' or size == 0 then others[#others + 1] = key end
  end
  return others
end
local function finishEntering()
  if #keysEntered == 0 then
    if sawKeys then addWaiting(0) end
    return
  end
  local listed, isOn = redis.call('LLEN', PENDING), isFlow()
  push('LPUSH', PENDING, tails[''] or {})
  push('RPUSH', PENDING, heads[''] or {})
  local hasKeys = sawKeys or waiting > 0
  if not isOn and not hasKeys then
    if listed == 0 then redis.pcall('PUBLISH', WORK, '') end
    return
  end
  local size, keys = redis.call('LLEN', RING), keysEntered
  if listed > 0 then
    keys = { '' }
    for _, key in ipairs(keysEntered) do if key ~= '' then keys[#keys + 1] = key end end
  end
  local hasLists = (tonumber(redis.call('GET', WAITING)) or 0) > 2 * redis.call('HLEN', FIRSTS)
  if hasLists then keys = addBehind(keys) end
  local firsts, rows, entering = #keys > 0 and redis.call('HMGET', FIRSTS, unpack(keys)) or {}, {}, {}
  local changed, new = 0, 0
  for i, key in ipairs(keys) do
    local before = firsts[i]
    local first = key == '' and '' or addToKey(key, before)
    if first ~= before then
      rows[changed + 1], rows[changed + 2] = key, first
      changed = changed + 2
    end
    if not before then
      new = new + 1
      entering[new] = key
    end
  end
  if #rows > 0 then redis.call('HSET', FIRSTS, unpack(rows)) end
  if hasKeys then addWaiting(waiting) end
  unparkDue()
  enterRing(entering)
  wake(size)
end`,

  // A key has no more pending tasks. O(keys in the ring), as asynq searches its list for a task that is removed.
  `
local function leaveRing(key)
  if redis.call('HDEL', FIRSTS, key) == 0 then return end
  if redis.call('ZREM', PARKED, key) == 0 then redis.call('LREM', RING, 1, key) end
end`,
  // A task with that key or none is no longer pending.
  `
local function leaveKey(id, key)
  if redis.call('HGET', FIRSTS, key) == id then
    local first = popNext(key)
    if first then redis.call('HSET', FIRSTS, key, first) else leaveRing(key) end
  elseif redis.pcall('LREM', NEXT .. key, 1, id) ~= 1 then return false end
  addWaiting(-1)
  return true
end
local function leavePending(id, key)
  if key and key ~= '' and leaveKey(id, key) then return end
  redis.call('LREM', PENDING, 1, id)
  if redis.call('EXISTS', PENDING) == 0 then leaveRing('') end
end`,

  // Removes pending tasks: first those without key, then those of the keys in their turns, then those of keys that have lost their turn.
  // Returns their ids.
  `
local function takePending(count)
  local ids = idsFrom(PENDING, 0, count)
  local listed = #ids
  redis.call('LTRIM', PENDING, 0, -listed - 1)
  if redis.call('EXISTS', PENDING) == 1 then return ids end
  leaveRing('')
  local function takeOf(key)
    local first = redis.call('HGET', FIRSTS, key)
    while first and #ids < count do
      ids[#ids + 1] = first
      first = popNext(key)
    end
    if first then redis.call('HSET', FIRSTS, key, first) else redis.call('HDEL', FIRSTS, key) end
    return not first
  end
  while #ids < count do
    local key = redis.call('LINDEX', RING, 0)
    if not key then break end
    if takeOf(key) then redis.call('LPOP', RING) end
  end
  while #ids < count do
    local key = redis.call('ZRANGE', PARKED, 0, 0)[1]
    if not key then break end
    if takeOf(key) then redis.call('ZREM', PARKED, key) end
  end
  while #ids < count do
    local key = redis.call('HRANDFIELD', FIRSTS)
    if not key then break end
    takeOf(key)
  end
  if #ids > listed then addWaiting(listed - #ids) end
  if redis.call('EXISTS', FIRSTS) == 0 then redis.call('SET', WAITING, 0, 'XX') end
  return ids
end`,

  // The runs of tasks have ended: their places are free. `keys` are the fields 'x:key' of their hashes, or false.
  `
local function freePlaces(ids, keys)
  local l, members, seen, isIn, free = readLimits(), {}, {}, {}, {}
  if not l.c and not l.kc then return end
  if l.kc then
    for i, id in ipairs(ids) do
      local key = keys[i] or ''
      if key ~= '' then members[#members + 1] = prefixOf(key) .. id end
      if not isIn[key] then seen[#seen + 1] = key end
      isIn[key] = true
    end
  end
  if #members > 0 then redis.call('ZREM', RUNS, unpack(members)) end
  local size = redis.call('LLEN', RING)
  for _, key in ipairs(l.kc and redis.call('ZCARD', PARKED) > 0 and seen or {}) do
    if redis.call('ZSCORE', PARKED, key) == 'inf' then
      local at = heldUntil(key)
      if not at then free[#free + 1] = key elseif at < math.huge then redis.call('ZADD', PARKED, at, key) end
    end
  end
  if #free > 0 then
    redis.call('ZREM', PARKED, unpack(free))
    unparkDue()
    enterRing(free)
  end
  wake(size, l.c and redis.call('LLEN', ACTIVE) + #ids >= l.c)
end`,
];
