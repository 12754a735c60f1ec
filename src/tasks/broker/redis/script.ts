import { createHash } from 'node:crypto';
import type { Cluster, Redis } from 'ioredis';

/** What ioredis sends without a conversion of ours. */
export type ScriptArgument = string | number | Buffer;

/** What Redis returns, with bytes for every string. An error among the elements of a reply belongs to one task. */
export type ScriptReply = Buffer | number | null | Error | ScriptReply[];

/**
 * The beginning of every script.
 *
 * `PREFIX`: the first of its KEYS, in a script of a queue the beginning of all keys of the queue; `TASK`: that of its tasks.
 * `queueName()`: the name of the queue.
 * `wrongType(kind, key)`: an error that names the key if it exists and has another type, else nil and its size.
 * `need(kind, ...)`: fails the script with that error, or returns the size of the last key. Both are for the time before the
 * first write: Redis does not undo the writes of a script that fails. A command that reads the size costs a third of TYPE and a
 * comparison.
 * `readTask(id, ...)`: fields of a task, or {} if its key has another type: one such key must not stop the other tasks of a list.
 * `isGhost(task)`: whether a hash that was read so, with `msg` as its first field, has no message. A Go server creates such a hash
 * when it dequeues an id without a task, or writes a result to one. It would block its id for ever.
 */
const PREAMBLE = `
local PREFIX = KEYS[1]
local TASK = PREFIX .. 't:'
local function queueName() return string.match(PREFIX, '^asynq:{(.*)}:$') end
local SIZES = { list = 'LLEN', zset = 'ZCARD', set = 'SCARD', hash = 'HLEN', string = 'STRLEN' }
local function wrongType(kind, key)
  local size = redis.pcall(SIZES[kind], key)
  if type(size) == 'number' then return nil, size end
  if not string.find(size.err, 'WRONGTYPE', 1, true) then return size end
  local is = redis.call('TYPE', key).ok
  return { err = "ERR the Redis key '" .. key .. "' must be a " .. kind .. '. It is a ' .. is }
end
local function need(kind, ...)
  local wrong, size
  for _, key in ipairs({ ... }) do
    wrong, size = wrongType(kind, key)
    if wrong then error(string.gsub(wrong.err, '^ERR ', ''), 0) end
  end
  return size
end
local function readTask(id, ...)
  local task = redis.pcall('HMGET', TASK .. id, ...)
  return task.err and {} or task
end
local function isGhost(task) return task[1] == false end
`;

/**
 * A Lua script: one atomic step of the broker. It stands beside the function that runs it, under a header that lists its KEYS and
 * ARGV, one a line, and what it returns; see keys.ts for the conventions.
 *
 * Every script checks first and writes last: Redis does not undo the writes of a script that fails. Each checks the type of every
 * key that it writes, because a command fails at a key of another type. For the same reason PUBLISH, which comes last, is a
 * `pcall`: the user may lack the permission, and listeners poll as well.
 */
export class Script {
  readonly #source: string;
  readonly #sha: string;

  constructor(source: string) {
    this.#source = `${PREAMBLE.trim()}\n${source.trim()}`;
    this.#sha = createHash('sha1').update(this.#source).digest('hex');
  }

  /** Runs it by its digest; sends the text only if Redis does not have it, after a restart or a failover. */
  async run(
    client: Redis | Cluster,
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ): Promise<ScriptReply> {
    const rest = [keys.length, ...keys, ...args];
    try {
      return (await client.callBuffer('evalsha', [this.#sha, ...rest])) as ScriptReply;
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return (await client.callBuffer('eval', [this.#source, ...rest])) as ScriptReply;
    }
  }
}
