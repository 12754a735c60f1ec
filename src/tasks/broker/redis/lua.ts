/*
 * Lua functions that scripts of several topics share. A script puts them in front of its own text, and behind what script.ts puts in
 * front of every script.
 */

/**
 * `freeLock(lock, id)`: deletes a unique lock if the task still holds it. The lock is a key that a client has written. If it is not
 * the key of a lock, it must not stop a script in the middle of its writes, which may belong to other tasks.
 * `freeLockOf(id)`: the same for the lock that the task's hash names. Where asynq adds a task with a lock to a group, only the msg
 * names the lock, as field 10, which is `82` and a length.
 */
export const FREE_LOCK = `
local function freeLock(lock, id)
  if lock and lock ~= '' and redis.pcall('GET', lock) == id then redis.call('DEL', lock) end
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
local function freeLockOf(id)
  local fields = readTask(id, 'unique_key', 'group', 'msg')
  freeLock(fields[1] or (fields[2] and fields[3] and lockIn(fields[3])), id)
end
`;

/**
 * A task's lease is `EPOCH:SCORE` in the field `x:lease` of its hash, where SCORE is its score in the ZSET of leases. A Go server
 * that leases the task again writes another score and does not know the field, so the value that is left there no longer matches.
 *
 * `needLeased(id)`: fails if a key of a leased task has a wrong type.
 * `holds(id, epoch)`: whether that lease is the task's present one.
 * `endLease(id)`: removes it.
 * `writeAnyway(zset)`: a Redis whose memory is full refuses a script at its first write, unless that command can only free memory.
 * This one does nothing, so tasks can end and leases can be extended in the memory that is left: only that frees memory.
 */
export const LEASED = `
local ACTIVE, LEASE = PREFIX .. 'active', PREFIX .. 'lease'
local function needLeased(id)
  need('hash', TASK .. id)
  need('list', ACTIVE)
  need('zset', LEASE)
end
local function holds(id, epoch)
  local score = redis.call('ZSCORE', LEASE, id)
  return score and redis.pcall('HGET', TASK .. id, 'x:lease') == epoch .. ':' .. score
end
local function endLease(id)
  redis.call('LREM', ACTIVE, 1, id)
  redis.call('ZREM', LEASE, id)
  redis.call('HDEL', TASK .. id, 'x:lease')
end
local function writeAnyway(zset) redis.call('ZREMRANGEBYRANK', zset, 1, 0) end
`;

/**
 * `giveUp(source, state, ids)`: removes ids from a zset, and their tasks with their locks if they are in that state: the id of a
 * removed task may belong to a new task.
 * `trim(cutoff, max, limit)`: removes archived tasks that are too old or too many, and returns how many. Both need FREE_LOCK.
 */
export const TRIM = `
local ARCHIVED = PREFIX .. 'archived'
local function giveUp(source, state, ids)
  for _, id in ipairs(ids) do
    local task = readTask(id, 'msg', 'state')
    if isGhost(task) or task[2] == state then
      freeLockOf(id)
      redis.call('DEL', TASK .. id)
    end
    redis.call('ZREM', source, id)
  end
  return #ids
end
local function trim(cutoff, max, limit)
  local old = redis.call('ZRANGEBYSCORE', ARCHIVED, '-inf', cutoff, 'LIMIT', 0, limit)
  local count = giveUp(ARCHIVED, 'archived', old)
  local over = math.min(redis.call('ZCARD', ARCHIVED) - max, limit - count)
  if over <= 0 then return count end
  return count + giveUp(ARCHIVED, 'archived', redis.call('ZRANGE', ARCHIVED, 0, over - 1))
end
`;

/**
 * The names of groups. A name is in the SET of groups while the group has tasks, and also while scheduled tasks will enter it:
 * the forwarder of a Go server moves them there and does not add the name, and then no server would aggregate them. Their ids
 * are in `x:later:GROUP`, a SET that expires, because a Go server that moves or deletes such a task does not know it.
 *
 * `dropGroup(group)`: removes the name if the group has neither kind of task.
 * `leaveLater(group, id)`: a task is no longer scheduled.
 */
export const GROUP_NAMES = `
local GROUPS, GROUP, LATER = PREFIX .. 'groups', PREFIX .. 'g:', PREFIX .. 'x:later:'
local function dropGroup(group)
  if redis.call('EXISTS', GROUP .. group, LATER .. group) == 0 then redis.call('SREM', GROUPS, group) end
end
local function leaveLater(group, id)
  if not group or group == '' then return end
  redis.pcall('SREM', LATER .. group, id)
  dropGroup(group)
end
`;
