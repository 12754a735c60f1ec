import { requireClock, systemClock } from '../core/clock.ts';
import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { readOptions, type OptionTable } from '../core/options.ts';
import { BucketRateLimiter, type BucketRateLimiterOptions } from './bucket-rate-limiter.ts';
import { ItemExponentialFailureRateLimiter } from './item-exponential-failure-rate-limiter.ts';
import { cleanDelay, requireLimiter, type RateLimiter } from './rate-limiter.ts';

/** Returns the longest delay of several limiters, all of which are called; 0 without limiters. After client-go's limiter of this name. */
export class MaxOfRateLimiter<T> implements RateLimiter<T> {
  readonly #limiters: readonly RateLimiter<T>[];

  /** @throws TypeError `ERR_INVALID_ARG_TYPE` - one of them is not a limiter. */
  constructor(...limiters: RateLimiter<T>[]) {
    for (const limiter of limiters) requireLimiter('limiter', limiter);
    this.#limiters = limiters;
  }

  when(item: T): number {
    let longestMs = 0;
    for (const limiter of this.#limiters) longestMs = Math.max(longestMs, cleanDelay(limiter.when(item)));
    return longestMs;
  }

  forget(item: T): void {
    for (const limiter of this.#limiters) limiter.forget(item);
  }

  numRequeues(item: T): number {
    let most = 0;
    for (const limiter of this.#limiters) most = Math.max(most, limiter.numRequeues(item));
    return most;
  }

  /** @internal Returns what a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({ limiters: this.#limiters }));
  }
}

const OPTIONS = { clock: [requireClock, systemClock] } satisfies OptionTable<
  Pick<BucketRateLimiterOptions, 'clock'>
>;

/**
 * Returns a limiter for controllers: 5 ms for each item, doubled with each failure up to 1 000 s, and for all items together 10
 * retries per second after a burst of 100. client-go's default of the same name.
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
