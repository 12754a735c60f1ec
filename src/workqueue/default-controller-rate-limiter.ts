import { systemClock } from '../core/clock.ts';
import { readOptions, type OptionTable } from '../core/options.ts';
import { requireClock } from '../core/require-clock.ts';
import { BucketRateLimiter, type BucketRateLimiterOptions } from './bucket-rate-limiter.ts';
import { ItemExponentialFailureRateLimiter } from './item-exponential-failure-rate-limiter.ts';
import { MaxOfRateLimiter } from './max-of-rate-limiter.ts';
import type { RateLimiter } from './rate-limiter.ts';

const OPTIONS = { clock: [requireClock, systemClock] } satisfies OptionTable<
  Pick<BucketRateLimiterOptions, 'clock'>
>;

/**
 * What controllers use unless they know better: per item 5 ms, doubled with each failure up to 1 000 s, and for all
 * together 10 retries a second after a burst of 100. client-go's default of the same name.
 */
export function defaultControllerRateLimiter<T>(
  options: Pick<BucketRateLimiterOptions, 'clock'> = {},
): RateLimiter<T> {
  const { clock } = readOptions('defaultControllerRateLimiter', options, OPTIONS);
  return new MaxOfRateLimiter(
    new ItemExponentialFailureRateLimiter<T>({ baseDelayMs: 5, maxDelayMs: 1_000_000 }),
    new BucketRateLimiter<T>({ ratePerSecond: 10, burst: 100, clock }),
  );
}
