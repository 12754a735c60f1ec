/*
 * Lua functions that more than one script needs. They are put in front of a script's own text.
 *
 * A task's lease is `EPOCH:SCORE` in the field `x:lease` of its hash, where SCORE is what the ZSET of leases has for it. A Go
 * server that leases the task anew writes another score and knows nothing of the field, so what is left there holds no more.
 */

/**
 * `freeLock(key, id)`: a lock that the task does not hold any more is left to whoever does. The key is what some client has
 * said: if it is no lock at all, that must not stop a script in the middle of its writes, which may be those of other tasks.
 * `freeLockOf(task, id)`: the same, with the task's hash. Where asynq adds a task with a lock to a group, only the msg says so,
 * as field 10, which is `82` and a length.
 */
export const FREE_LOCK = `
local function freeLock(key, id)
  if key and key ~= '' and redis.pcall('GET', key) == id then redis.call('DEL', key) end
end
local function lockIn(msg)
  local at = 1
  local function varint()
    local value, place, byte = 0, 1
    repeat
      byte = string.byte(msg, at) or 0
      value, place, at = value + byte % 128 * place, place * 128, at + 1
    until byte < 128
    return value
  end
  while at <= #msg do
    local tag = varint()
    local value = varint()
    if tag % 8 == 2 then
      if tag == 82 then return string.sub(msg, at, at + value - 1) end
      at = at + value
    elseif tag % 8 ~= 0 then return nil end
  end
end
local function freeLockOf(task, id)
  local fields = redis.call('HMGET', task, 'unique_key', 'group', 'msg')
  freeLock(fields[1] or (fields[2] and fields[3] and lockIn(fields[3])), id)
end
`;

/** `holds(task, lease, id, epoch)`: whether that lease is the task's present one. */
export const HOLDS = `
local function holds(task, lease, id, epoch)
  local score = redis.call('ZSCORE', lease, id)
  return score and redis.call('HGET', task, 'x:lease') == epoch .. ':' .. score
end
`;

/**
 * `writeAnyway(zset)`: a Redis whose memory is full refuses a script only before its first write, unless that can but free
 * some. So this one, which does nothing, lets tasks end and leases be kept in what is left: nothing else makes room again.
 */
export const WRITE_ANYWAY = `
local function writeAnyway(zset) redis.call('ZREMRANGEBYRANK', zset, 1, 0) end
`;

/** `nextEpoch(key)`: greater than all before it, also if a failover has lost the latest: the time is in it. */
export const NEXT_EPOCH = `
local function nextEpoch(key)
  local time = redis.call('TIME')
  local last = tonumber(redis.call('GET', key) or 0)
  return math.max(last + 1, time[1] * 1000000 + time[2])
end
local function whole(number) return string.format('%.0f', number) end
`;

/** `count(total, day, n, expireAt)`: a total that is as great as Redis can count begins anew, as asynq's does. */
export const COUNT = `
local function count(total, day, n, expireAt)
  if redis.call('INCRBY', day, n) == n then redis.call('EXPIREAT', day, expireAt) end
  local sum = redis.pcall('INCRBY', total, n)
  if type(sum) == 'table' then redis.call('SET', total, n) end
end
`;

/** `trim(archived, taskPrefix, cutoff, max, limit)`: what the archive gives up, with its locks. Needs FREE_LOCK. */
export const TRIM = `
local function giveUp(archived, taskPrefix, ids)
  for _, id in ipairs(ids) do
    freeLockOf(taskPrefix .. id, id)
    redis.call('DEL', taskPrefix .. id)
    redis.call('ZREM', archived, id)
  end
  return #ids
end
local function trim(archived, taskPrefix, cutoff, max, limit)
  local old = redis.call('ZRANGEBYSCORE', archived, '-inf', cutoff, 'LIMIT', 0, limit)
  local gone = giveUp(archived, taskPrefix, old)
  local over = math.min(redis.call('ZCARD', archived) - max, limit - gone)
  if over > 0 then gone = gone + giveUp(archived, taskPrefix, redis.call('ZRANGE', archived, 0, over - 1)) end
  return gone
end
`;

/**
 * `leave(id, state, group)`: takes a task out of where its hash says it is; not an active one.
 * `isHeld(id)`: whether it is in a set that somebody aggregates.
 *
 * Both need the keys of {@link placeKeys}, first.
 */
export const LEAVE = `
local PENDING, GROUPS, SETS, GROUP_PREFIX = KEYS[1], KEYS[6], KEYS[7], ARGV[1]
local ZSETS = { scheduled = KEYS[2], retry = KEYS[3], archived = KEYS[4], completed = KEYS[5] }
local function isHeld(id)
  for _, set in ipairs(redis.call('ZRANGE', SETS, 0, -1)) do
    if redis.call('ZSCORE', set, id) then return true end
  end
  return false
end
local function leaveGroup(id, group)
  redis.call('ZREM', GROUP_PREFIX .. group, id)
  if redis.call('EXISTS', GROUP_PREFIX .. group) == 0 then redis.call('SREM', GROUPS, group) end
end
local function leave(id, state, group)
  if state == 'pending' then redis.call('LREM', PENDING, 1, id)
  elseif state == 'aggregating' then leaveGroup(id, group or '')
  elseif ZSETS[state] then redis.call('ZREM', ZSETS[state], id) end
end
`;

/**
 * `take(source, state, limit)`: takes the first ids out of a list, a zset or a group.
 */
export const TAKE_SOME = `
local function take(source, state, limit)
  local ids
  if state == 'pending' then
    local found = redis.call('LRANGE', source, -limit, -1)
    ids = {}
    for i = #found, 1, -1 do ids[#ids + 1] = found[i] end
    redis.call('LTRIM', source, 0, -limit - 1)
  else
    ids = redis.call('ZRANGE', source, 0, limit - 1)
    if #ids > 0 then redis.call('ZREMRANGEBYRANK', source, 0, #ids - 1) end
  end
  return ids
end
`;
