import { requireIntegerAtLeast } from '../../../core/validate.ts';
import { requireDuration } from '../../task-options.ts';
import { leaseLost } from '../broker-errors.ts';
import type { LeasedTask } from '../broker.ts';
import { extendLeasesOf } from './lease-renewer.ts';
import { FREE_LOCK, HOLDS, WRITE_ANYWAY } from './lua.ts';
import type { RedisAccess } from './redis-access.ts';
import { Script, type ScriptArgument, type ScriptReply } from './script.ts';
import { listOf, messageIfOf, nanosOf, numberOf, secondsDown, secondsUp, textOf } from './script-values.ts';

/**
 * `nextEpoch(key)`: an epoch greater than all before it, also if a failover has lost the latest one: it is at least the time in
 * microseconds. A value that is not a number that Lua represents exactly is replaced.
 * `whole(number)`: its digits.
 */
const NEXT_EPOCH = `
local function nextEpoch(key)
  need('string', key)
  local time = redis.call('TIME')
  local last = tonumber(redis.call('GET', key) or 0)
  if not (last and last < 2 ^ 53) then last = 0 end
  return math.max(last + 1, time[1] * 1000000 + time[2])
end
local function whole(number) return string.format('%.0f', number) end
`;

/**
 * Leases the first tasks of a queue, unless it is paused. Ids without a task, or whose task is elsewhere, are dropped: leasing
 * them would create a task without a message, or run one twice.
 *
 * KEYS[1]  prefix of the queue's keys
 * ARGV[1]  number of tasks, at most 1000
 * ARGV[2]  when the leases end
 * ARGV[3]  bytes after which no more tasks are taken
 *
 * Returns {} if the list is empty or the queue is paused; else the epoch of the first task, 1 if there may be more tasks, and per
 * task id, msg and recoveries: their epochs are consecutive.
 */
export const DEQUEUE = new Script(`${NEXT_EPOCH}
local PREFIX, limit, score = KEYS[1], tonumber(ARGV[1]), ARGV[2]
local PENDING, ACTIVE, LEASE = PREFIX .. 'pending', PREFIX .. 'active', PREFIX .. 'lease'
local EPOCH, TASK, bytes = PREFIX .. 'x:epoch', PREFIX .. 't:', tonumber(ARGV[3])
if redis.call('EXISTS', PREFIX .. 'paused') == 1 or need('list', PENDING) == 0 then return {} end
need('list', ACTIVE)
need('zset', LEASE)
local reply, ids, leases, ghosts, seen = { nextEpoch(EPOCH), 1 }, {}, {}, {}, {}
local looked, most = 0, limit + 1000
while #ids < limit and bytes > 0 and looked < most do
  local want = math.min(limit - #ids, most - looked)
  local found = redis.call('LRANGE', PENDING, -looked - want, -looked - 1)
  if #found < want then reply[2] = 0 end
  for i = #found, 1, -1 do
    if bytes <= 0 then break end
    looked = looked + 1
    local id = found[i]
    local task = readTask(TASK .. id, 'msg', 'x:recoveries', 'state')
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
redis.call('LTRIM', PENDING, 0, -looked - 1)
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
 * Leases tasks again whose lease ended long ago, and active ones without a lease, which asynq's recoverer never finds because it
 * reads only the leases. Leases of tasks that are not active, and active ids without a task, are dropped.
 *
 * KEYS[1]  LIST active
 * KEYS[2]  ZSET lease
 * KEYS[3]  STRING epoch
 * ARGV[1]  leases that ended by then
 * ARGV[2]  when the new leases end
 * ARGV[3]  prefix of tasks
 * ARGV[4]  number of tasks, at most 1000
 * ARGV[5]  bytes after which no more tasks are taken
 *
 * Returns what DEQUEUE returns.
 */
export const RECOVER = new Script(`${NEXT_EPOCH}
local ACTIVE, LEASE, TASK, limit, PIECE = KEYS[1], KEYS[2], ARGV[3], tonumber(ARGV[4]), 1000
need('list', ACTIVE)
need('zset', LEASE)
local ids, seen = {}, {}
local function find(id)
  if not seen[id] and #ids < limit then ids[#ids + 1] = id end
  seen[id] = true
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', LEASE, '-inf', ARGV[1], 'LIMIT', 0, limit)) do find(id) end
local active = redis.call('LRANGE', ACTIVE, 0, -1)
for first = 1, #active, PIECE do
  if #ids >= limit then break end
  local some = { unpack(active, first, math.min(first + PIECE - 1, #active)) }
  local scores = redis.call('ZMSCORE', LEASE, unpack(some))
  for n, id in ipairs(some) do if not scores[n] then find(id) end end
end
if #ids == 0 then return {} end
local epoch = nextEpoch(KEYS[3])
local reply, count, bytes = { epoch, #ids == limit and 1 or 0 }, 0, tonumber(ARGV[5])
for _, id in ipairs(ids) do
  if bytes <= 0 then
    reply[2] = 1
    break
  end
  local task = readTask(TASK .. id, 'msg', 'x:recoveries', 'state')
  redis.call('LREM', ACTIVE, 0, id)
  if task[1] and task[3] == 'active' then
    redis.call('LPUSH', ACTIVE, id)
    redis.call('ZADD', LEASE, ARGV[2], id)
    redis.call('HSET', TASK .. id, 'x:lease', whole(epoch + count) .. ':' .. ARGV[2])
    count = count + 1
    bytes = bytes - #task[1]
    local at = #reply
    reply[at + 1], reply[at + 2], reply[at + 3] = id, task[1], task[2] or 0
  else
    redis.call('ZREM', LEASE, id)
    if isGhost(task) then redis.call('DEL', TASK .. id) end
  end
end
if count > 0 then redis.call('SET', KEYS[3], whole(epoch + count - 1)) end
return reply
`);

/**
 * Returns a task to the head of its queue.
 *
 * KEYS[1]  HASH of the task
 * KEYS[2]  LIST active
 * KEYS[3]  ZSET lease
 * KEYS[4]  LIST pending
 * ARGV[1]  id
 * ARGV[2]  epoch
 * ARGV[3]  now, in nanoseconds
 * ARGV[4]  channel of work
 *
 * Returns 1, or 0 if the lease is lost.
 */
export const RELEASE = new Script(`${HOLDS}${WRITE_ANYWAY}
local TASK, id = KEYS[1], ARGV[1]
need('hash', TASK)
need('list', KEYS[2], KEYS[4])
need('zset', KEYS[3])
if not holds(TASK, KEYS[3], id, ARGV[2]) then return 0 end
writeAnyway(KEYS[3])
local waiting = redis.call('RPUSH', KEYS[4], id)
redis.call('LREM', KEYS[2], 1, id)
redis.call('ZREM', KEYS[3], id)
redis.call('HSET', TASK, 'state', 'pending', 'pending_since', ARGV[3])
redis.call('HDEL', TASK, 'x:lease')
if waiting == 1 then redis.pcall('PUBLISH', ARGV[4], '') end
return 1
`);

/**
 * Archives a leased task whose message cannot be decoded, or is the message of another task, and frees its lock.
 *
 * KEYS[1]  HASH of the task
 * KEYS[2]  LIST active
 * KEYS[3]  ZSET lease
 * KEYS[4]  ZSET archived
 * ARGV[1]  id
 * ARGV[2]  epoch
 * ARGV[3]  now
 * ARGV[4]  channel of settled tasks
 */
export const ARCHIVE_UNREADABLE = new Script(`${FREE_LOCK}${HOLDS}
local TASK, id = KEYS[1], ARGV[1]
need('hash', TASK)
need('list', KEYS[2])
need('zset', KEYS[3], KEYS[4])
if not holds(TASK, KEYS[3], id, ARGV[2]) then return end
redis.call('LREM', KEYS[2], 1, id)
redis.call('ZREM', KEYS[3], id)
redis.call('ZADD', KEYS[4], ARGV[3], id)
redis.call('HSET', TASK, 'state', 'archived')
redis.call('HDEL', TASK, 'x:lease')
freeLockOf(TASK, id)
redis.pcall('PUBLISH', ARGV[4], id)
`);

/** What one script leases or extends at most: some milliseconds in which Redis does nothing else. */
const MAX_PER_SCRIPT = 1_000;

/** Bytes of one script's reply, and of one call, except for the last task: the reply must arrive in time. */
const MAX_REPLY_BYTES = 8_388_608;
const MAX_TAKEN_BYTES = 8 * MAX_REPLY_BYTES;

export async function dequeue(
  redis: RedisAccess,
  queue: string,
  limit: number,
  leaseMs: number,
): Promise<readonly LeasedTask[]> {
  requireIntegerAtLeast('limit', 0, limit);
  requireDuration('leaseMs', leaseMs);
  const { prefix } = redis.keysOf(queue);
  return takeSome(redis, queue, limit, (count) => {
    const untilS = secondsUp(redis.wallNowMs + leaseMs);
    return redis.run(DEQUEUE, [prefix], [count, untilS, MAX_REPLY_BYTES]);
  });
}

export async function recover(
  redis: RedisAccess,
  queues: readonly string[],
  graceMs: number,
  leaseMs: number,
): Promise<readonly LeasedTask[]> {
  requireDuration('graceMs', graceMs);
  requireDuration('leaseMs', leaseMs);
  const recovered: LeasedTask[] = [];
  for (const queue of new Set(queues)) {
    const { active, lease, epoch, taskPrefix } = redis.keysOf(queue);
    const some = await takeSome(redis, queue, MAX_PER_SCRIPT, (count) => {
      const nowMs = redis.wallNowMs;
      const [endedS, untilS] = [secondsDown(nowMs - graceMs), secondsUp(nowMs + leaseMs)];
      return redis.run(RECOVER, [active, lease, epoch], [endedS, untilS, taskPrefix, count, MAX_REPLY_BYTES]);
    });
    recovered.push(...some);
  }
  return recovered;
}

export async function extendLeases(
  redis: RedisAccess,
  tasks: readonly LeasedTask[],
  leaseMs: number,
): Promise<readonly LeasedTask[]> {
  requireDuration('leaseMs', leaseMs);
  const lost = await Promise.all(
    [...byQueue(tasks)].map(([queue, some]) => extendSome(redis, queue, some, leaseMs)),
  );
  return lost.flat();
}

export async function release(redis: RedisAccess, task: LeasedTask): Promise<void> {
  const { id, queue } = task.message;
  const keys = redis.keysOf(queue);
  await runUnderLease(
    redis,
    task,
    RELEASE,
    [keys.task(id), keys.active, keys.lease, keys.pending],
    [id, task.epoch, nanosOf(redis.wallNowMs), keys.workChannel],
  );
}

/** Runs a script that returns 1, or 0 if the lease is lost. @throws EscapementError `ERR_LEASE_LOST` */
export async function runUnderLease(
  redis: RedisAccess,
  task: LeasedTask,
  script: Script,
  keys: readonly string[],
  args: readonly ScriptArgument[],
): Promise<void> {
  if ((await redis.run(script, keys, args)) !== 1) throw leaseLost(task);
}

/** Script by script, until there are enough tasks, or no more. Tasks that are leased are returned even if a later script fails. */
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
 * A task whose message cannot be decoded, or belongs to another task, is archived as it is: the scripts that settle a run would
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
    if (message === undefined) unreadable.push(archiveUnreadable(redis, queue, id, epoch));
    else into.push({ message, epoch, recoveries: numberOf(reply[at + 2]) });
  }
  await Promise.all(unreadable);
}

async function archiveUnreadable(
  redis: RedisAccess,
  queue: string,
  id: string,
  epoch: number,
): Promise<void> {
  const keys = redis.keysOf(queue);
  const { active, lease, archived, settledChannel } = keys;
  const args = [id, epoch, secondsUp(redis.wallNowMs), settledChannel];
  await redis.run(ARCHIVE_UNREADABLE, [keys.task(id), active, lease, archived], args);
}

async function extendSome(
  redis: RedisAccess,
  queue: string,
  tasks: readonly LeasedTask[],
  leaseMs: number,
): Promise<LeasedTask[]> {
  const keys = redis.keysOf(queue);
  const lost: LeasedTask[] = [];
  for (let first = 0; first < tasks.length; first += MAX_PER_SCRIPT) {
    const some = tasks.slice(first, first + MAX_PER_SCRIPT);
    const ids = some.map((task) => ({ id: task.message.id, epoch: task.epoch, task }));
    const gone = await extendLeasesOf(redis, keys, ids, redis.wallNowMs + leaseMs);
    lost.push(...gone.map(({ task }) => task));
  }
  return lost;
}

function bytesIn(reply: readonly ScriptReply[]): number {
  return reply.reduce<number>((sum, each) => sum + (Buffer.isBuffer(each) ? each.length : 0), 0);
}

function byQueue(tasks: readonly LeasedTask[]): Map<string, LeasedTask[]> {
  const queues = new Map<string, LeasedTask[]>();
  for (const task of tasks) {
    const { queue } = task.message;
    const some = queues.get(queue);
    if (some === undefined) queues.set(queue, [task]);
    else some.push(task);
  }
  return queues;
}
