/** What a rate limiter adds to a retry. */
import {
  defaultControllerRateLimiter,
  ItemExponentialFailureRateLimiter,
  type RateLimiter,
} from 'escapement';
import type { MicroCase, MicroRun } from '../lib/part.ts';
import { DISTINCT, keysUpTo } from './keys.ts';

/** As one writes it: a Map of counts, and no limit for all together. */
function openByHand(size: number): MicroRun {
  const keys = keysUpTo(size);
  const failures = new Map<string, number>();
  let place = 0;
  let sumMs = 0;
  return {
    run: (count) => {
      for (let done = 0; done < count; done++) {
        const key = keys[place] as string;
        const failed = failures.get(key) ?? 0;
        failures.set(key, failed + 1);
        sumMs += Math.min(5 * 2 ** failed, 1_000_000);
        failures.delete(key);
        place = place + 1 === keys.length ? 0 : place + 1;
      }
    },
    check: () => (failures.size === 0 && sumMs > 0 ? undefined : `${failures.size} failures are left`),
    close: () => undefined,
  };
}

function openLimiter(size: number, limiter: RateLimiter<string>): MicroRun {
  const keys = keysUpTo(size);
  let place = 0;
  let sumMs = 0;
  return {
    run: (count) => {
      for (let done = 0; done < count; done++) {
        const key = keys[place] as string;
        sumMs += limiter.when(key);
        limiter.forget(key);
        place = place + 1 === keys.length ? 0 : place + 1;
      }
    },
    check: () => {
      const left = keys.reduce((sum, key) => sum + limiter.numRequeues(key), 0);
      return left === 0 && sumMs > 0 ? undefined : `${left} failures are left`;
    },
    close: () => undefined,
  };
}

export const limiterCase: MicroCase = {
  kind: 'micro',
  name: 'rate limiters: when + forget',
  note: 'The limiter of the name by default counts the failures of each key, and reads the clock for a bucket of all.',
  size: { full: DISTINCT, quick: DISTINCT, of: 'keys in turn' },
  contestants: [
    { name: 'a Map of counts', role: 'baseline', open: openByHand },
    {
      name: 'ours: exponential',
      role: 'ours',
      open: (size) =>
        openLimiter(size, new ItemExponentialFailureRateLimiter({ baseDelayMs: 5, maxDelayMs: 1_000_000 })),
    },
    {
      name: 'ours: the default',
      role: 'ours',
      open: (size) => openLimiter(size, defaultControllerRateLimiter()),
    },
  ],
};
