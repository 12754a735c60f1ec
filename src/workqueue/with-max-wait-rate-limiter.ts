import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { milliseconds } from '../core/options.ts';
import { cleanDelay, requireLimiter, type RateLimiter } from './rate-limiter.ts';

/**
 * Limits the delay of another limiter to `maxDelayMs`. The other one counts as before: a bucket with a large debt returns
 * the maximum from then on, and no longer enforces its rate. After client-go's limiter of this name.
 */
export class WithMaxWaitRateLimiter<T> implements RateLimiter<T> {
  readonly #limiter: RateLimiter<T>;
  readonly #maxDelayMs: number;

  /** @throws RangeError `ERR_OUT_OF_RANGE` - `maxDelayMs` is negative or not finite. */
  constructor(limiter: RateLimiter<T>, maxDelayMs: number) {
    requireLimiter('limiter', limiter);
    milliseconds(0, Number.MAX_VALUE)('maxDelayMs', maxDelayMs);
    this.#limiter = limiter;
    this.#maxDelayMs = maxDelayMs;
  }

  when(item: T): number {
    return Math.min(cleanDelay(this.#limiter.when(item)), this.#maxDelayMs);
  }

  forget(item: T): void {
    this.#limiter.forget(item);
  }

  numRequeues(item: T): number {
    return this.#limiter.numRequeues(item);
  }

  /** @internal Returns what a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({ limiter: this.#limiter, maxDelayMs: this.#maxDelayMs }));
  }
}
