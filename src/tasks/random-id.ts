import { randomFillSync } from 'node:crypto';

const ID_BYTES = 16;
const ID_LENGTH = 36;
/** Ids that random bytes are fetched for at once: a call for each would cost more than the rest. */
const IDS_PER_FETCH = 256;

/** Where each byte's two digits go: `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`. */
const PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34] as const;
const DIGITS = Buffer.from('0123456789abcdef');

/** Of version 4, in the variant of RFC 9562: which bytes say so, and how. */
const VERSION_BYTE = 6;
const VARIANT_BYTE = 8;

const random = Buffer.alloc(ID_BYTES * IDS_PER_FETCH);
const text = Buffer.alloc(ID_LENGTH, '-');
let next = random.length;

/**
 * A random UUID, as `crypto.randomUUID` makes them, but in one piece. That one adds its id together from 20 strings, and
 * V8 keeps the pieces, in some 500 bytes, until somebody looks at a character; then it makes the whole. An eighth of all
 * that enqueuing and processing a task allocates would be that. `npm run bench -- tasks` shows the difference.
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
