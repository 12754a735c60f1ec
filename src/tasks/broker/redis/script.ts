import { createHash } from 'node:crypto';
import type { Cluster, Redis } from 'ioredis';
import { EscapementError } from '../../../core/errors.ts';
import { LAST_DATE_MS } from '../../../core/units.ts';
import type { TaskMessage } from '../../task-message.ts';
import { decodeTaskMessage } from '../../wire/task-message-codec.ts';
import { CLOCK } from './flow.ts';
import { withLibrary } from './lua.ts';

/** An argument of a script, which ioredis sends as it is. */
export type ScriptArgument = string | number | Buffer;

/** A reply of a script, with bytes for every string. An error among the elements of a reply belongs to one task. */
export type ScriptReply = Buffer | number | null | Error | ScriptReply[];

/**
 * A Lua script: one atomic step of the broker. It stands beside the operation that runs it, under a header that lists its KEYS and
 * ARGV, one a line, and what it returns; see keys.ts for the conventions, and lua.ts for the functions that all scripts may call.
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

  constructor(source: string, inFlow?: string) {
    this.#source = withLibrary(source);
    this.#sha = createHash('sha1').update(this.#source).digest('hex');
    this.readsClock = this.#source.includes(CLOCK);
    this.inFlow = inFlow === undefined ? undefined : new Script(inFlow);
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

/* Arguments and replies. asynq counts in whole seconds; see wire/protobuf.ts for the times in messages. */

/** Rounds up a due time or a duration: no task is due early, and no duration becomes 0. */
export function secondsUp(ms: number): number {
  return Math.ceil(ms / 1_000);
}

/** Rounds down a limit in the past: it includes all that has ended. */
export function secondsDown(ms: number): number {
  return Math.floor(ms / 1_000);
}

/** Returns digits: a number is not precise enough. */
export function nanosOf(ms: number): string {
  return `${Math.floor(ms)}000000`;
}

/** Returns the milliseconds of a score. A Go program may have written a time that a `Date` cannot represent. */
export function msOfSeconds(seconds: number): number {
  return Math.min(seconds * 1_000, LAST_DATE_MS);
}

/** Returns a list; an empty one for a missing reply. */
export function listOf(reply: ScriptReply | undefined): ScriptReply[] {
  return Array.isArray(reply) ? reply : [];
}

/** Yields the rows of a reply that has `width` values per row, behind the first `from` values. */
export function* rowsOf(
  reply: readonly ScriptReply[],
  from: number,
  width: number,
): Generator<ScriptReply[]> {
  for (let at = from; at < reply.length; at += width) yield reply.slice(at, at + width);
}

/** Returns a number, which may be in digits; 0 for a missing reply. */
export function numberOf(reply: ScriptReply | undefined): number {
  if (reply === null || reply === undefined) return 0;
  return Number(Buffer.isBuffer(reply) ? reply.toString('latin1') : reply);
}

/** Returns UTF-8 text; empty for a missing reply. */
export function textOf(reply: ScriptReply | undefined): string {
  return Buffer.isBuffer(reply) ? reply.toString() : '';
}

/** Returns a copy of the bytes: a reply is a view of everything that arrived with it. Undefined for a missing reply. */
export function bytesOf(reply: ScriptReply | undefined): Uint8Array | undefined {
  return Buffer.isBuffer(reply) ? new Uint8Array(reply) : undefined;
}

const NO_BYTES = new Uint8Array(0);

/**
 * Returns the message of the task with that id in that queue.
 *
 * @throws EscapementError `ERR_WIRE_MESSAGE` - it cannot be decoded, or is the message of another task.
 */
export function messageFor(queue: string, id: string, reply: ScriptReply | undefined): TaskMessage {
  const message = decodeTaskMessage(bytesOf(reply) ?? NO_BYTES);
  if (message.id === id && message.queue === queue) return message;
  const other = `task '${message.id}' of queue '${message.queue}'`;
  const problem = `task '${id}' of queue '${queue}' has the message of ${other}`;
  throw new EscapementError('ERR_WIRE_MESSAGE', problem);
}

/** As {@link messageFor}; undefined if it cannot be decoded, or is the message of another task. */
export function messageIfOf(
  queue: string,
  id: string,
  reply: ScriptReply | undefined,
): TaskMessage | undefined {
  try {
    return messageFor(queue, id, reply);
  } catch {
    return undefined;
  }
}

/** As {@link messageFor}; for a message that cannot be decoded a stand-in with its bytes as payload, so that inspectors can list it. */
export function messageOrStandIn(queue: string, id: string, reply: ScriptReply | undefined): TaskMessage {
  try {
    return messageFor(queue, id, reply);
  } catch (error) {
    if (!(error instanceof EscapementError) || error.code !== 'ERR_WIRE_MESSAGE') throw error;
    const payload = bytesOf(reply) ?? NO_BYTES;
    return { ...decodeTaskMessage(NO_BYTES), id, queue, payload, lastError: error.message };
  }
}
