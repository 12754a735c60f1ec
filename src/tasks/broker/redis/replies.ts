import { hasCode } from '../../../core/errors.ts';
import { LAST_DATE_MS, SECOND_MS } from '../../../core/units.ts';
import type { TaskMessage } from '../../task-options.ts';
import { decodeTaskMessage, wireError } from '../../wire/message-codec.ts';
import type { ScriptReply } from './script.ts';

/* Arguments and replies of scripts. asynq counts in whole seconds; see wire/message-codec.ts for the times in messages. */

/** Rounds up a due time or a duration: no task is due early, and no duration becomes 0. */
export function secondsUp(ms: number): number {
  return Math.ceil(ms / SECOND_MS);
}

/** Rounds down a limit in the past: it includes all that has ended. */
export function secondsDown(ms: number): number {
  return Math.floor(ms / SECOND_MS);
}

/** Returns digits: a number is not precise enough. */
export function nanosOf(ms: number): string {
  return `${Math.floor(ms)}000000`;
}

/** Returns the milliseconds of a score. A Go program may have written a time that a `Date` cannot represent. */
export function msOfSeconds(seconds: number): number {
  return Math.min(seconds * SECOND_MS, LAST_DATE_MS);
}

/** Returns a list; an empty one for a missing reply. */
export function itemsOf(reply: ScriptReply | undefined): ScriptReply[] {
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
  throw wireError(`task '${id}' of queue '${queue}' has the message of ${other}`);
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
    if (!hasCode(error, 'ERR_WIRE_MESSAGE')) throw error;
    const payload = bytesOf(reply) ?? NO_BYTES;
    return { ...decodeTaskMessage(NO_BYTES), id, queue, payload, lastError: error.message };
  }
}
