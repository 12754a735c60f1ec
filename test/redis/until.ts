import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 20;

/** Waits until something holds; an error means that it does not yet. @throws Error - it does not within the limit. */
export async function until(what: string, holds: () => Promise<boolean>, limitMs = 20_000): Promise<void> {
  const endMs = performance.now() + limitMs;
  let failure: unknown;
  while (performance.now() < endMs) {
    try {
      if (await holds()) return;
    } catch (error) {
      failure = error;
    }
    await sleep(POLL_MS);
  }
  throw new Error(`not within ${limitMs} ms: ${what}`, { cause: failure });
}
