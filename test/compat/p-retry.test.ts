import pRetry, { AbortError } from 'p-retry';
import { expect, test } from 'vitest';
import { swapTimers } from './swapped-timers.ts';

test('p-retry on our timers waits longer each time, and never less than its options require', async () => {
  const timers = swapTimers();
  const times: number[] = [];
  const startMs = performance.now();
  const result = await pRetry(
    (attempt) => {
      times.push(performance.now() - startMs);
      if (attempt < 4) throw new Error(`attempt ${attempt}`);
      return 'done';
    },
    { retries: 5, minTimeout: 10, factor: 2 },
  );
  expect(result).toBe('done');
  expect(times).toHaveLength(4);
  const waits = times.slice(1).map((time, i) => time - (times[i] as number));
  for (const [i, waitMs] of waits.entries()) expect(waitMs).toBeGreaterThanOrEqual(10 * 2 ** i);
  expect(timers.setTimeout).toHaveBeenCalledTimes(3);
  expect(timers.waiting()).toBe(0);
});

test('p-retry on our timers gives up while it waits when its signal fires, and clears its timeout', async () => {
  const timers = swapTimers();
  const controller = new AbortController();
  const retried = pRetry(
    () => {
      throw new Error('again');
    },
    { retries: 3, minTimeout: 60_000, signal: controller.signal },
  );
  await expect.poll(() => timers.waiting()).toBe(1);
  controller.abort(new Error('enough'));
  await expect(retried).rejects.toThrow('enough');
  expect(timers.waiting()).toBe(0);
});

test('p-retry does not retry an AbortError, and sets no timeout', async () => {
  const timers = swapTimers();
  const retried = pRetry(() => {
    throw new AbortError('not again');
  });
  await expect(retried).rejects.toThrow('not again');
  expect(timers.setTimeout).not.toHaveBeenCalled();
});
