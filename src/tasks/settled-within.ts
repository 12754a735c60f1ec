import type { SystemTimer } from '../timer/system-timer.ts';

/**
 * How long a shutdown waits for a broker that does not answer, in milliseconds, if nothing depends on the answer: what the broker
 * keeps expires by itself. Containers are killed ten seconds after SIGTERM.
 */
export const UNANSWERED_MS = 1_000;

/**
 * Waits until a promise has settled, `limitMs` have passed, or the signal has fired. Leaves no timer and no listener.
 *
 * @returns whether it has settled.
 */
export async function settledWithin(
  timer: SystemTimer,
  limitMs: number,
  promise: Promise<unknown>,
  signal?: AbortSignal,
): Promise<boolean> {
  const controller = new AbortController();
  const giveUp = (): void => {
    controller.abort();
  };
  const settled = promise.then(
    () => true,
    () => true,
  );
  const late = timer.sleep(limitMs, false, { signal: controller.signal }).catch(() => false);
  signal?.addEventListener('abort', giveUp);
  if (signal?.aborted === true) giveUp();
  try {
    return await Promise.race([settled, late]);
  } finally {
    giveUp();
    signal?.removeEventListener('abort', giveUp);
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
