import { createHash } from 'node:crypto';

/** Returns the beginning of every key of a queue in Redis: see broker/redis/keys.ts. */
export function queuePrefixOf(queue: string): string {
  return `asynq:{${queue}}:`;
}

/** What follows the prefix of the queue in the key of a unique lock. */
export const LOCK_PREFIX = 'unique:';

/** What of a task decides whether it is a duplicate of another one, if it has no key for that. */
export interface UniqueSource {
  readonly type: string;
  readonly payload: Uint8Array;
  readonly hasPayload: boolean;
}

/**
 * Returns the name of the unique lock of a task: its key in Redis, which the message has too, also in the embedded broker. As in asynq,
 * two tasks of a queue are duplicates if their types and the bytes of their payloads are equal. With a key of their own, which asynq
 * does not have, there is no type, so that no other lock can be the same.
 */
export function uniqueLockOf(queue: string, uniqueKey: string | undefined, source: UniqueSource): string {
  const { type, payload, hasPayload } = source;
  const prefix = queuePrefixOf(queue) + LOCK_PREFIX;
  if (uniqueKey !== undefined) return `${prefix}:${md5(uniqueKey)}`;
  return `${prefix}${type}:${hasPayload ? md5(payload) : ''}`;
}

function md5(data: string | Uint8Array): string {
  return createHash('md5').update(data).digest('hex');
}
