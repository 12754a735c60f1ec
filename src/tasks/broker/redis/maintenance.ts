import type { RedisAccess, RedisOperations } from './redis-access.ts';
import { listOf, nanosOf, numberOf, Script, secondsDown, secondsUp } from './script.ts';
import { archiveLimits } from './settle.ts';

/** The text of FORWARD. @param add - how a task becomes pending. @param begin, end - what is done besides. */
function forward(begin: string, add: string, end: string): string {
  return `
local limit, due = tonumber(ARGV[4]), {}
for _, state in ipairs({ 'scheduled', 'retry' }) do
  local source, ids = PREFIX .. state, {}
  if need('zset', source) > 0 then
    ids = redis.call('ZRANGEBYSCORE', source, '-inf', ARGV[1], 'LIMIT', 0, limit - #due)
  end
  for _, id in ipairs(ids) do
    local task = readTask(id, 'msg', 'state', 'group')
    local group = task[1] and task[2] == state and task[3] or ''
    if group ~= '' then need('zset', GROUP .. group) end
    due[#due + 1] = { id = id, task = task, source = source, state = state, group = group }
  end
end
if #due == 0 then return { 0, 0 } end
need('set', GROUPS)
${begin}
local moved, pushed, grown = 0, 0, {}
local function move(id, group, state)
  moved = moved + 1
  if group ~= '' then
    redis.call('ZADD', GROUP .. group, ARGV[3], id)
    redis.call('SADD', GROUPS, group)
    redis.call('HSET', TASK .. id, 'state', 'aggregating')
    if state == 'scheduled' then leaveLater(group, id) end
    grown[group] = true
  else
    ${add}
    makePending(id, ARGV[2])
    pushed = pushed + 1
  end
end
for _, one in ipairs(due) do
  redis.call('ZREM', one.source, one.id)
  if one.task[1] and one.task[2] == one.state then move(one.id, one.group, one.state)
  elseif isGhost(one.task) then redis.call('DEL', TASK .. one.id) end
end
${end}
for group in pairs(grown) do redis.pcall('PUBLISH', WORK, group) end
return { moved, #due }
`;
}

const ADD_IN_FLOW = `local place = enter(id, keyIn(readTask(id, 'x:key')[1]), false)
    if place then redis.call('HSET', TASK .. id, 'x:key', place) end`;

/**
 * Moves due tasks to the pending list, or into their group, whose name is added: asynq leaves it out, and no server aggregates
 * such a group until a new task enters it. Ids without a task, or whose task is elsewhere, are dropped.
 *
 * ARGV[1]  now
 * ARGV[2]  now, in nanoseconds
 * ARGV[3]  score in a group
 * ARGV[4]  number of tasks
 *
 * Returns the number of tasks that were moved, and the number of ids that were read: there may be more if that is ARGV[4].
 */
export const FORWARD = new Script(
  forward(
    "local isIdle = need('list', PENDING) == 0",
    "redis.call('LPUSH', PENDING, id)",
    "if pushed > 0 and isIdle then redis.pcall('PUBLISH', WORK, '') end",
  ),
  forward("need('list', PENDING, ACTIVE)\nneedFlow()", ADD_IN_FLOW, 'finishEntering()'),
);

/**
 * Removes completed tasks whose retention has ended, and archived ones that are too old or too many.
 *
 * ARGV[1]  now
 * ARGV[2]  number of tasks
 * ARGV[3]  tasks that were archived by then are given up
 * ARGV[4]  number of tasks that the archive keeps
 *
 * Returns the number of tasks that were removed.
 */
export const DELETE_EXPIRED = new Script(`
local completed, archived = need('zset', COMPLETED), need('zset', ARCHIVED)
local limit, ids = tonumber(ARGV[2]), {}
if completed > 0 then ids = redis.call('ZRANGEBYSCORE', COMPLETED, '-inf', ARGV[1], 'LIMIT', 0, limit) end
giveUp(COMPLETED, 'completed', ids)
if #ids > 0 then redis.pcall('PUBLISH', SETTLED, table.concat(ids, '\\0')) end
if archived == 0 then return #ids end
return #ids + trim(ARGV[3], tonumber(ARGV[4]), limit - #ids)
`);

/** What one script moves at most: some milliseconds in which Redis does nothing else. */
const TASKS_PER_SCRIPT = 500;

export const MAINTENANCE = {
  /** The earliest first. O(due tasks). */
  async forward(redis, queues) {
    const counts = await Promise.all([...new Set(queues)].map((queue) => forwardQueue(redis, queue)));
    return counts.reduce((sum, count) => sum + count, 0);
  },

  async deleteExpired(redis, queues, limit) {
    let count = 0;
    for (const queue of new Set(queues)) {
      const nowMs = redis.wallNowMs;
      const args = [secondsDown(nowMs), limit, ...archiveLimits(redis, nowMs)];
      count += numberOf(await redis.runIn(queue, DELETE_EXPIRED, args));
    }
    return count;
  },
} satisfies RedisOperations;

async function forwardQueue(redis: RedisAccess, queue: string): Promise<number> {
  let count = 0;
  for (let read = TASKS_PER_SCRIPT; read === TASKS_PER_SCRIPT;) {
    const nowMs = redis.wallNowMs;
    const args = [secondsDown(nowMs), nanosOf(nowMs), secondsUp(nowMs), TASKS_PER_SCRIPT];
    const reply = listOf(await redis.runIn(queue, FORWARD, args));
    count += numberOf(reply[0]);
    read = numberOf(reply[1]);
  }
  return count;
}
