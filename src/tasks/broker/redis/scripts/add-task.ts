/**
 * `add(id, msg, score, group, lock, ttl)` adds a task: scheduled if it has a score, aggregating if it has a group, else pending.
 * It returns 1, 2 or 3 for pending, scheduled and aggregating, 0 if the id is taken, or the id of who holds the lock.
 * A group is registered also by what is scheduled: the forwarder of a Go server puts that into it, and does not register it.
 * `finish()`, after the last one, registers the queue, puts the ids into the pending list, and tells who listens.
 *
 * KEYS  1 prefix of the queue's keys: what a script needs is made from it, and less goes over the wire
 *       2 SET of all queues, unless that is on another node
 * ARGV  1 now, in milliseconds
 */
export const ADD_TASK = `
local PREFIX, QUEUES, NOW_MS = KEYS[1], KEYS[2], ARGV[1]
local PENDING, SCHEDULED, GROUPS = PREFIX .. 'pending', PREFIX .. 'scheduled', PREFIX .. 'groups'
local TASK, GROUP, CHANNEL = PREFIX .. 't:', PREFIX .. 'g:', PREFIX .. 'x:work'
local NOW, NOW_NS = math.ceil(NOW_MS / 1000), NOW_MS .. '000000'
local waiting = redis.call('LLEN', PENDING)
local pushed, grown, added = {}, {}, 0
local function write(id, msg, state, group, lock, ttl, ...)
  redis.call('HSET', TASK .. id, 'msg', msg, 'state', state, ...)
  if group ~= '' then redis.call('HSET', TASK .. id, 'group', group) end
  if lock ~= '' then
    redis.call('HSET', TASK .. id, 'unique_key', lock)
    redis.call('SET', lock, id, 'EX', ttl)
  end
  added = added + 1
end
local function add(id, msg, score, group, lock, ttl)
  local owner = lock ~= '' and redis.pcall('GET', lock)
  if owner then return type(owner) == 'string' and owner or '' end
  if redis.call('EXISTS', TASK .. id) == 1 then return 0 end
  if score ~= '' then
    redis.call('ZADD', SCHEDULED, score, id)
    if group ~= '' then redis.call('SADD', GROUPS, group) end
    write(id, msg, 'scheduled', group, lock, ttl)
    return 2
  end
  if group ~= '' then
    redis.call('ZADD', GROUP .. group, NOW, id)
    redis.call('SADD', GROUPS, group)
    write(id, msg, 'aggregating', group, lock, ttl)
    grown[group] = true
    return 3
  end
  write(id, msg, 'pending', group, lock, ttl, 'pending_since', NOW_NS)
  pushed[#pushed + 1] = id
  return 1
end
local function finish()
  if added > 0 and QUEUES then redis.call('SADD', QUEUES, string.match(PREFIX, '^asynq:{(.*)}:$')) end
  if #pushed > 0 then
    redis.call('LPUSH', PENDING, unpack(pushed))
    if waiting == 0 then redis.pcall('PUBLISH', CHANNEL, '') end
  end
  for group in pairs(grown) do redis.pcall('PUBLISH', CHANNEL, group) end
end
`;
