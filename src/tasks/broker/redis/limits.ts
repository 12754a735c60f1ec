import { limitsOf } from '../broker-settings.ts';
import type { KeyStats, QueueLimits } from '../broker.ts';
import { requireQueue } from './inspection.ts';
import { notifyOfTokens } from './dequeue.ts';
import type { RedisAccess, RedisOperations } from './redis-access.ts';
import {
  itemsOf,
  numberOf,
  rowsOf,
  Script,
  type ScriptArgument,
  type ScriptReply,
  textOf,
} from './script.ts';

/**
 * Stores the limits of a queue, and registers it if it has some. A bucket whose rate stays limited keeps what it has.
 *
 * KEYS[2]  SET of all queues, if there are limits; see RedisAccess.keysToEnqueue
 * ARGV[1]  the limits in JSON, or '' for none
 * ARGV[2]  1 to change nothing if the queue has limits
 * ARGV[3]  concurrency, or '' for no limit
 * ARGV[4]  milliseconds for a token, or '' for no limit
 * ARGV[5]  tokens in the bucket, or '' for no limit
 * ARGV[6]  concurrency of each key, or '' for no limit
 * ARGV[7]  milliseconds for a token of each key, or '' for no limit
 * ARGV[8]  tokens in the bucket of each key, or '' for no limit
 * ARGV[9]  now, in milliseconds, or '' for the clock of Redis
 */
export const SET_LIMITS = new Script(`
local QUEUES, FIELDS = KEYS[2], { 'c', 't', 'b', 'kc', 'kt', 'kb' }
if QUEUES then need('set', QUEUES) end
need('list', PENDING)
needFlow()
if ARGV[2] == '1' and redis.call('EXISTS', LIMITS) == 1 then return end
if QUEUES then redis.call('SADD', QUEUES, queueName()) end
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
`);

/**
 * Lets no bucket of a key be full later than an empty one is: its rate may have been lower.
 *
 * ARGV[1]  number of keys
 * ARGV[2]  now, in milliseconds, or '' for the clock of Redis
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
 * Moves some keys between the ring and those that are parked, after their limits have changed. At the end a queue that is no longer flow
 * controlled has neither, and servers are notified.
 *
 * ARGV[1]  cursor in those that are parked; '' for the ring
 * ARGV[2]  the turn after which keys of the ring are checked
 * ARGV[3]  number of keys
 * ARGV[4]  now, in milliseconds, or '' for the clock of Redis
 *
 * Returns the next cursor or turn, 0 at the end.
 */
export const REARRANGE = new Script(`
need('list', PENDING, ACTIVE)
needFlow()
if ARGV[1] == '' then
  local found = redis.call('ZRANGEBYSCORE', RING, '(' .. ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[3])
  local leaving, parked = {}, {}
  for i = 1, #found, 2 do
    local at = heldUntil(found[i])
    if at then
      leaving[#leaving + 1] = found[i]
      append(parked, at, found[i])
    end
  end
  if #parked > 0 then
    redis.call('ZADD', PARKED, unpack(parked))
    redis.call('ZREM', RING, unpack(leaving))
  end
  return #found == 2 * ARGV[3] and found[#found] or '0'
end
local found, keys = redis.call('ZSCAN', PARKED, ARGV[1], 'COUNT', ARGV[3]), {}
for i = 1, #found[2], 2 do keys[#keys + 1] = found[2][i] end
checkParked(keys)
if found[1] ~= '0' then return found[1] end
if not isFlow() then redis.call('DEL', RING)
elseif redis.call('LLEN', PENDING) > 0 then enterKeys({ '' }) end
if (isFlow() and redis.call('ZCARD', RING) or redis.call('LLEN', PENDING)) > 0 and not queueHeldUntil() then
  redis.pcall('PUBLISH', WORK, '')
end
return '0'
`);

/**
 * Lists keys that have pending or active tasks, in the order of `prefixOf` in flow.ts: first the tasks without key.
 *
 * ARGV[1]  the key after which the list begins
 * ARGV[2]  1 if the list begins with the tasks without key
 * ARGV[3]  number of keys that are left out
 * ARGV[4]  number of keys
 * ARGV[5]  now, in milliseconds, or '' for the clock of Redis
 *
 * Returns the number of keys that were left out, 1 if there are no more keys, and the last key; then per key its name, the numbers of its
 * pending and active tasks, 1 if it has no place, and the milliseconds until it has a token, or -1.
 */
export const LIST_KEYS = new Script(`
need('list', PENDING, ACTIVE)
needFlow()
local skip, count, l = tonumber(ARGV[3]), tonumber(ARGV[4]), readLimits()
local reply, skipped = { 0, 0, ARGV[1] }, 0
local function show(key, pending)
  local active = activeOf(key)
  if pending + active == 0 then return end
  if skipped < skip then skipped = skipped + 1 return end
  local again = l.kt and emptyUntil(redis.call('ZSCORE', RATES, key), l.kt, l.kb)
  local at = #reply
  reply[at + 1], reply[at + 2], reply[at + 3] = key, pending, active
  reply[at + 4], reply[at + 5] = l.kc and active >= l.kc and 1 or 0, again and math.ceil(again - nowMs()) or -1
end
-- By bytes, as Redis does: Lua compares strings as the locale does.
local function isBefore(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end
local key, steps = ARGV[1], 0
if ARGV[2] == '1' then show('', redis.call('LLEN', PENDING)) end
while #reply < 3 + 5 * count and steps < 1000 do
  local _, after = rangeOf(key)
  after = '[' .. string.sub(after, 2)
  local function nextIn(zset)
    local member = redis.call('ZRANGEBYLEX', zset, after, '+', 'LIMIT', 0, 1)[1]
    if member then return prefixOf((splitMember(member))), member end
  end
  local waiting, waits = nextIn(WAITING)
  local running, runs = nextIn(RUNS)
  if not waiting and not running then
    reply[2] = 1
    break
  end
  key = splitMember((not running or waiting and isBefore(waiting, running)) and waits or runs)
  show(key, redis.call('ZLEXCOUNT', WAITING, rangeOf(key)))
  steps = steps + 1
end
reply[1], reply[3] = skipped, key
return reply
`);

/** What one script does at most: some milliseconds in which Redis does nothing else. */
const KEYS_PER_SCRIPT = 1_000;

export const LIMITS = {
  limits: readLimits,

  async setLimits(redis, queue, given) {
    await storeLimits(redis, queue, limitsOf(given), false);
  },

  /** O(keys before the page). */
  async keys(redis, queue, page) {
    await requireQueue(redis, queue);
    const keys: KeyStats[] = [];
    let skip = (page.page - 1) * page.size;
    let after: ScriptArgument = '';
    for (let isEnd = false, isFirst = 1; !isEnd && keys.length < page.size; isFirst = 0) {
      const count = Math.min(page.size - keys.length, KEYS_PER_SCRIPT);
      const reply = itemsOf(await redis.runIn(queue, LIST_KEYS, [after, isFirst, skip, count]));
      skip -= numberOf(reply[0]);
      isEnd = numberOf(reply[1]) === 1;
      after = reply[2] as Buffer;
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
  const keys = limits === undefined ? [redis.keysOf(queue).prefix] : await redis.keysToEnqueue(queue);
  await redis.run(SET_LIMITS, keys, [json, onlyNew ? 1 : 0, ...numbers]);
  for (let changed = KEYS_PER_SCRIPT; changed === KEYS_PER_SCRIPT;) {
    changed = numberOf(await redis.runIn(queue, BOUND_BUCKETS, [KEYS_PER_SCRIPT]));
  }
  for (let turn = '-1'; turn !== '0';) {
    turn = textOf(await redis.runIn(queue, REARRANGE, ['', turn, KEYS_PER_SCRIPT]));
  }
  for (let cursor = '0', isFirst = true; isFirst || cursor !== '0'; isFirst = false) {
    cursor = textOf(await redis.runIn(queue, REARRANGE, [cursor, '', KEYS_PER_SCRIPT]));
  }
  if (await redis.readFlow(queue)) await notifyOfTokens(redis, queue);
}

/** Those of SET_LIMITS. */
function numbersOf({ concurrency, rate }: Pick<QueueLimits, 'concurrency' | 'rate'> = {}): ScriptArgument[] {
  const { tasks, perMs, burst } = rate ?? {};
  return [
    concurrency ?? '',
    ...(tasks === undefined || perMs === undefined ? ['', ''] : [String(perMs / tasks), burst ?? tasks]),
  ];
}
