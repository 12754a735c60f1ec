import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { DelayingQueue, requireDelayingQueueOptions, type DelayingQueueOptions } from './delaying-queue.ts';
import { requireLimiter, type RateLimiter } from './rate-limiter.ts';
import { requireRetryOptions, RetryOutcomes, type RetryOptions } from './retry-outcomes.ts';
import { INTERNALS } from './work-queue-internals.ts';
import { WorkerRun, type Worker } from './worker-run.ts';

/**
 * A work queue for work that fails: a failed item comes again after as long as its limiter says.
 *
 * @example
 * ```ts
 * const queue = new RateLimitingQueue<string>(defaultControllerRateLimiter());
 * queue.add('default/web');
 * await queue.run(reconcile, { concurrency: 4, signal, onDrop: (error, key) => log.error({ key, error }) });
 * ```
 */
export class RateLimitingQueue<T> extends DelayingQueue<T> {
  readonly #rateLimiter: RateLimiter<unknown>;

  /**
   * @param rateLimiter - asked by the key of an item, if there is a `keyOf`.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` or RangeError `ERR_OUT_OF_RANGE` - an argument of another type or value.
   * TypeError `ERR_UNKNOWN_OPTION` - an unknown option.
   */
  constructor(rateLimiter: RateLimiter<T>, options: DelayingQueueOptions<T> = {}) {
    requireLimiter('rateLimiter', rateLimiter);
    requireDelayingQueueOptions('RateLimitingQueue', options);
    super(options);
    this.#rateLimiter = rateLimiter;
  }

  /**
   * Queues an item after as long as the limiter says: for what has failed. Each call counts as a failure, also if the
   * item waits already and keeps its earlier time. Ignored after shutdown: the limiter is not asked.
   */
  addRateLimited(item: T): void {
    if (this.shuttingDown) return;
    this.addAfter(item, this.#rateLimiter.when(this[INTERNALS].keyOf(item)));
  }

  /** The item has succeeded, or is given up: the limiter forgets its failures. It stays where it is in the queue. */
  forget(item: T): void {
    this.#rateLimiter.forget(this[INTERNALS].keyOf(item));
  }

  /** How often the item has failed since it was last forgotten. */
  numRequeues(item: T): number {
    return this.#rateLimiter.numRequeues(this[INTERNALS].keyOf(item));
  }

  /**
   * As `WorkQueue.run`, and what fails is tried again: with the rate limit, at most `maxRetries` times. After that it
   * is forgotten and goes to `onDrop`, as does what fails after shutdown. Success forgets the failures.
   *
   * @param options - with `onError` you also learn of failures that are tried again; it does not decide anything.
   */
  override async run(worker: Worker<T>, options: RetryOptions<T> = {}): Promise<void> {
    requireRetryOptions(worker, options);
    const outcomes = new RetryOutcomes(this, this.#rateLimiter, options);
    await new WorkerRun(this[INTERNALS].items, worker, outcomes).run(options);
  }

  /** @internal What a console prints. */
  override [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({ ...super[CONSOLE_VIEW](), rateLimiter: this.#rateLimiter }));
  }
}
