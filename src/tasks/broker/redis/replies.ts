import { EscapementError } from '../../../core/errors.ts';
import { decodeTaskMessage } from '../../wire/task-message-codec.ts';
import type { TaskMessage } from '../../task-message.ts';
import type { ScriptReply } from './script.ts';

/* What scripts answer, taken apart. */

/** A list; Redis has none that is missing. */
export function listOf(reply: ScriptReply | undefined): ScriptReply[] {
  return Array.isArray(reply) ? reply : [];
}

/** A number, or the digits of one; 0 for nothing. */
export function numberOf(reply: ScriptReply | undefined): number {
  if (reply === null || reply === undefined) return 0;
  return Number(Buffer.isBuffer(reply) ? reply.toString('latin1') : reply);
}

/** UTF-8. */
export function textOf(reply: ScriptReply | undefined): string {
  return Buffer.isBuffer(reply) ? reply.toString() : '';
}

/** Bytes of its own: a reply is a view of all that came in with it. Undefined for nothing. */
export function bytesOf(reply: ScriptReply | undefined): Uint8Array | undefined {
  return Buffer.isBuffer(reply) ? new Uint8Array(reply) : undefined;
}

/** @throws EscapementError `ERR_WIRE_MESSAGE` - it is no task. */
export function messageOf(reply: ScriptReply | undefined): TaskMessage {
  return decodeTaskMessage(bytesOf(reply) ?? new Uint8Array(0));
}

/**
 * The message of the task that is kept under that id in that queue.
 *
 * @throws EscapementError `ERR_WIRE_MESSAGE` - it cannot be read, or is that of another task.
 */
export function messageFor(queue: string, id: string, reply: ScriptReply | undefined): TaskMessage {
  const message = messageOf(reply);
  if (message.id === id && message.queue === queue) return message;
  const of = `task '${message.id}' of queue '${message.queue}'`;
  throw new EscapementError('ERR_WIRE_MESSAGE', `task '${id}' of queue '${queue}' has the message of ${of}`);
}

/** As `messageFor`; undefined if it cannot be read, or is that of another task. */
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

/** A task that somebody has written who cannot: it can be seen, and removed. Its payload is all there was. */
export function unreadable(
  queue: string,
  id: string,
  bytes: Uint8Array | undefined,
  error: unknown,
): TaskMessage {
  if (!(error instanceof EscapementError) || error.code !== 'ERR_WIRE_MESSAGE') throw error;
  return {
    id,
    type: '',
    queue,
    payload: bytes ?? new Uint8Array(0),
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
