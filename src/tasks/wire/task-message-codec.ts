import type { TaskMessage } from '../task-message.ts';
import { TaskMessageSchema } from './asynq-messages.gen.ts';
import { decodeMessage, encodeMessage } from './protobuf.ts';
import { writeTaskMessage } from './task-message-writer.ts';
import { ANY_TIME_MS, msOf, secondsOf, wireTimeoutOf } from './wire-time.ts';

/** What the field `msg` of a task's hash holds. @throws EscapementError `ERR_WIRE_MESSAGE` - it cannot be said so. */
export function encodeTaskMessage(message: TaskMessage): Uint8Array {
  return writeTaskMessage(message) ?? encodeAnyTaskMessage(message);
}

/** The same by the library, for whatever there may be in a message. */
export function encodeAnyTaskMessage(message: TaskMessage): Uint8Array {
  return encodeMessage(TaskMessageSchema, {
    type: message.type,
    payload: message.payload,
    id: message.id,
    queue: message.queue,
    retry: message.maxRetry,
    retried: message.retried,
    // What a handler throws may be no Unicode. A failure that cannot be written would leave the task with its lease.
    errorMsg: message.lastError.toWellFormed(),
    timeout: secondsOf(wireTimeoutOf(message)),
    deadline: secondsOf(message.deadlineMs),
    uniqueKey: message.uniqueKey,
    lastFailedAt: secondsOf(message.lastFailedAtMs),
    retention: secondsOf(message.retentionMs),
    completedAt: secondsOf(message.completedAtMs),
    groupKey: message.group,
    headers: message.headers,
  });
}

/** The payload is a view of the bytes. @throws EscapementError `ERR_WIRE_MESSAGE` - they are no task. */
export function decodeTaskMessage(bytes: Uint8Array): TaskMessage {
  const message = decodeMessage(TaskMessageSchema, bytes);
  const timeoutMs = msOf(message.timeout);
  return {
    id: message.id,
    type: message.type,
    queue: message.queue,
    payload: message.payload,
    headers: message.headers,
    maxRetry: message.retry,
    retried: message.retried,
    lastError: message.errorMsg,
    lastFailedAtMs: msOf(message.lastFailedAt),
    timeoutMs: timeoutMs < ANY_TIME_MS ? timeoutMs : 0,
    deadlineMs: msOf(message.deadline),
    uniqueKey: message.uniqueKey,
    retentionMs: msOf(message.retention),
    completedAtMs: msOf(message.completedAt),
    group: message.groupKey,
  };
}
