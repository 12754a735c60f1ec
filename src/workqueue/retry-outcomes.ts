import { integer, orInfinity, type OptionTable } from '../core/options.ts';
import { reportUncaught } from '../core/report-uncaught.ts';
import { requireFunction } from '../core/validate.ts';
import { IDLE, type ItemEntry } from './item-entry.ts';
import type { RateLimiter } from './rate-limiter.ts';
import {
  requireRunOptions,
  RUN_OPTIONS,
  reportWorkerError,
  type Outcomes,
  type RunOptions,
  type Worker,
} from './worker-run.ts';

/** Options of `RateLimitingQueue.run`. */
export interface RetryOptions<T> extends RunOptions<T> {
  /** How often an item that fails is tried again: an integer, 0 or more, or `Infinity`. @default 5 */
  readonly maxRetries?: number | undefined;
  /**
   * Called with the last error of each item that is given up.
   *
   * @default the error is thrown in a turn of its own: an uncaught exception of the host
   */
  readonly onDrop?: ((error: unknown, item: NoInfer<T>) => void) | undefined;
}

/** As often as in client-go's example of a controller. */
const MAX_RETRIES = 5;

const RETRY_OPTIONS = {
  ...RUN_OPTIONS,
  maxRetries: [orInfinity(integer(0)), MAX_RETRIES],
  onDrop: [requireFunction, undefined],
} satisfies OptionTable<RetryOptions<unknown>>;

export function requireRetryOptions<T>(worker: Worker<T>, options: RetryOptions<T>): void {
  requireRunOptions('RateLimitingQueue.run', worker, options, RETRY_OPTIONS);
}

/** What the outcomes need of their queue. */
interface Retrier<T> {
  readonly shuttingDown: boolean;
  addRateLimited(item: T): void;
}

/** Success forgets, failure tries again, and after `maxRetries` gives up. */
export class RetryOutcomes<T> implements Outcomes<T> {
  readonly #queue: Retrier<T>;
  readonly #rateLimiter: RateLimiter<unknown>;
  readonly #options: RetryOptions<T>;

  constructor(queue: Retrier<T>, rateLimiter: RateLimiter<unknown>, options: RetryOptions<T>) {
    this.#queue = queue;
    this.#rateLimiter = rateLimiter;
    this.#options = options;
  }

  numRequeues(key: unknown): number {
    try {
      return this.#rateLimiter.numRequeues(key);
    } catch (error) {
      reportUncaught(error);
      return 0;
    }
  }

  succeeded(key: unknown): void {
    try {
      this.#rateLimiter.forget(key);
    } catch (error) {
      reportUncaught(error);
    }
  }

  failed(error: unknown, item: T, entry: ItemEntry<T>): boolean {
    const { maxRetries = MAX_RETRIES } = this.#options;
    reportWorkerError(this.#options, error, item);
    if (this.#queue.shuttingDown || this.numRequeues(entry.key) >= maxRetries)
      this.#giveUp(error, item, entry);
    else this.#retry(error, item, entry);
    return true;
  }

  /** With the newest object, if it was added again meanwhile. Somebody may have called `done`: then it has none. */
  #retry(error: unknown, item: T, entry: ItemEntry<T>): void {
    try {
      this.#queue.addRateLimited(entry.phase === IDLE ? item : (entry.item as T));
    } catch (thrown) {
      reportUncaught(thrown);
      this.#giveUp(error, item, entry);
    }
  }

  #giveUp(error: unknown, item: T, { key }: ItemEntry<T>): void {
    const { onDrop } = this.#options;
    this.succeeded(key);
    try {
      if (onDrop === undefined) reportUncaught(error);
      else onDrop(error, item);
    } catch (thrown) {
      reportUncaught(thrown);
    }
  }
}
