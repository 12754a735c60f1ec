import { setTimeout as sleep } from 'node:timers/promises';

const LONGEST_POLL_MS = 20;

/**
 * Waits until something holds, first looking often and then seldom. An error means that it does not yet.
 *
 * @throws Error - it does not within the limit, which is generous: the machine may be busy.
 */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  limitMs = 60_000,
): Promise<void> {
  const endMs = performance.now() + limitMs;
  let failure: unknown;
  for (let polls = 1; performance.now() < endMs; polls++) {
    try {
      if (await holds()) return;
    } catch (error) {
      failure = error;
    }
    await sleep(Math.min(polls, LONGEST_POLL_MS));
  }
  throw new Error(`not within ${limitMs} ms: ${what}`, { cause: failure });
}
