import { callEach } from '../../../core/report-uncaught.ts';
import { leaseLost } from '../broker-errors.ts';
import type { LeasedTask } from '../broker.ts';
import { DEQUEUE_BY_TURNS } from './dequeue-by-turns.ts';
import { ENDING_IN_FLOW, LOST_PLACES } from './flow.ts';
import { extendLeasesOf } from './lease-renewer.ts';
import type { RedisAccess, RedisOperations } from './redis-access.ts';
import {
  listOf,
  messageIfOf,
  nanosOf,
  numberOf,
  Script,
  type ScriptArgument,
  type ScriptReply,
  secondsDown,
  secondsUp,
  textOf,
} from './script.ts';

/**
 * `nextEpoch()`: an epoch greater than all before it, also if a failover has lost the latest one: it is at least the time in
 * microseconds. A value that is not a number that Lua represents exactly is replaced.
 * `whole(number)`: its digits.
 */
const NEXT_EPOCH = `
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

/** The text of RECOVER. @param begin, lease - what it does besides, at first and with each task that it leases. */
function recover(begin: string, lease: string): string {
  return `${NEXT_EPOCH}
local limit, score, bytes, PIECE = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), 1000
need('list', ACTIVE)
need('zset', LEASE)
${begin}local ids, seen = {}, {}
local function find(id)
  if not seen[id] and #ids < limit then ids[#ids + 1] = id end
  seen[id] = true
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', LEASE, '-inf', ARGV[4], 'LIMIT', 0, limit)) do find(id) end
local active = redis.call('LRANGE', ACTIVE, 0, -1)
for first = 1, #active, PIECE do
  if #ids >= limit then break end
  local some = { unpack(active, first, math.min(first + PIECE - 1, #active)) }
  local scores = redis.call('ZMSCORE', LEASE, unpack(some))
  for n, id in ipairs(some) do if not scores[n] then find(id) end end
end
if #ids == 0 then return {} end
local epoch = nextEpoch()
local reply, count = { epoch, #ids == limit and 1 or 0 }, 0
for _, id in ipairs(ids) do
  if bytes <= 0 then
    reply[2] = 1
    break
  end
  local task = readTask(id, 'msg', 'x:recoveries', 'state')
  redis.call('LREM', ACTIVE, 0, id)
  if task[1] and task[3] == 'active' then
    redis.call('LPUSH', ACTIVE, id)
    redis.call('ZADD', LEASE, score, id)
    redis.call('HSET', TASK .. id, 'x:lease', whole(epoch + count) .. ':' .. score)
${lease}    count = count + 1
    bytes = bytes - #task[1]
    local at = #reply
    reply[at + 1], reply[at + 2], reply[at + 3] = id, task[1], task[2] or 0
  else
    redis.call('ZREM', LEASE, id)
    if isGhost(task) then redis.call('DEL', TASK .. id) end
  end
end
if count > 0 then redis.call('SET', EPOCH, whole(epoch + count - 1)) end
return reply
`;
}

/** A task with a key has a place that a Go server has not given it. */
const TAKE_PLACE = `    local key = keyIn(readTask(id, 'x:key')[1])
    if key ~= '' then redis.call('ZADD', RUNS, 0, prefixOf(key) .. id) end
`;

/**
 * Leases tasks again whose lease ended long ago, and active ones without a lease, which asynq's recoverer never finds because it
 * reads only the leases. Leases of tasks that are not active, and active ids without a task, are dropped.
 *
 * ARGV[1]  number of tasks, at most 1000
 * ARGV[2]  when the new leases end
 * ARGV[3]  bytes after which no more tasks are taken
 * ARGV[4]  leases that ended by then
 *
 * Returns what DEQUEUE returns.
 */
export const RECOVER = new Script(
  recover('', ''),
  `${LOST_PLACES}${recover('needFlow()\nfreeLostPlaces()\n', TAKE_PLACE)}`,
);

/** As DEQUEUE, for a flow controlled queue: see DEQUEUE_BY_TURNS. */
export const DEQUEUE_IN_FLOW = new Script(`${NEXT_EPOCH}${DEQUEUE_BY_TURNS}`);

/**
 * Returns a task to the head of its queue.
 *
 * ARGV[1]  id
 * ARGV[2]  epoch
 * ARGV[3]  now, in nanoseconds
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const RELEASE = new Script(
  `
local id = ARGV[1]
needLeased(id)
need('list', PENDING)
if not holds(id, ARGV[2]) then return 0 end
writeAnyway(LEASE)
local size = redis.call('RPUSH', PENDING, id)
endLease(id)
makePending(id, ARGV[3])
if size == 1 then redis.pcall('PUBLISH', WORK, '') end
return 1
`,
  `${ENDING_IN_FLOW}
local id = ARGV[1]
needLeased(id)
need('list', PENDING)
if not holds(id, ARGV[2]) then return 0 end
writeAnyway(LEASE)
local place = readTask(id, 'x:key')[1]
endLease(id)
makePending(id, ARGV[3])
place = enter(id, keyIn(place), true)
if place then redis.call('HSET', TASK .. id, 'x:key', place) end
finishEntering()
return 1
`,
);

const ARCHIVE_AS_IT_IS = `
local id = ARGV[1]
needLeased(id)
need('zset', ARCHIVED)
if not holds(id, ARGV[2]) then return end
endLease(id)
archive(id, ARGV[3])
redis.pcall('PUBLISH', SETTLED, id)
`;

/**
 * Archives a leased task whose message cannot be decoded, or is the message of another task, and frees its lock.
 *
 * ARGV[1]  id
 * ARGV[2]  epoch
 * ARGV[3]  now
 */
export const ARCHIVE_UNREADABLE = new Script(ARCHIVE_AS_IT_IS, ENDING_IN_FLOW + ARCHIVE_AS_IT_IS);

/** Tasks that one script leases at most: in these milliseconds Redis does nothing else. */
const MAX_PER_SCRIPT = 1_000;

/** How long it is known whether a queue has limits or keys, in milliseconds: another broker may set them. */
const FLOW_KNOWN_MS = 500;

/** What DEQUEUE_IN_FLOW returns if the queue has lost its limits, and has had no keys. */
const NO_FLOW = -2;

/** Bytes of one script's reply, and of one call, except for the last task: the reply must arrive in time. */
const MAX_REPLY_BYTES = 8_388_608;
const MAX_TAKEN_BYTES = 8 * MAX_REPLY_BYTES;

export const LEASES = {
  async dequeue(redis, queue, limit, leaseMs) {
    const { flows } = redis;
    const isKnown = flows.knows(queue, FLOW_KNOWN_MS);
    if (!isKnown) await flows.read(queue);
    const taken = await dequeue(redis, queue, limit, leaseMs);
    if (taken.length > 0 || limit === 0 || !isKnown || flows.isOn(queue)) return taken;
    return (await flows.read(queue)) ? dequeue(redis, queue, limit, leaseMs) : taken;
  },

  async recover(redis, queues, graceMs, leaseMs) {
    const recovered: LeasedTask[] = [];
    for (const queue of new Set(queues)) {
      if (!redis.flows.knows(queue, FLOW_KNOWN_MS)) await redis.flows.read(queue);
      const some = await takeSome(redis, queue, MAX_PER_SCRIPT, (count) => {
        const nowMs = redis.wallNowMs;
        const args = [count, secondsUp(nowMs + leaseMs), MAX_REPLY_BYTES, secondsDown(nowMs - graceMs)];
        return redis.runIn(queue, RECOVER, args);
      });
      recovered.push(...some);
    }
    return recovered;
  },

  async extendLeases(redis, tasks, leaseMs) {
    const queues = new Set(tasks.map(({ message }) => message.queue));
    const lost = await Promise.all([...queues].map((queue) => extendIn(redis, queue, tasks, leaseMs)));
    return lost.flat();
  },

  async release(redis, task) {
    await runUnderLease(redis, task, RELEASE, [task.message.id, task.epoch, nanosOf(redis.wallNowMs)]);
  },
} satisfies RedisOperations;

async function dequeue(
  redis: RedisAccess,
  queue: string,
  limit: number,
  leaseMs: number,
): Promise<readonly LeasedTask[]> {
  return takeSome(redis, queue, limit, async (count) => {
    const args = [count, secondsUp(redis.wallNowMs + leaseMs), MAX_REPLY_BYTES];
    if (!redis.flows.isOn(queue)) return redis.runIn(queue, DEQUEUE, args);
    const [againInMs, , reply = null] = listOf(await redis.runIn(queue, DEQUEUE_IN_FLOW, args));
    if (againInMs === NO_FLOW) {
      redis.flows.set(queue, false);
      return redis.runIn(queue, DEQUEUE, args);
    }
    awaitToken(redis, queue, numberOf(againInMs));
    return reply;
  });
}

/** Notifies the listeners after a time if tasks may run then. @param inMs - -1 for never. */
function awaitToken(redis: RedisAccess, queue: string, inMs: number): void {
  const isHeard = [...redis.listeners].some((listener) => listener.work !== undefined);
  redis.flows.awaitToken(queue, isHeard ? inMs : -1, () => {
    notifyOfTokens(redis, queue).catch(() => undefined); // servers poll as well
  });
}

/** Notifies the listeners if tasks may run now; else when the next token comes. */
export async function notifyOfTokens(redis: RedisAccess, queue: string): Promise<void> {
  const [againInMs = NO_FLOW, mayRun] = listOf(await redis.runIn(queue, DEQUEUE_IN_FLOW, [0, 0, 0]));
  if (mayRun === 1) callEach([...redis.listeners], (listener) => listener.work?.(queue));
  else if (againInMs !== NO_FLOW) awaitToken(redis, queue, numberOf(againInMs));
}

/** Runs a script of a leased task that returns 1, or 0 if the lease is lost. @throws EscapementError `ERR_LEASE_LOST` */
export async function runUnderLease(
  redis: RedisAccess,
  task: LeasedTask,
  script: Script,
  args: readonly ScriptArgument[],
): Promise<void> {
  if ((await redis.runIn(task.message.queue, script, args)) !== 1) throw leaseLost(task);
}

/** Runs one script after the other until there are enough tasks, or no more. Tasks that are leased are returned even if a later script fails. */
async function takeSome(
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
      reply = listOf(await take(count));
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
 * Adds the tasks of a reply. One whose message cannot be decoded, or belongs to another task, is archived as it is: the scripts that settle a run would
 * not find it under the id of its message, and it would be recovered for ever.
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

async function extendIn(
  redis: RedisAccess,
  queue: string,
  tasks: readonly LeasedTask[],
  leaseMs: number,
): Promise<LeasedTask[]> {
  const inQueue = tasks.filter(({ message }) => message.queue === queue);
  const leases = inQueue.map((task) => ({ id: task.message.id, epoch: task.epoch, task }));
  const lost: LeasedTask[] = [];
  const pieces = extendLeasesOf(redis, redis.keysOf(queue), leases, () => redis.wallNowMs + leaseMs);
  for await (const piece of pieces) lost.push(...piece.lost.map(({ task }) => task));
  return lost;
}

function bytesIn(reply: readonly ScriptReply[]): number {
  return reply.reduce<number>((sum, each) => sum + (Buffer.isBuffer(each) ? each.length : 0), 0);
}
