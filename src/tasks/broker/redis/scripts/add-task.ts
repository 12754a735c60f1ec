/**
 * `add(id, msg, score, group, lock, ttl)` adds a task: scheduled if it has a score, aggregating if it has a group, else pending.
 * It returns 1, 2 or 3 for pending, scheduled and aggregating, 0 if the id is taken, the id of the task that holds the lock, or
 * an error if a key that it would need has a wrong type. Only that task is refused then.
 * `damage(score, group)` returns that error beforehand.
 * `finish()`, after the last one, registers the queue, puts the ids into the pending list, and notifies the servers.
 *
 * The group of a scheduled task is registered as well: see GROUP_NAMES in parts.ts.
 *
 * KEYS  1 prefix of the queue's keys: what a script needs is made from it, and less goes over the wire
 *       2 SET of all queues, unless that is on another node
 * ARGV  1 now, in milliseconds
 */
export const ADD_TASK = `
local PREFIX, QUEUES, NOW_MS = KEYS[1], KEYS[2], ARGV[1]
local PENDING, SCHEDULED, GROUPS = PREFIX .. 'pending', PREFIX .. 'scheduled', PREFIX .. 'groups'
local TASK, GROUP, LATER, CHANNEL = PREFIX .. 't:', PREFIX .. 'g:', PREFIX .. 'x:later:', PREFIX .. 'x:work'
local NOW, NOW_NS, DAY = math.ceil(NOW_MS / 1000), NOW_MS .. '000000', 86400
local pushed, grown, added, checked, sound = {}, {}, 0, {}, {}
local function check(kind, key)
  if checked[key] == nil then checked[key] = wrongType(kind, key) or false end
  return checked[key]
end
local function damage(score, group)
  local wrong = QUEUES and check('set', QUEUES)
  if wrong then return wrong end
  if score ~= '' then wrong = check('zset', SCHEDULED)
  elseif group == '' then wrong = check('list', PENDING) end
  if wrong or group == '' then return wrong end
  return check('set', GROUPS) or (score ~= '' and check('set', LATER .. group) or check('zset', GROUP .. group))
end
local function write(id, msg, state, group, lock, ttl, ...)
  redis.call('HSET', TASK .. id, 'msg', msg, 'state', state, ...)
  if group ~= '' then redis.call('HSET', TASK .. id, 'group', group) end
  if lock ~= '' then
    redis.call('HSET', TASK .. id, 'unique_key', lock)
    redis.call('SET', lock, id, 'EX', ttl)
  end
  added = added + 1
end
local function schedule(id, score, group)
  redis.call('ZADD', SCHEDULED, score, id)
  if group == '' then return end
  redis.call('SADD', GROUPS, group)
  redis.call('SADD', LATER .. group, id)
  local ttl = score - NOW + DAY
  if redis.call('TTL', LATER .. group) < ttl then redis.call('EXPIRE', LATER .. group, ttl) end
end
local function add(id, msg, score, group, lock, ttl)
  local place = score ~= '' and SCHEDULED or PENDING
  if group ~= '' or not sound[place] then
    local wrong = damage(score, group)
    if wrong then return wrong end
    sound[place] = group == ''
  end
  local owner = lock ~= '' and redis.pcall('GET', lock)
  if owner then return type(owner) == 'string' and owner or wrongType('string', lock) end
  if redis.call('EXISTS', TASK .. id) == 1 then return 0 end
  if score ~= '' then
    schedule(id, score, group)
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
    local size = redis.call('LPUSH', PENDING, unpack(pushed))
    if size == #pushed then redis.pcall('PUBLISH', CHANNEL, '') end
  end
  for group in pairs(grown) do redis.pcall('PUBLISH', CHANNEL, group) end
end
`;
