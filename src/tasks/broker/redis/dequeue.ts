import { callEach } from '../../../core/report-uncaught.ts';
import type { LeasedTask } from '../broker.ts';
import type { RedisAccess, RedisOperations } from './redis-access.ts';
import { itemsOf, messageIfOf, numberOf, Script, type ScriptReply, secondsUp, textOf } from './script.ts';
import { ARCHIVE_UNREADABLE } from './settle.ts';

/**
 * `nextEpoch()`: an epoch greater than all before it, also if a failover has lost the latest one: it is at least the time in
 * microseconds. A value that is not a number that Lua represents exactly is replaced.
 * `whole(number)`: its digits.
 */
export const NEXT_EPOCH = `
local function nextEpoch()
  need('string', EPOCH)
  local time = redis.call('TIME')
  local last = tonumber(redis.call('GET', EPOCH) or 0)
  if not (last and last < 2 ^ 53) then last = 0 end
  return math.max(last + 1, time[1] * 1000000 + time[2])
end
local function whole(number) return string.format('%.0f', number) end
`;

/**
 * Leases the first tasks of a queue, unless it is paused. Ids without a task, or whose task is elsewhere, are dropped: leasing
 * them would create a task without a message, or run one twice.
 *
 * ARGV[1]  number of tasks, at most 1000
 * ARGV[2]  when the leases end
 * ARGV[3]  bytes after which no more tasks are taken
 *
 * Returns {} if the list is empty or the queue is paused; else the epoch of the first task, 1 if there may be more tasks, and per
 * task id, msg and recoveries: their epochs are consecutive.
 */
export const DEQUEUE = new Script(`${NEXT_EPOCH}
local limit, score, bytes = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
if redis.call('EXISTS', PAUSED) == 1 or need('list', PENDING) == 0 then return {} end
need('list', ACTIVE)
need('zset', LEASE)
local reply, ids, leases, ghosts, seen = { nextEpoch(), 1 }, {}, {}, {}, {}
local read, most = 0, limit + 1000
while #ids < limit and bytes > 0 and read < most do
  local want = math.min(limit - #ids, most - read)
  local found = redis.call('LRANGE', PENDING, -read - want, -read - 1)
  if #found < want then reply[2] = 0 end
  for i = #found, 1, -1 do
    if bytes <= 0 then break end
    read = read + 1
    local id = found[i]
    local task = readTask(id, 'msg', 'x:recoveries', 'state')
    local isFree = task[3] == 'pending' or (task[3] == 'active' and not redis.call('ZSCORE', LEASE, id))
    if isGhost(task) then ghosts[#ghosts + 1] = TASK .. id
    elseif task[1] and isFree and not seen[id] then
      seen[id] = true
      bytes = bytes - #task[1]
      ids[#ids + 1] = id
      leases[#leases + 1] = score
      leases[#leases + 1] = id
      local at = #reply
      reply[at + 1], reply[at + 2], reply[at + 3] = id, task[1], task[2] or 0
    end
  end
  if #found < want then break end
end
if bytes <= 0 then reply[2] = 1 end
redis.call('LTRIM', PENDING, 0, -read - 1)
if #ghosts > 0 then redis.call('DEL', unpack(ghosts)) end
if #ids == 0 then return reply end
local epoch = reply[1]
redis.call('LPUSH', ACTIVE, unpack(ids))
redis.call('ZADD', LEASE, unpack(leases))
redis.call('SET', EPOCH, whole(epoch + #ids - 1))
for i, id in ipairs(ids) do
  redis.call('HSET', TASK .. id, 'state', 'active', 'x:lease', whole(epoch + i - 1) .. ':' .. score)
  redis.call('HDEL', TASK .. id, 'pending_since')
end
return reply
`);

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
export const DEQUEUE_IN_FLOW = new Script(`${NEXT_EPOCH}
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
  if l.full and l.full > queueFull then redis.call('HSET', LIMITS, 'full', queueFull) end -- the clock was set back
  most = math.min(most, tokens)
end
if most <= 0 or size == 0 then
  return { againInMs(), size > 0 and not queueHeldUntil() and 1 or 0, {} }
end

-- Keys in their turns: those of the ring, then those of them that have given a task and have more.
local perKey, read, mostRead = math.ceil(most / size) + 1, 0, 2 * most + 1000 -- members, and keys of the ring
local perKeyDigits = tostring(perKey) -- Redis takes long to write a number that is an argument
local inRing, nextInRing, again, nextAgain = {}, 1, {}, 1
local function visit(key)
  local one = { key = key, prefix = false, members = false, at = 1, isWhole = false, left = math.huge, given = 0, full = false, isLate = false }
  if key ~= '' then one.prefix = prefixOf(key) end
  if l.kc then one.left = l.kc - activeOf(key) end
  if l.kt then
    local full = tonumber(redis.call('ZSCORE', RATES, key) or 0)
    one.full, tokens = bucket(full, l.kt, l.kb)
    one.isLate = full > one.full -- the clock was set back
    one.left = math.min(one.left, tokens)
  end
  return one
end
local function nextKey()
  if nextInRing > #inRing and #inRing < size then
    for _, key in ipairs(redis.call('ZRANGE', RING, #inRing, #inRing + most - 1)) do inRing[#inRing + 1] = key end
  end
  if nextInRing <= #inRing then
    nextInRing, read = nextInRing + 1, read + 1
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
  if one.given > 0 and one.full or one.isLate then append(rates, one.full + one.given * l.kt, one.key) end
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
`);

/** Tasks that one script leases at most: in these milliseconds Redis does nothing else. */
export const MAX_PER_SCRIPT = 1_000;

/** How long it is known whether a queue has limits or keys, in milliseconds: another broker may set them. */
export const FLOW_KNOWN_MS = 500;

/** What DEQUEUE_IN_FLOW returns if the queue has lost its limits, and has had no keys. */
const NO_FLOW = -2;

/** Bytes of one script's reply, and of one call, except for the last task: the reply must arrive in time. */
export const MAX_REPLY_BYTES = 8_388_608;
const MAX_TAKEN_BYTES = 8 * MAX_REPLY_BYTES;

export const DEQUEUING = {
  async dequeue(redis, queue, limit, leaseMs) {
    const known = redis.isInFlow(queue, FLOW_KNOWN_MS);
    const isInFlow = await known;
    const taken = await dequeue(redis, queue, limit, leaseMs, isInFlow);
    if (taken.length > 0 || limit === 0 || isInFlow || typeof known !== 'boolean') return taken;
    return (await redis.readFlow(queue)) ? dequeue(redis, queue, limit, leaseMs, true) : taken;
  },
} satisfies RedisOperations;

async function dequeue(
  redis: RedisAccess,
  queue: string,
  limit: number,
  leaseMs: number,
  isInFlow: boolean,
): Promise<readonly LeasedTask[]> {
  let byTurns = isInFlow;
  return takeSome(redis, queue, limit, async (count) => {
    const args = [count, secondsUp(redis.wallNowMs + leaseMs), MAX_REPLY_BYTES];
    if (byTurns) {
      const [againInMs, , reply = null] = itemsOf(await redis.runIn(queue, DEQUEUE_IN_FLOW, args));
      if (againInMs !== NO_FLOW) {
        awaitToken(redis, queue, numberOf(againInMs));
        return reply;
      }
      redis.setFlow(queue, false);
      byTurns = false;
    }
    return redis.runIn(queue, DEQUEUE, args);
  });
}

/** Notifies the listeners after a time if tasks may run then. @param inMs - -1 for never. */
function awaitToken(redis: RedisAccess, queue: string, inMs: number): void {
  const isHeard = [...redis.listeners].some((listener) => listener.work !== undefined);
  redis.awaitToken(queue, isHeard ? inMs : -1, () => {
    notifyOfTokens(redis, queue).catch(() => undefined); // servers poll as well
  });
}

/** Notifies the listeners if tasks may run now; else when the next token comes. */
export async function notifyOfTokens(redis: RedisAccess, queue: string): Promise<void> {
  const [againInMs = NO_FLOW, mayRun] = itemsOf(await redis.runIn(queue, DEQUEUE_IN_FLOW, [0, 0, 0]));
  if (mayRun === 1) callEach([...redis.listeners], (listener) => listener.work?.(queue));
  else if (againInMs !== NO_FLOW) awaitToken(redis, queue, numberOf(againInMs));
}

/** Runs one script after the other until there are enough tasks, or no more. Tasks that are leased are returned even if a later script fails. */
export async function takeSome(
  redis: RedisAccess,
  queue: string,
  limit: number,
  take: (count: number) => Promise<ScriptReply>,
): Promise<LeasedTask[]> {
  const taken: LeasedTask[] = [];
  let bytes = 0;
  for (let left = limit; left > 0 && bytes < MAX_TAKEN_BYTES;) {
    const count = Math.min(left, MAX_PER_SCRIPT);
    let reply: ScriptReply[];
    try {
      reply = itemsOf(await take(count));
      await readTasks(redis, queue, reply, taken);
    } catch (error) {
      if (taken.length === 0) throw error;
      break;
    }
    if (numberOf(reply[1]) === 0) break;
    left -= Math.floor(reply.length / 3);
    bytes += bytesIn(reply);
  }
  return taken;
}

/**
 * Adds the tasks of a reply. One whose message cannot be decoded, or belongs to another task, is archived as it is: the scripts that
 * settle a run would not find it under the id of its message, and it would be recovered for ever.
 */
async function readTasks(
  redis: RedisAccess,
  queue: string,
  reply: readonly ScriptReply[],
  into: LeasedTask[],
): Promise<void> {
  const first = numberOf(reply[0]);
  const unreadable: Promise<unknown>[] = [];
  for (let at = 2; at < reply.length; at += 3) {
    const [id, epoch] = [textOf(reply[at]), first + (at - 2) / 3];
    const message = messageIfOf(queue, id, reply[at + 1]);
    if (message === undefined)
      unreadable.push(redis.runIn(queue, ARCHIVE_UNREADABLE, [id, epoch, secondsUp(redis.wallNowMs)]));
    else into.push({ message, epoch, recoveries: numberOf(reply[at + 2]) });
  }
  await Promise.all(unreadable);
}

function bytesIn(reply: readonly ScriptReply[]): number {
  return reply.reduce<number>((sum, each) => sum + (Buffer.isBuffer(each) ? each.length : 0), 0);
}
