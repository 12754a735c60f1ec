/*
 * Lua functions that scripts of several topics share. A script puts them in front of its own text; they use the functions that
 * script.ts puts in front of every script.
 *
 * A task's lease is `EPOCH:SCORE` in the field `x:lease` of its hash, where SCORE is its score in the ZSET of leases. A Go server
 * that leases the task again writes another score and does not know the field, so the value that is left there no longer matches.
 */

/**
 * `freeLock(key, id)`: deletes a unique lock if the task still holds it. The key is text that a client has written. If it is not
 * the key of a lock, it must not stop a script in the middle of its writes, which may belong to other tasks.
 * `freeLockOf(task, id)`: the same for the lock that the task's hash names. Where asynq adds a task with a lock to a group, only
 * the msg names the lock, as field 10, which is `82` and a length.
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
 * `writeAnyway(zset)`: a Redis whose memory is full refuses a script at its first write, unless that command can only free
 * memory. This one does nothing, so tasks can end and leases can be extended in the memory that is left: only that frees memory.
 */
export const WRITE_ANYWAY = `
local function writeAnyway(zset) redis.call('ZREMRANGEBYRANK', zset, 1, 0) end
`;

/**
 * `giveUp(source, state, taskPrefix, ids)`: removes ids from a zset, and their tasks with their locks if they are in that state:
 * the id of a removed task may belong to a new task.
 * `trim(archived, taskPrefix, cutoff, max, limit)`: removes archived tasks that are too old or too many. Both need FREE_LOCK.
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
 * The names of groups. A name is in the SET of groups while the group has tasks, and also while scheduled tasks will enter it:
 * the forwarder of a Go server moves them there and does not add the name, and then no server would aggregate them. Their ids
 * are in `x:later:GROUP`, a SET that expires, because a Go server that moves or deletes such a task does not know it.
 *
 * `dropGroup(prefix, group)`: removes the name if the group has neither kind of task.
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
