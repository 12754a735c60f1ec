import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import {
  integer,
  milliseconds,
  orInfinity,
  readOptions,
  type OptionTable,
  type Resolved,
} from '../core/options.ts';
import { FailureCounts, MIN_FAILURE_COUNTS } from './failure-counts.ts';
import { cleanDelay, type RateLimiter } from './rate-limiter.ts';

/** Options of an {@link ItemFastSlowRateLimiter}. */
export interface ItemFastSlowOptions {
  /** The delay after the first failures, in milliseconds: 0 or more. @example 5 */
  readonly fastDelayMs: number;
  /** The delay after later failures, in milliseconds: 0 or more. @example 10_000 */
  readonly slowDelayMs: number;
  /** Number of failures with the fast delay: an integer of at least 0. @example 3 */
  readonly maxFastAttempts: number;
  /** Most items whose failures are remembered, as in {@link ItemExponentialFailureOptions.maxItems}. @default Infinity */
  readonly maxItems?: number | undefined;
}

const OPTIONS = {
  fastDelayMs: [milliseconds(0, Number.MAX_VALUE)],
  slowDelayMs: [milliseconds(0, Number.MAX_VALUE)],
  maxFastAttempts: [integer(0)],
  maxItems: [orInfinity(integer(MIN_FAILURE_COUNTS)), Infinity],
} satisfies OptionTable<ItemFastSlowOptions>;

/** Returns a short delay for the first failures of an item, and a long one for later ones. After client-go's limiter of this name. */
export class ItemFastSlowRateLimiter<T> implements RateLimiter<T> {
  readonly #options: Resolved<ItemFastSlowOptions, typeof OPTIONS>;
  readonly #failures: FailureCounts<T>;

  /** @throws RangeError `ERR_OUT_OF_RANGE` - a delay that is negative or not finite, or a count that is not an integer. */
  constructor(options: ItemFastSlowOptions) {
    this.#options = readOptions('ItemFastSlowRateLimiter', options, OPTIONS);
    this.#failures = new FailureCounts(this.#options.maxItems);
  }

  when(item: T): number {
    const { fastDelayMs, slowDelayMs, maxFastAttempts } = this.#options;
    return cleanDelay(this.#failures.increment(item) < maxFastAttempts ? fastDelayMs : slowDelayMs);
  }

  forget(item: T): void {
    this.#failures.forget(item);
  }

  numRequeues(item: T): number {
    return this.#failures.get(item);
  }

  /** @internal Returns what a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({ ...this.#options, maxItems: undefined, items: this.#failures.size }));
  }
}
