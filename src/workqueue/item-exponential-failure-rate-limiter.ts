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

/** Options of an {@link ItemExponentialFailureRateLimiter}. */
export interface ItemExponentialFailureOptions {
  /** The delay after the first failure, in milliseconds: 0 or more. @example 5 */
  readonly baseDelayMs: number;
  /** The longest delay, in milliseconds: 0 or more. @example 1_000_000 */
  readonly maxDelayMs: number;
  /**
   * Most items whose failures are remembered: an integer of at least 2. Those of the half that failed last always are; the others
   * are forgotten when more items fail. For items that are dropped without `forget`.
   *
   * @default Infinity
   */
  readonly maxItems?: number | undefined;
}

const OPTIONS = {
  baseDelayMs: [milliseconds(0, Number.MAX_VALUE)],
  maxDelayMs: [milliseconds(0, Number.MAX_VALUE)],
  maxItems: [orInfinity(integer(MIN_FAILURE_COUNTS)), Infinity],
} satisfies OptionTable<ItemExponentialFailureOptions>;

/**
 * Doubles the delay of an item with each failure: `baseDelayMs * 2 ** failures`, at most `maxDelayMs`.
 *
 * After client-go's limiter of this name, without its overflows.
 */
export class ItemExponentialFailureRateLimiter<T> implements RateLimiter<T> {
  readonly #options: Resolved<ItemExponentialFailureOptions, typeof OPTIONS>;
  readonly #failures: FailureCounts<T>;

  /** @throws RangeError `ERR_OUT_OF_RANGE` - a delay that is negative or not finite, or `maxItems` below 2. */
  constructor(options: ItemExponentialFailureOptions) {
    this.#options = readOptions('ItemExponentialFailureRateLimiter', options, OPTIONS);
    this.#failures = new FailureCounts(this.#options.maxItems);
  }

  when(item: T): number {
    const { baseDelayMs, maxDelayMs } = this.#options;
    return cleanDelay(Math.min(baseDelayMs * 2 ** this.#failures.increment(item), maxDelayMs));
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
