import { withFlow, withoutFlow } from './script.ts';

/**
 * `add(id, msg, score, group, lock, ttl)`: adds a task: scheduled if it has a score, aggregating if it has a group, else pending.
 * It returns 1, 2 or 3 for pending, scheduled and aggregating, 0 if the id is taken, the id of the task that holds the lock, or
 * an error if a key that it needs has a wrong type. Only that task is refused then.
 * `damage(score, group)`: returns that error beforehand.
 * `finish()`: after the last task, registers the queue, adds the ids to the pending list, and notifies the servers.
 * In queues that may be flow controlled, `add` has two more arguments: the key or '', and whether the task is the next one.
 *
 * The group of a scheduled task is registered as well: see `dropGroup` in script.ts.
 *
 * KEYS[2]  `QUEUES`; see RedisAccess.runToEnqueue
 * ARGV[1]  now, in milliseconds
 */
const ADD = `
local NOW_MS = ARGV[1]
local NOW, NOW_NS, DAY = math.ceil(NOW_MS / 1000), NOW_MS .. '000000', 86400
local pushed, grown, added, checked, sound = {}, {}, 0, {}, {}
local function check(kind, key)
  if checked[key] == nil then checked[key] = wrongType(kind, key) or false end
  return checked[key]
end
+ local function keyField(key)
+   mark(key)
+   if key ~= '' then return 'x:key', key end
+ end
+ local function flowDamage(isPending)
+   local wrong = check('string', WAITING)
+   if wrong or not isPending then return wrong end
+   wrong = check('hash', LIMITS) or check('hash', FIRSTS) or check('list', RING) or check('list', ACTIVE)
+   for _, zset in ipairs({ PARKED, RUNS, RATES }) do wrong = wrong or check('zset', zset) end
+   return wrong
+ end
local function damage(score, group)
  local wrong = QUEUES and check('set', QUEUES)
  if wrong then return wrong end
  if score ~= '' then wrong = check('zset', SCHEDULED)
  elseif group == '' then wrong = check('list', PENDING) end
+   wrong = wrong or flowDamage(score == '' and group == '')
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
- local function add(id, msg, score, group, lock, ttl)
+ local function add(id, msg, score, group, lock, ttl, key, isNext)
  local list = score ~= '' and SCHEDULED or PENDING
  if group ~= '' or not sound[list] then
    local wrong = damage(score, group)
    if wrong then return wrong end
    sound[list] = group == ''
  end
  local owner = lock ~= '' and redis.pcall('GET', lock)
  if owner then return type(owner) == 'string' and owner or wrongType('string', lock) end
  if redis.call('EXISTS', TASK .. id) == 1 then return 0 end
  if score ~= '' then
    schedule(id, score, group)
-     write(id, msg, 'scheduled', group, lock, ttl)
+     write(id, msg, 'scheduled', group, lock, ttl, keyField(key))
    return 2
  end
  if group ~= '' then
    redis.call('ZADD', GROUP .. group, NOW, id)
    redis.call('SADD', GROUPS, group)
-     write(id, msg, 'aggregating', group, lock, ttl)
+     write(id, msg, 'aggregating', group, lock, ttl, keyField(key))
    grown[group] = true
    return 3
  end
-   write(id, msg, 'pending', group, lock, ttl, 'pending_since', NOW_NS)
-   pushed[#pushed + 1] = id
+   enter(id, key, isNext)
+   write(id, msg, 'pending', group, lock, ttl, 'pending_since', NOW_NS, keyField(key))
  return 1
end
local function finish()
  if added > 0 and QUEUES then redis.call('SADD', QUEUES, queueName()) end
-   if #pushed > 0 then
-     local size = redis.call('LPUSH', PENDING, unpack(pushed))
-     if size == #pushed then redis.pcall('PUBLISH', WORK, '') end
-   end
+   finishEntering()
  for group in pairs(grown) do redis.pcall('PUBLISH', WORK, group) end
end
`;

export const ADD_PLAIN_TASK = /* @__PURE__ */ withoutFlow(ADD);
export const ADD_TASK = /* @__PURE__ */ withFlow(ADD);
