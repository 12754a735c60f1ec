import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { cleanDelay, requireLimiter, type RateLimiter } from './rate-limiter.ts';

/** Asks every limiter, and takes the longest delay. Without limiters there is none. After client-go's of this name. */
export class MaxOfRateLimiter<T> implements RateLimiter<T> {
  readonly #limiters: readonly RateLimiter<T>[];

  /** @throws TypeError `ERR_INVALID_ARG_TYPE` - one of them is no limiter. */
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

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({ limiters: this.#limiters }));
  }
}
