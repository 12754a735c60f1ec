import type { SystemTimer } from '../../timer/system-timer.ts';

/**
 * How long something that ends waits for a broker that does not answer, in milliseconds, if nothing depends on the answer: what
 * is in the broker ends by itself. Containers are killed ten seconds after SIGTERM.
 */
export const UNANSWERED_MS = 1_000;

/** Waits until a promise has settled, however, but not for ever. @returns whether it has. */
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
 * Waits until a component has ended: for `limitMs` while it works on something, and no longer than {@link UNANSWERED_MS} if only
 * the broker is waited for. @returns whether it has ended.
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
