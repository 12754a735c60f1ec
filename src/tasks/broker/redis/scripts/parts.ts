/*
 * Lua functions that more than one script needs. They are put in front of a script's own text, and need those that every
 * script has: see script.ts.
 *
 * A task's lease is `EPOCH:SCORE` in the field `x:lease` of its hash, where SCORE is what the ZSET of leases has for it. A Go
 * server that leases the task anew writes another score and knows nothing of the field, so what is left there holds no more.
 */

/**
 * `freeLock(key, id)`: a lock that the task does not hold any more is left to whoever does. The key is what some client has
 * written: if it is no lock at all, that must not stop a script in the middle of its writes, which may be those of other tasks.
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
  local fields = readTask(task, 'unique_key', 'group', 'msg')
  freeLock(fields[1] or (fields[2] and fields[3] and lockIn(fields[3])), id)
end
`;

/** `holds(task, lease, id, epoch)`: whether that lease is the task's present one. */
export const HOLDS = `
local function holds(task, lease, id, epoch)
  local score = redis.call('ZSCORE', lease, id)
  return score and redis.pcall('HGET', task, 'x:lease') == epoch .. ':' .. score
end
`;

/**
 * `writeAnyway(zset)`: a Redis whose memory is full refuses a script only before its first write, unless that can but free
 * some. So this one, which does nothing, lets tasks end and leases be kept in what is left: nothing else makes room again.
 */
export const WRITE_ANYWAY = `
local function writeAnyway(zset) redis.call('ZREMRANGEBYRANK', zset, 1, 0) end
`;

/**
 * `nextEpoch(key)`: greater than all before it, also if a failover has lost the latest: the time is in it. A value that is not
 * a number that Lua can count with is replaced.
 */
export const NEXT_EPOCH = `
local function nextEpoch(key)
  need('string', key)
  local time = redis.call('TIME')
  local last = tonumber(redis.call('GET', key) or 0)
  if not (last and last < 2 ^ 53) then last = 0 end
  return math.max(last + 1, time[1] * 1000000 + time[2])
end
local function whole(number) return string.format('%.0f', number) end
`;

/** `count(total, day, n, expireAt)`: a number that is as great as Redis can count, or none, begins anew, as asynq's total does. */
export const COUNT = `
local function add(key, n)
  local sum = redis.pcall('INCRBY', key, n)
  if type(sum) == 'number' then return sum end
  redis.call('SET', key, n)
  return n
end
local function count(total, day, n, expireAt)
  if add(day, n) == n then redis.call('EXPIREAT', day, expireAt) end
  add(total, n)
end
`;

/**
 * `giveUp(source, state, taskPrefix, ids)`: removes ids from a zset, and their tasks with their locks if they are in that state:
 * an id of a task that is gone may have been given to another one.
 * `trim(archived, taskPrefix, cutoff, max, limit)`: what the archive gives up. Both need FREE_LOCK.
 */
export const TRIM = `
local function giveUp(source, state, taskPrefix, ids)
  for _, id in ipairs(ids) do
    local task = readTask(taskPrefix .. id, 'msg', 'state')
    if isGhost(task) or task[2] == state then
      freeLockOf(taskPrefix .. id, id)
      redis.call('DEL', taskPrefix .. id)
    end
    redis.call('ZREM', source, id)
  end
  return #ids
end
local function trim(archived, taskPrefix, cutoff, max, limit)
  local old = redis.call('ZRANGEBYSCORE', archived, '-inf', cutoff, 'LIMIT', 0, limit)
  local gone = giveUp(archived, 'archived', taskPrefix, old)
  local over = math.min(redis.call('ZCARD', archived) - max, limit - gone)
  if over <= 0 then return gone end
  return gone + giveUp(archived, 'archived', taskPrefix, redis.call('ZRANGE', archived, 0, over - 1))
end
`;

/**
 * The names of groups. A name is in the SET of groups while the group has tasks, and also while scheduled tasks are to come into
 * it: the forwarder of a Go server puts them there and does not add the name, and then no server would aggregate them. Their ids
 * are in `x:later:GROUP`, a SET that expires, because a Go server that moves or deletes such a task knows nothing of it.
 *
 * `dropGroup(prefix, group)`: removes the name if there is no reason for it any more.
 * `leaveLater(prefix, group, id)`: a task is no longer scheduled. `prefix` is that of the queue's keys.
 * `prefixOf(taskPrefix)`: that prefix.
 */
export const GROUP_NAMES = `
local function prefixOf(taskPrefix) return string.sub(taskPrefix, 1, -3) end
local function dropGroup(prefix, group)
  if redis.call('EXISTS', prefix .. 'g:' .. group, prefix .. 'x:later:' .. group) == 0 then
    redis.call('SREM', prefix .. 'groups', group)
  end
end
local function leaveLater(prefix, group, id)
  if not group or group == '' then return end
  redis.pcall('SREM', prefix .. 'x:later:' .. group, id)
  dropGroup(prefix, group)
end
`;

/**
 * `needPlaces(state, group)`: fails if a place that the task leaves, or may come to, has a wrong type.
 * `leave(id, state, group)`: takes a task out of where its hash says it is; not an active one.
 * `isHeld(id)`: whether it is in a set that is being aggregated.
 *
 * All need GROUP_NAMES, and the keys of {@link placeKeys}, first.
 */
export const LEAVE = `
local PENDING, GROUPS, SETS, GROUP_PREFIX = KEYS[1], KEYS[6], KEYS[7], ARGV[1]
local ZSETS = { scheduled = KEYS[2], retry = KEYS[3], archived = KEYS[4], completed = KEYS[5] }
local function needPlaces(state, group)
  need('list', PENDING)
  need('set', GROUPS)
  need('zset', ZSETS.archived, ZSETS[state] or ZSETS.archived)
  if state == 'aggregating' then need('zset', GROUP_PREFIX .. (group or '')) end
end
local function isHeld(id)
  need('zset', SETS)
  for _, set in ipairs(redis.call('ZRANGE', SETS, 0, -1)) do
    need('zset', set)
    if redis.call('ZSCORE', set, id) then return true end
  end
  return false
end
local function leave(id, state, group)
  if state == 'pending' then redis.call('LREM', PENDING, 1, id)
  elseif state == 'aggregating' then
    redis.call('ZREM', GROUP_PREFIX .. (group or ''), id)
    dropGroup(prefixOf(GROUP_PREFIX), group or '')
  elseif ZSETS[state] then
    redis.call('ZREM', ZSETS[state], id)
    if state == 'scheduled' then leaveLater(prefixOf(GROUP_PREFIX), group, id) end
  end
end
`;

/**
 * `needSource(source, state, ...)`: fails if the source, or one of the other zsets, has a wrong type.
 * `take(source, state, limit, taskPrefix, group, change)`: takes the first ids out of a list, a zset or a group, and calls
 * `change(task, id)` for each whose task is in that state. @returns the ids. Needs GROUP_NAMES.
 */
export const TAKE_SOME = `
local function needSource(source, state, ...)
  need('zset', ...)
  return need(state == 'pending' and 'list' or 'zset', source)
end
local function firstOf(source, state, limit)
  if state ~= 'pending' then return redis.call('ZRANGE', source, 0, limit - 1) end
  local found, ids = redis.call('LRANGE', source, -limit, -1), {}
  for i = #found, 1, -1 do ids[#ids + 1] = found[i] end
  return ids
end
local function take(source, state, limit, taskPrefix, group, change)
  local ids = firstOf(source, state, limit)
  if state == 'pending' then redis.call('LTRIM', source, 0, -limit - 1)
  elseif #ids > 0 then redis.call('ZREMRANGEBYRANK', source, 0, #ids - 1) end
  for _, id in ipairs(ids) do
    local task = readTask(taskPrefix .. id, 'msg', 'state', 'group')
    if isGhost(task) then redis.call('DEL', taskPrefix .. id)
    elseif task[2] == state then change(taskPrefix .. id, id) end
    if state == 'scheduled' then leaveLater(prefixOf(taskPrefix), task[3], id) end
  end
  if group ~= '' then dropGroup(prefixOf(taskPrefix), group) end
  return ids
end
`;
