import { EscapementError } from '../../../core/errors.ts';
import type { TaskMessage } from '../../task-message.ts';
import { decodeTaskMessage, encodeTaskMessage } from '../../wire/task-message-codec.ts';
import type { ScriptReply } from './script.ts';

/* What scripts take and return. asynq counts in whole seconds; see wire-time.ts for the times in messages. */

/** For a due time or a duration: no task is due early, and no duration becomes 0. */
export function secondsUp(ms: number): number {
  return Math.ceil(ms / 1_000);
}

/** For a limit in the past: what has ended by now is included. */
export function secondsDown(ms: number): number {
  return Math.floor(ms / 1_000);
}

/** As digits: a number is not precise enough. */
export function nanosOf(ms: number): string {
  return `${Math.floor(ms)}000000`;
}

/** The last time that a `Date` can represent: a Go program may have written a later one. */
const LAST_MS = 8_640_000_000_000_000;

/** Milliseconds of a score. */
export function msOfSeconds(seconds: number): number {
  return Math.min(seconds * 1_000, LAST_MS);
}

/** The field `msg` of a task. */
export function encoded(message: TaskMessage): Buffer {
  const { buffer, byteOffset, byteLength } = encodeTaskMessage(message);
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** A list; an empty one for a missing reply. */
export function listOf(reply: ScriptReply | undefined): ScriptReply[] {
  return Array.isArray(reply) ? reply : [];
}

/** A number, or the digits of one; 0 for a missing reply. */
export function numberOf(reply: ScriptReply | undefined): number {
  if (reply === null || reply === undefined) return 0;
  return Number(Buffer.isBuffer(reply) ? reply.toString('latin1') : reply);
}

/** UTF-8 text; empty for a missing reply. */
export function textOf(reply: ScriptReply | undefined): string {
  return Buffer.isBuffer(reply) ? reply.toString() : '';
}

/** A copy of the bytes: a reply is a view of everything that arrived with it. Undefined for a missing reply. */
export function bytesOf(reply: ScriptReply | undefined): Uint8Array | undefined {
  return Buffer.isBuffer(reply) ? new Uint8Array(reply) : undefined;
}

/**
 * The message of the task with that id in that queue.
 *
 * @throws EscapementError `ERR_WIRE_MESSAGE` - it cannot be decoded, or is the message of another task.
 */
export function messageFor(queue: string, id: string, reply: ScriptReply | undefined): TaskMessage {
  const message = decodeTaskMessage(bytesOf(reply) ?? new Uint8Array(0));
  if (message.id === id && message.queue === queue) return message;
  const other = `task '${message.id}' of queue '${message.queue}'`;
  throw new EscapementError(
    'ERR_WIRE_MESSAGE',
    `task '${id}' of queue '${queue}' has the message of ${other}`,
  );
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
    return {
      id,
      type: '',
      queue,
      payload: bytesOf(reply) ?? new Uint8Array(0),
      headers: {},
      maxRetry: 0,
      retried: 0,
      lastError: error.message,
      lastFailedAtMs: 0,
      timeoutMs: 0,
      deadlineMs: 0,
      uniqueKey: '',
      retentionMs: 0,
      completedAtMs: 0,
      group: '',
    };
  }
}
