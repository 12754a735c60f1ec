import type { SystemTimer } from '../../timer/system-timer.ts';

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
