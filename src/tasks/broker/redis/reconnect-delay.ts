/** The first wait, in milliseconds: most of what is gone is back at once. */
const FIRST_MS = 50;
/** The longest wait, in milliseconds: so late may it be noticed that Redis is back. */
const LONGEST_MS = 3_000;

/**
 * How long to wait before the next attempt to connect: twice as long each time, up to three seconds, and somewhere in the
 * upper half of that, so that a fleet does not come back in step.
 *
 * @param attempt - from 1.
 */
export function reconnectDelayMs(attempt: number): number {
  const mostMs = Math.min(FIRST_MS * 2 ** Math.min(attempt - 1, 10), LONGEST_MS);
  return Math.ceil(mostMs * (0.5 + Math.random() / 2));
}
