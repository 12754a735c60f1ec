import type { LeasedTask } from '../broker.ts';
import { dequeueInFlow } from './dequeue-in-flow.ts';
import type { RedisAccess, RedisOperations } from './redis-access.ts';
import { itemsOf, messageIfOf, numberOf, secondsUp, textOf } from './replies.ts';
import { MOST_READ, MOST_REPLY_BYTES, NEXT_EPOCH, Script, type ScriptReply } from './script.ts';
import { ARCHIVE_UNREADABLE } from './settle.ts';

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

/** How long it is known whether a queue has limits or keys, in milliseconds: another broker may set them. */
export const FLOW_KNOWN_MS = 500;

/** Bytes of one call, except for the last task. */
const MAX_TAKEN_BYTES = 8 * MOST_REPLY_BYTES;

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
    const args = [count, secondsUp(redis.wallNowMs + leaseMs), MOST_REPLY_BYTES];
    const reply = byTurns ? await dequeueInFlow(redis, queue, args) : undefined;
    byTurns = reply !== undefined;
    return reply ?? redis.runIn(queue, DEQUEUE, args);
  });
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
    const count = Math.min(left, MOST_READ);
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
