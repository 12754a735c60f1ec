import { limitsOf, type Limits } from '../broker-settings.ts';
import type { KeyStats, QueueLimits } from '../broker.ts';
import { notifyOfTokens } from './dequeue-in-flow.ts';
import { requireQueue } from './inspection.ts';
import type { RedisAccess, RedisOperations } from './redis-access.ts';
import { itemsOf, numberOf, rowsOf, textOf } from './replies.ts';
import { MOST_READ, Script, type ScriptArgument, type ScriptReply } from './script.ts';

/**
 * Stores the limits of a queue, and registers it if it has some. If the rate was limited before, the bucket
 * keeps its tokens. O(active tasks) if the concurrency of keys is limited and was not.
 *
 * KEYS[2]  `QUEUES`, if there are limits; see RedisAccess.runToEnqueue
 * ARGV[1]  the limits in JSON, or '' for none
 * ARGV[2]  1 to change nothing if the queue has limits
 * ARGV[3]  concurrency, or '' for no limit
 * ARGV[4]  milliseconds for a token, or '' for no limit
 * ARGV[5]  tokens in the bucket, or '' for no limit
 * ARGV[6]  concurrency of each key, or '' for no limit
 * ARGV[7]  milliseconds for a token of each key, or '' for no limit
 * ARGV[8]  tokens in the bucket of each key, or '' for no limit
 */
export const SET_LIMITS = new Script(`
local FIELDS = { 'c', 't', 'b', 'kc', 'kt', 'kb' }
if QUEUES then need('set', QUEUES) end
need('list', PENDING, ACTIVE)
needFlow()
if ARGV[2] == '1' and redis.call('EXISTS', LIMITS) == 1 then return end
if QUEUES then redis.call('SADD', QUEUES, queueName()) end
local hadRuns = redis.call('HEXISTS', LIMITS, 'kc') == 1
if ARGV[1] == '' then redis.call('DEL', LIMITS)
else
  redis.call('HSET', LIMITS, 'json', ARGV[1])
  for i, name in ipairs(FIELDS) do
    if ARGV[i + 2] == '' then redis.call('HDEL', LIMITS, name) else redis.call('HSET', LIMITS, name, ARGV[i + 2]) end
  end
  local full = redis.call('HGET', LIMITS, 'full')
  if ARGV[4] == '' then redis.call('HDEL', LIMITS, 'full')
  elseif full then redis.call('HSET', LIMITS, 'full', (bucket(full, tonumber(ARGV[4]), tonumber(ARGV[5])))) end
end
if ARGV[7] == '' then redis.call('DEL', RATES) end
if ARGV[6] == '' then redis.call('DEL', RUNS)
elseif not hadRuns then
  for _, id in ipairs(redis.call('LRANGE', ACTIVE, 0, -1)) do
    local key = readTask(id, 'x:key')[1]
    if key then redis.call('ZADD', RUNS, 0, prefixOf(key) .. id) end
  end
end
`);

/**
 * Lets no bucket of a key be full later than an empty one is: its rate may have been lower.
 *
 * ARGV[1]  number of keys
 *
 * Returns the number of keys whose bucket has changed.
 */
export const BOUND_BUCKETS = new Script(`
need('hash', LIMITS)
need('zset', RATES)
local l, rows = readLimits(), {}
if not l.kt then return 0 end
local latest = nowMs() + l.kb * l.kt
local late = redis.call('ZRANGEBYSCORE', RATES, string.format('(%.17g', latest), '+inf', 'LIMIT', 0, ARGV[1])
for _, key in ipairs(late) do append(rows, latest, key) end
if #late > 0 then redis.call('ZADD', RATES, unpack(rows)) end
return #late
`);

/**
 * Parks keys of the ring that a limit holds back now: some, from its beginning. The others go to its end.
 *
 * ARGV[1]  number of keys, at most 1000
 */
export const PARK_HELD = new Script(`
need('list', PENDING, ACTIVE)
needFlow()
local found = redis.call('LRANGE', RING, 0, ARGV[1] - 1)
redis.call('LTRIM', RING, #found, -1)
enterRing(found)
`);

/**
 * Lets keys that are parked enter the ring if no limit holds them back any more. At the end a queue that is no longer flow controlled has
 * no turns, and servers are notified: tasks may run now, or a token comes sooner than before.
 *
 * ARGV[1]  cursor; 0 to begin
 * ARGV[2]  approximate number of keys
 *
 * Returns the next cursor, 0 at the end.
 */
export const FREE_PARKED = new Script(`
need('list', PENDING, ACTIVE)
needFlow()
local found, keys = redis.call('ZSCAN', PARKED, ARGV[1], 'COUNT', ARGV[2]), {}
for i = 1, #found[2], 2 do keys[#keys + 1] = found[2][i] end
checkParked(keys)
if found[1] ~= '0' then return found[1] end
if not isFlow() then redis.call('DEL', RING, FIRSTS)
elseif redis.call('LLEN', PENDING) > 0 and redis.call('HSETNX', FIRSTS, '', '') == 1 then enterRing({ '' }) end
if redis.call('EXISTS', PENDING, RING, PARKED) > 0 then redis.pcall('PUBLISH', WORK, '') end
return '0'
`);

/**
 * Lists keys that have pending or active tasks: first the tasks without key, then the keys in their turns, those that are parked, and
 * those that have only active tasks. O(active tasks).
 *
 * ARGV[1]  number of keys before which the list begins
 * ARGV[2]  number of keys that are left out of those that have tasks
 * ARGV[3]  number of keys
 *
 * Returns ARGV[1] and ARGV[2] of the next call, 1 if there are no more keys; then per key its name, the numbers of its pending and active
 * tasks, 1 if it has no place, and the milliseconds until it has a token, or -1.
 */
export const LIST_KEYS = new Script(`
need('list', PENDING, ACTIVE)
needFlow()
local nth, skip, count, l = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), readLimits()
local active, at = {}, 1
local keys, all = keysFrom(math.max(nth - 1, 0))
if nth == 0 then table.insert(keys, 1, '') end
local isEnd = nth + #keys > all
local others = {}
for _, id in ipairs(redis.call('LRANGE', ACTIVE, 0, -1)) do
  local key = readTask(id, 'x:key')[1] or ''
  if not active[key] and redis.call('HEXISTS', FIRSTS, key) == 0 and key ~= '' then others[#others + 1] = key end
  active[key] = (active[key] or 0) + 1
end
for i = isEnd and math.max(nth - all, 1) or math.huge, #others do keys[#keys + 1] = others[i] end
local reply = { 0, 0, 0 }
local function show(key, pending)
  local again = l.kt and emptyUntil(redis.call('ZSCORE', RATES, key), l.kt, l.kb)
  local row = #reply
  reply[row + 1], reply[row + 2], reply[row + 3] = key, pending, active[key] or 0
  reply[row + 4], reply[row + 5] = l.kc and activeOf(key) >= l.kc and 1 or 0, again and math.ceil(again - nowMs()) or -1
end
while at <= #keys and #reply < 3 + 5 * count do
  local key = keys[at]
  local isTurn = key == '' and nth + at > 1 -- the tasks without key are shown first
  local pending = isTurn and 0 or pendingOf(key)
  if not isTurn and (pending > 0 or active[key]) then
    if skip > 0 then skip = skip - 1 else show(key, pending) end
  end
  at = at + 1
end
reply[1], reply[2], reply[3] = nth + at - 1, skip, isEnd and at > #keys and 1 or 0
return reply
`);

export const LIMITS = {
  limits: readLimits,

  async setLimits(redis, queue, given) {
    await storeLimits(redis, queue, limitsOf(given), false);
  },

  /** O(keys before the page, and active tasks). */
  async keys(redis, queue, page) {
    await requireQueue(redis, queue);
    const keys: KeyStats[] = [];
    let skip = (page.page - 1) * page.size;
    for (let nth = 0, isEnd = false; !isEnd && keys.length < page.size;) {
      const count = Math.min(page.size - keys.length, MOST_READ);
      const reply = itemsOf(await redis.runIn(queue, LIST_KEYS, [nth, skip, count]));
      [nth = 0, skip = 0] = [numberOf(reply[0]), numberOf(reply[1])];
      isEnd = numberOf(reply[2]) === 1;
      for (const row of rowsOf(reply, 3, 5)) keys.push(statsOf(row));
    }
    return keys;
  },
} satisfies RedisOperations;

function statsOf([key, pending, active, isFull, againIn]: readonly ScriptReply[]): KeyStats {
  const againInMs = numberOf(againIn) < 0 ? undefined : numberOf(againIn);
  const heldBy = numberOf(isFull) === 1 ? 'concurrency' : againInMs === undefined ? undefined : 'rate';
  return { key: textOf(key), pending: numberOf(pending), active: numberOf(active), heldBy, againInMs };
}

export async function readLimits(redis: RedisAccess, queue: string): Promise<QueueLimits | undefined> {
  const { limits } = redis.keysOf(queue);
  const json = await redis.send((client) => client.hget(limits, 'json'));
  return json === null ? undefined : limitsOf(JSON.parse(json) as QueueLimits);
}

/** @param onlyNew - whether limits that the queue has stay as they are. */
export async function storeLimits(
  redis: RedisAccess,
  queue: string,
  limits: QueueLimits | undefined,
  onlyNew: boolean,
): Promise<void> {
  const numbers = [limits, limits?.perKey].flatMap(numbersOf);
  const json = limits === undefined ? '' : JSON.stringify(limits);
  const args = [json, onlyNew ? 1 : 0, ...numbers];
  await (limits === undefined
    ? redis.runIn(queue, SET_LIMITS, args)
    : redis.runToEnqueue(queue, SET_LIMITS, args));
  for (let changed = MOST_READ; changed === MOST_READ;) {
    changed = numberOf(await redis.runIn(queue, BOUND_BUCKETS, [MOST_READ]));
  }
  const { ring } = redis.keysOf(queue);
  for (let left = await redis.send((client) => client.llen(ring)); left > 0; left -= MOST_READ) {
    await redis.runIn(queue, PARK_HELD, [Math.min(left, MOST_READ)]);
  }
  for (let cursor = ''; cursor !== '0';) {
    cursor = textOf(await redis.runIn(queue, FREE_PARKED, [cursor || '0', MOST_READ]));
  }
  if (await redis.readFlow(queue)) await notifyOfTokens(redis, queue);
}

/** Returns the arguments of SET_LIMITS for limits of the queue, or of each key. */
function numbersOf({ concurrency, rate }: Limits = {}): ScriptArgument[] {
  const { tasks, perMs, burst } = rate ?? {};
  return [
    concurrency ?? '',
    ...(tasks === undefined || perMs === undefined ? ['', ''] : [String(perMs / tasks), burst ?? tasks]),
  ];
}
