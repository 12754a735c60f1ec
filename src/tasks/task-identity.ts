import { createHash, randomFillSync } from 'node:crypto';

/* The identity of a task: its id, and the name of its unique lock. */

const ID_BYTES = 16;
const ID_LENGTH = 36;
/** Number of ids for which random bytes are fetched at once: a call for each id would cost more than the rest. */
const IDS_PER_FETCH = 256;

/** Position of the two digits of each byte: `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`. */
const PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34] as const;
const DIGITS = Buffer.from('0123456789abcdef');

/** Bytes of the version, which is 4, and of the variant, which is that of RFC 9562. */
const VERSION_BYTE = 6;
const VARIANT_BYTE = 8;

const random = Buffer.alloc(ID_BYTES * IDS_PER_FETCH);
const text = Buffer.alloc(ID_LENGTH, '-');
let next = random.length;

/**
 * Returns a random UUID, as `crypto.randomUUID` does, but as a flat string. `randomUUID` concatenates 20 strings, and V8 keeps them,
 * in about 500 bytes, until the first access to a character: an eighth of everything that enqueueing and processing a task
 * allocates. `npm run bench -- tasks` shows the difference.
 */
export function randomId(): string {
  if (next === random.length) {
    randomFillSync(random);
    next = 0;
  }
  random[next + VERSION_BYTE] = (byteAt(next + VERSION_BYTE) & 0x0f) | 0x40;
  random[next + VARIANT_BYTE] = (byteAt(next + VARIANT_BYTE) & 0x3f) | 0x80;
  for (const place of PLACES) {
    const byte = byteAt(next++);
    text[place] = DIGITS[byte >> 4] as number;
    text[place + 1] = DIGITS[byte & 0x0f] as number;
  }
  return text.toString('latin1');
}

function byteAt(place: number): number {
  return random[place] as number;
}

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
