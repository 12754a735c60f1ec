import { readClock, requireClock, systemClock, type Clock } from '../core/clock.ts';
import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { outOfRange, wrongType } from '../core/errors.ts';
import { integer, readOptions, type OptionTable } from '../core/options.ts';
import { SECOND_MS } from '../core/units.ts';
import { cleanDelay, type RateLimiter } from './rate-limiter.ts';

/** Options of a {@link BucketRateLimiter}. */
export interface BucketRateLimiterOptions {
  /** Calls per second in the long run: more than 0. `Infinity`: no limit. @example 10 */
  readonly ratePerSecond: number;
  /** Calls without a delay after a pause: an integer of at least 1. @example 100 */
  readonly burst: number;
  /** The source of time. @default systemClock */
  readonly clock?: Clock | undefined;
}

const OPTIONS = {
  ratePerSecond: [requireRate],
  burst: [integer(1)],
  clock: [requireClock, systemClock],
} satisfies OptionTable<BucketRateLimiterOptions>;

/**
 * A token bucket for all items together: each call reserves the next slot, and returns the time until then.
 *
 *      10 a second, burst 100:  calls 1–100 → 0 ms,  101st → 100 ms,  102nd → 200 ms, …
 *
 * No call is refused, no reservation is cancelled, and `forget` refunds nothing: while calls are more frequent than the rate, the
 * debt grows, and with it the delay. `WithMaxWaitRateLimiter` bounds the delay, not the debt.
 *
 * The semantics of `Reserve` in Go's golang.org/x/time/rate, which client-go uses.
 */
export class BucketRateLimiter<T> implements RateLimiter<T> {
  readonly #ratePerMs: number;
  readonly #burst: number;
  readonly #clock: Clock;
  #tokens: number;
  #lastMs: number;

  /** @throws RangeError `ERR_OUT_OF_RANGE` - `ratePerSecond` or `burst` is 0 or less. */
  constructor(options: BucketRateLimiterOptions) {
    const { ratePerSecond, burst, clock } = readOptions('BucketRateLimiter', options, OPTIONS);
    this.#ratePerMs = ratePerSecond / SECOND_MS;
    this.#burst = burst;
    this.#clock = clock;
    this.#tokens = burst;
    this.#lastMs = readClock(clock);
  }

  when(_item: T): number {
    if (this.#ratePerMs === Infinity) return 0;
    const nowMs = readClock(this.#clock);
    const elapsedMs = Math.max(nowMs - this.#lastMs, 0);
    this.#lastMs = nowMs;
    this.#tokens = Math.min(this.#tokens + elapsedMs * this.#ratePerMs, this.#burst) - 1;
    return cleanDelay(-this.#tokens / this.#ratePerMs);
  }

  forget(_item: T): void {
    // A reservation is not refunded.
  }

  numRequeues(_item: T): number {
    return 0;
  }

  /** @internal Returns what a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({ ratePerSecond: this.#ratePerMs * SECOND_MS, burst: this.#burst }));
  }
}

function requireRate(argument: string, value: unknown): void {
  if (typeof value !== 'number') throw wrongType(argument, 'a number', value);
  if (!(value > 0)) throw outOfRange(argument, 'more than 0', value);
}
