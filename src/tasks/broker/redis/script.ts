import { createHash } from 'node:crypto';
import type { Cluster, Redis } from 'ioredis';
import { CLOCK, FLOW_LIBRARY } from './flow.ts';
import { QUEUE_KEYS, QUEUES_KEY } from './keys.ts';

/** Gives scripts of a queue the beginning of its keys. */
const USE_PREFIX = 'local PREFIX = KEYS[1]';

/**
 * End of a key that never exists, the last one of a script of a queue in a cluster. While a slot moves, its node redirects a script none of
 * whose KEYS it has, and the next node refuses one that has several KEYS and lacks some (`TRYAGAIN`). With one, it would run the script on
 * the keys that have arrived by then, and keys that the script created would stop the move.
 */
const MOVING = 'x:moving';

/** An argument of a script, which ioredis sends as it is. */
export type ScriptArgument = string | number | Buffer;

/** A reply of a script, with bytes for every string. An error among the elements of a reply belongs to one task. */
export type ScriptReply = Buffer | number | null | Error | ScriptReply[];

/**
 * A Lua script: one atomic step of the broker. It stands beside the operation that runs it, under a header that lists its KEYS and
 * ARGV, one a line, and what it returns; see keys.ts for the conventions, and `LIBRARY` below for
 * the functions that all scripts may call.
 *
 * Every script checks first and writes last: Redis does not undo the writes of a script that fails. Each checks the type of every
 * key that it writes, because a command fails at a key of another type. For the same reason PUBLISH, which comes last, is a
 * `pcall`: the user may lack the permission, and listeners poll as well.
 */
export class Script {
  /** The variant for queues with keys or limits; undefined if there is none. */
  readonly inFlow: Script | undefined;
  /** Whether its last argument is the time: see `nowMs` in flow.ts. */
  readonly readsClock: boolean;
  readonly #source: string;
  readonly #sha: string;
  readonly #isOfQueue: boolean;
  /** Where calls are sending the text: the first key in a cluster, else ''. */
  readonly #sending = new Set<string>();

  constructor(source: string) {
    this.#source = withLibrary(withoutFlow(source));
    this.#sha = createHash('sha1').update(this.#source).digest('hex');
    this.#isOfQueue = this.#source.includes(USE_PREFIX);
    this.readsClock = this.#source.includes(CLOCK);
    const inFlow = withFlow(source);
    this.inFlow = inFlow === source ? undefined : new Script(inFlow);
  }

  /**
   * Runs it by its digest. Redis does not have the script after a restart or a failover: then one call sends the text. The others that have
   * failed meanwhile run it by its digest again, behind that call on the connection; in a cluster, those with the same first key.
   */
  async run(
    client: Redis | Cluster,
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ): Promise<ScriptReply> {
    const named = client.isCluster && this.#isOfQueue ? [...keys, `${keys[0] ?? ''}${MOVING}`] : keys;
    const rest = [named.length, ...named, ...args];
    const node = client.isCluster ? (keys[0] ?? '') : '';
    let reply = await this.#runByDigest(client, rest);
    if (reply === undefined && this.#sending.has(node)) reply = await this.#runByDigest(client, rest);
    if (reply !== undefined) return reply;
    this.#sending.add(node);
    try {
      return (await client.callBuffer('eval', [this.#source, ...rest])) as ScriptReply;
    } finally {
      // Failures of calls before it may have come in the same turn, and be handled only now.
      setImmediate(() => this.#sending.delete(node));
    }
  }

  /** Returns undefined if Redis does not have the script. */
  async #runByDigest(
    client: Redis | Cluster,
    rest: readonly ScriptArgument[],
  ): Promise<ScriptReply | undefined> {
    try {
      return (await client.callBuffer('evalsha', [this.#sha, ...rest])) as ScriptReply;
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('NOSCRIPT')) return undefined;
      throw error;
    }
  }
}

/* What one script does at most: in these milliseconds Redis does nothing else. */

/** Number of tasks, keys or groups that are read, or of tasks that are leased. */
export const MOST_READ = 1_000;

/** Number of tasks that are added, moved, changed or removed. */
export const MOST_CHANGED = 500;

/** Bytes of messages and results that are written, or read by a scan or a copy; except for the last task. */
export const MOST_BYTES = 1_048_576;

/** Bytes of a reply, except for the last task: it must arrive in time. */
export const MOST_REPLY_BYTES = 8_388_608;

/*
 * A script may have two variants, written as a diff: a line that begins with `+ ` is only in the variant for queues with keys or limits,
 * one that begins with `- ` only in the other.
 */

export function withoutFlow(source: string): string {
  return source.replaceAll(/^\+ .*\n/gmu, '').replaceAll(/^- /gmu, '');
}

export function withFlow(source: string): string {
  return source.replaceAll(/^- .*\n/gmu, '').replaceAll(/^\+ /gmu, '');
}

/** Functions that scripts of several topics share. Each part may use those above it. */
const LIBRARY: readonly string[] = [
  `local function queueName() return string.match(PREFIX, '^asynq:{(.*)}:$') end`,

  // An error that names the key if it exists and has another type, else nil and its size. A command that reads the size costs a
  // third of TYPE and a comparison.
  `
local SIZES = { list = 'LLEN', zset = 'ZCARD', set = 'SCARD', hash = 'HLEN', string = 'STRLEN' }
local function wrongType(kind, key)
  local size = redis.pcall(SIZES[kind], key)
  if type(size) == 'number' then return nil, size end
  if not string.find(size.err, 'WRONGTYPE', 1, true) then return size end
  local is = redis.call('TYPE', key).ok
  return { err = "ERR the Redis key '" .. key .. "' must be a " .. kind .. '. It is a ' .. is }
end`,

  // Fails the script with that error, or returns the size of the last key.
  `
local function need(kind, ...)
  local wrong, size
  for _, key in ipairs({ ... }) do
    wrong, size = wrongType(kind, key)
    if wrong then error(string.gsub(wrong.err, '^ERR ', ''), 0) end
  end
  return size
end`,

  // Fields of a task, or {} if its key has another type: one such key must not stop the other tasks of a list.
  `
local function readTask(id, ...)
  local task = redis.pcall('HMGET', TASK .. id, ...)
  return task.err and {} or task
end`,

  // Whether a hash that was read with `msg` as its first field has no message. A Go server creates such a hash when it dequeues an id
  // without a task, or writes a result to one. It would block its id for ever.
  `local function isGhost(task) return task[1] == false end`,

  // Deletes a unique lock if the task still holds it. The lock is a key that a client has written. If it is not the key of a lock, it
  // must not stop a script in the middle of its writes, which may belong to other tasks.
  `
local function freeLock(lock, id)
  if lock and lock ~= '' and redis.pcall('GET', lock) == id then redis.call('DEL', lock) end
end`,

  // The same for the lock that the task's hash names. Where asynq adds a task with a lock to a group, only the msg names the lock, as
  // field 10, which is `82` and a length.
  `
local function lockIn(msg)
  local at = 1
  local function varint()
    local value, factor, byte = 0, 1
    repeat
      byte = string.byte(msg, at) or 0
      value, factor, at = value + byte % 128 * factor, factor * 128, at + 1
    until byte < 128
    return value
  end
  while at <= #msg do
    local tag = varint()
    local value = varint()
    if tag % 8 == 2 then
      if tag == 82 then return string.sub(msg, at, at + value - 1) end
      at = at + value
    elseif tag % 8 ~= 0 then return nil end
  end
end
local function freeLockOf(id)
  local fields = readTask(id, 'unique_key', 'group', 'msg')
  freeLock(fields[1] or (fields[2] and fields[3] and lockIn(fields[3])), id)
end`,

  // Whether a task is in a set that is being aggregated: nothing else may change it.
  `
local function isHeld(id)
  need('zset', SETS)
  for _, set in ipairs(redis.call('ZRANGE', SETS, 0, -1)) do
    need('zset', set)
    if redis.call('ZSCORE', set, id) then return true end
  end
  return false
end`,

  // A task's lease is `EPOCH:SCORE` in the field `x:lease` of its hash, where SCORE is its score in the ZSET of leases. A Go server
  // that leases the task again writes another score and does not write the field, so the value that is left there no longer matches.
  // `needLeased`: fails if a key of a leased task has a wrong type.
  `
local function needLeased(id)
  need('hash', TASK .. id)
  need('list', ACTIVE)
  need('zset', LEASE)
end`,
  // Whether that lease is the task's present one.
  `
local function holds(id, epoch)
  local score = redis.call('ZSCORE', LEASE, id)
  return score and redis.pcall('HGET', TASK .. id, 'x:lease') == epoch .. ':' .. score
end`,
  `
local function endLease(id)
  redis.call('LREM', ACTIVE, 1, id)
  redis.call('ZREM', LEASE, id)
  redis.call('HDEL', TASK .. id, 'x:lease')
end`,

  // A Redis whose memory is full refuses a script at its first write, unless that command can only free memory. This one does nothing,
  // so tasks can end and leases can be extended in the memory that is left: only that frees memory.
  `local function writeAnyway(zset) redis.call('ZREMRANGEBYRANK', zset, 1, 0) end`,

  `
local function makePending(id, nowNs)
  redis.call('HSET', TASK .. id, 'state', 'pending', 'pending_since', nowNs)
end`,

  // Adds a task to the archive and frees its lock: its recoveries are over. The caller removes it from where it was.
  `
local function archive(id, now)
  redis.call('ZADD', ARCHIVED, now, id)
  redis.call('HSET', TASK .. id, 'state', 'archived')
  redis.call('HDEL', TASK .. id, 'x:recoveries')
  freeLockOf(id)
end`,

  // Removes ids from a zset, and their tasks with their locks if they are in that state: the id of a removed task may belong to a new
  // task.
  `
local function giveUp(source, state, ids)
  for _, id in ipairs(ids) do
    local task = readTask(id, 'msg', 'state')
    if isGhost(task) or task[2] == state then
      freeLockOf(id)
      redis.call('DEL', TASK .. id)
    end
    redis.call('ZREM', source, id)
  end
  return #ids
end`,

  // Removes archived tasks that are too old or too many, and returns how many.
  `
local function trim(cutoff, max, limit)
  local old = redis.call('ZRANGEBYSCORE', ARCHIVED, '-inf', cutoff, 'LIMIT', 0, limit)
  local count = giveUp(ARCHIVED, 'archived', old)
  local over = math.min(redis.call('ZCARD', ARCHIVED) - max, limit - count)
  if over <= 0 then return count end
  return count + giveUp(ARCHIVED, 'archived', redis.call('ZRANGE', ARCHIVED, 0, over - 1))
end`,

  // Removes the name of a group that has no tasks. A name is in the SET of groups while the group has tasks, and also while scheduled
  // tasks will enter it: the forwarder of a Go server moves them there and does not add the name, and then no server would aggregate
  // them. Their ids are in `x:later:GROUP`, a SET that expires, because a Go server that moves or deletes such a task does not update it.
  `
local function dropGroup(group)
  if redis.call('EXISTS', GROUP .. group, LATER .. group) == 0 then redis.call('SREM', GROUPS, group) end
end`,
  // A task of a group, or of none, is no longer scheduled.
  `
local function leaveLater(group, id)
  if not group or group == '' then return end
  redis.pcall('SREM', LATER .. group, id)
  dropGroup(group)
end`,
  // The ZSET of a state; nil if it has none.
  `
local function zsetOf(state, group)
  if state == 'aggregating' then return GROUP .. group end
  return ({ scheduled = SCHEDULED, retry = RETRY, archived = ARCHIVED, completed = COMPLETED })[state]
end`,
  ...FLOW_LIBRARY,
  // Removes a task from the key of its state. It is not active, and not held. `key` is the field `x:key` of its hash, or false.
  `
local function leave(id, state, group, key)
  local zset = zsetOf(state, group)
  if zset then redis.call('ZREM', zset, id) elseif state == 'pending' then leavePending(id, key) end
  if state == 'aggregating' then dropGroup(group) elseif state == 'scheduled' then leaveLater(group, id) end
end`,
];

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

interface Part {
  readonly source: string;
  readonly use: RegExp;
}

const FUNCTIONS: readonly Part[] = LIBRARY.map((source) => {
  const names = Array.from(source.matchAll(/^local function (\w+)/gmu), ([, name = '']) => name);
  return { source: source.trim(), use: new RegExp(String.raw`\b(?:${names.join('|')})\(`, 'u') };
});

/** What scripts may use. A part may use those before it, so the last one is added first. */
const IN_FRONT: readonly Part[] = [
  { source: USE_PREFIX, use: /\bPREFIX\b/u },
  { source: `local QUEUES = KEYS[2] == '${QUEUES_KEY}' and KEYS[2]`, use: /\bQUEUES\b/u },
  ...Object.values(QUEUE_KEYS).map(([name, rest]) => ({
    source: `local ${name} = PREFIX .. '${rest}'`,
    use: new RegExp(String.raw`\b${name}\b`, 'u'),
  })),
  ...FUNCTIONS,
].reverse();

/**
 * Returns the text of a script with what it uses in front: functions of the library, the keys of the queue under the names of
 * QUEUE_KEYS, `PREFIX`, the first of its KEYS, and `QUEUES`, the SET of all queues, if that is the second one; else false.
 */
function withLibrary(script: string): string {
  return IN_FRONT.reduce(
    (text, { source, use }) => (use.test(text) ? `${source}\n${text}` : text),
    script.trim(),
  );
}
