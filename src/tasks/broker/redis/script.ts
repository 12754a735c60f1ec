import { createHash } from 'node:crypto';
import type { Cluster, Redis } from 'ioredis';
import { EscapementError } from '../../../core/errors.ts';

/** What ioredis sends as it is. */
export type ScriptArgument = string | number | Buffer;

/** What Redis answers, with bytes for every string. An error among the elements of a reply is that of one task. */
export type ScriptReply = Buffer | number | null | Error | ScriptReply[];

/**
 * `wrongType(kind, key)`: an error that names the key if it exists and has another type, else nil and its size.
 * `need(kind, ...)`: fails the script with that error. Both are for the time before the first write: Redis does not take back
 * what a script that fails has written. A command that reads the size costs a third of a TYPE and a comparison.
 * `readTask(key, ...)`: fields of a task, or nothing if the key has another type. Among the tasks of a list one such key must not
 * stop the others.
 * `isGhost(task)`: whether a hash that was read so, with `msg` as its first field, has no message: what a Go server makes of an
 * id without a task when it dequeues it (B3), or writes a result to (B5). It would keep its id from being used for ever.
 */
const CHECKS = `
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
local function readTask(key, ...)
  local task = redis.pcall('HMGET', key, ...)
  return task.err and {} or task
end
local function isGhost(task) return task[1] == false end
`;

/** As `wrongType` writes it. */
const WRONG_TYPE = /the Redis key '.*' must be a \w+\. It is a \w+/su;

/**
 * A Lua script: one atomic step of the broker. Each has a file of its own, which says what its KEYS and ARGV are.
 *
 * All of them check first and write last: Redis does not take back what a script that fails has written. Each checks that every
 * key it will write has the right type, because a command that finds another one fails. Hence also `pcall` for PUBLISH, which
 * comes last: a user may lack the permission, and the listeners poll as well.
 */
export class Script {
  readonly #source: string;
  readonly #sha: string;

  constructor(source: string) {
    this.#source = `${CHECKS.trim()}\n${source.trim()}`;
    this.#sha = createHash('sha1').update(this.#source).digest('hex');
  }

  /** By its digest; Redis is given the text only if it does not know it: it was started anew, or is another one. */
  async run(
    client: Redis | Cluster,
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ): Promise<ScriptReply> {
    const rest = [keys.length, ...keys, ...args];
    try {
      return (await client.callBuffer('evalsha', [this.#sha, ...rest])) as ScriptReply;
    } catch (error) {
      if (!isUnknownScript(error)) throw scriptError(error);
      return await this.#load(client, rest);
    }
  }

  async #load(client: Redis | Cluster, rest: readonly ScriptArgument[]): Promise<ScriptReply> {
    try {
      return (await client.callBuffer('eval', [this.#source, ...rest])) as ScriptReply;
    } catch (error) {
      throw scriptError(error);
    }
  }
}

/** What `wrongType` reports, without what Redis adds to the message of a script that has failed. */
export function scriptError(error: unknown): unknown {
  const found = error instanceof Error && WRONG_TYPE.exec(error.message)?.[0];
  return typeof found === 'string' ? new EscapementError('ERR_WIRE_MESSAGE', found, { cause: error }) : error;
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
