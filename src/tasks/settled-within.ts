import type { SystemTimer } from '../timer/system-timer.ts';

/**
 * How long a shutdown waits for a broker that does not answer, in milliseconds, if nothing depends on the answer: what the broker
 * keeps expires by itself. Containers are killed ten seconds after SIGTERM.
 */
export const UNANSWERED_MS = 1_000;

/** Waits until a promise has settled, or until `limitMs` have passed. @returns whether it has settled. */
export async function settledWithin(
  timer: SystemTimer,
  limitMs: number,
  promise: Promise<unknown>,
): Promise<boolean> {
  const controller = new AbortController();
  const settled = promise.then(
    () => true,
    () => true,
  );
  const late = timer.sleep(limitMs, false, { signal: controller.signal }).catch(() => false);
  try {
    return await Promise.race([settled, late]);
  } finally {
    controller.abort();
  }
}

/**
 * Waits until a component has ended: up to `limitMs` while it works, and at most {@link UNANSWERED_MS} if it only waits for the
 * broker. @returns whether it has ended.
 */
export async function endedWithin(
  timer: SystemTimer,
  limitMs: number,
  ended: Promise<unknown>,
  isWorking: () => boolean,
): Promise<boolean> {
  if (await settledWithin(timer, Math.min(limitMs, UNANSWERED_MS), ended)) return true;
  return isWorking() && (await settledWithin(timer, Math.max(limitMs - UNANSWERED_MS, 0), ended));
}
