import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { integer, orInfinity, type OptionTable } from '../core/options.ts';
import { guarded, reportUncaught } from '../core/report-uncaught.ts';
import { requireFunction } from '../core/validate.ts';
import { DelayingQueue, requireDelayingQueueOptions, type DelayingQueueOptions } from './delaying-queue.ts';
import { FailureCounts } from './failure-counts.ts';
import { IDLE, type ItemEntry } from './item-table.ts';
import { requireLimiter, type RateLimiter } from './rate-limiter.ts';
import { INTERNALS, type WorkQueueInternals, type WorkQueueSnapshot } from './work-queue.ts';
import {
  reportWorkerError,
  requireRunOptions,
  RUN_OPTIONS,
  WorkerRun,
  type Outcomes,
  type RunOptions,
  type Worker,
} from './worker-run.ts';

/** Options of `RateLimitingQueue.run`. */
export interface RetryOptions<T> extends RunOptions<T> {
  /** How often a failed item is processed again: an integer of at least 0, or `Infinity`. @default 5 */
  readonly maxRetries?: number | undefined;
  /**
   * Called with the last error of each item that is dropped.
   *
   * @default the error is thrown in a turn of its own: an uncaught exception of the host
   */
  readonly onDrop?: ((error: unknown, item: NoInfer<T>) => void) | undefined;
  /** Called with each error that a worker throws, also if a retry follows. No such error stops the run. @default none */
  readonly onError?: ((error: unknown, item: NoInfer<T>) => void) | undefined;
}

/** The number in client-go's example of a controller. */
const MAX_RETRIES = 5;

const RETRY_OPTIONS = {
  ...RUN_OPTIONS,
  maxRetries: [orInfinity(integer(0)), MAX_RETRIES],
  onDrop: [requireFunction, undefined],
} satisfies OptionTable<RetryOptions<unknown>>;

/**
 * A work queue for work that fails: a failed item is queued again after the delay that its limiter returns.
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
  readonly #retries: Retries;

  /**
   * @param rateLimiter - called with the key of an item, if there is a `keyOf`.
   * @throws TypeError `ERR_INVALID_ARG_TYPE` or RangeError `ERR_OUT_OF_RANGE` - an argument of another type or value.
   * TypeError `ERR_UNKNOWN_OPTION` - an unknown option.
   */
  constructor(rateLimiter: RateLimiter<T>, options?: DelayingQueueOptions<T>);
  constructor(
    rateLimiter: RateLimiter<never>,
    options: DelayingQueueOptions<T> & { readonly keyOf: (item: T) => unknown },
  );
  constructor(rateLimiter: RateLimiter<never>, options: DelayingQueueOptions<T> = {}) {
    requireLimiter('rateLimiter', rateLimiter);
    requireDelayingQueueOptions('RateLimitingQueue', options);
    super(options);
    this.#rateLimiter = rateLimiter;
    this.#retries = new Retries(rateLimiter);
  }

  /**
   * Queues a failed item after the delay that the limiter returns. Each call counts as a failure, also if the item is waiting
   * already and keeps its earlier due time. Ignored after shutdown: then the limiter is not called.
   */
  addRateLimited(item: T): void {
    if (this.shuttingDown) return;
    this.addAfter(item, this.#rateLimiter.when(this[INTERNALS].keyOf(item)));
  }

  /** Lets the limiter forget the failures of an item, which succeeded or was dropped. The queue does not change. */
  forget(item: T): void {
    this.#retries.forget(this[INTERNALS].keyOf(item));
  }

  /** Returns how often an item has failed since it was last forgotten. */
  numRequeues(item: T): number {
    return this.#retries.of(this[INTERNALS].keyOf(item));
  }

  override inspect(): WorkQueueSnapshot {
    const retries = new Map<unknown, number>();
    for (const key of firstKeys(this[INTERNALS])) {
      const count = this.#retries.knownOf(key);
      if (count > 0) retries.set(key, count);
    }
    const most = Array.from(retries, ([key, count]) => ({ key, retries: count }));
    most.sort((a, b) => b.retries - a.retries);
    return { ...super.inspect(), retries: most.slice(0, MOST_SHOWN) };
  }

  /**
   * As `WorkQueue.run`, and a failed item is queued again with the rate limit, at most `maxRetries` times. After that it is
   * forgotten and goes to `onDrop`, as does an item that fails after shutdown. Success forgets the failures.
   */
  override async run(worker: Worker<T>, options: RetryOptions<T> = {}): Promise<void> {
    requireRunOptions('RateLimitingQueue.run', worker, options, RETRY_OPTIONS);
    const outcomes = new RetryOutcomes(this, this.#retries, options);
    await new WorkerRun(this[INTERNALS].items, worker, outcomes).run(options);
  }

  /** @internal Returns what a console prints. */
  override [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({ ...super[CONSOLE_VIEW](), rateLimiter: this.#rateLimiter }));
  }
}

/** How many items a snapshot reads, waiting ones and others, and how many it shows. */
const MOST_LOOKED_AT = 1_000;
const MOST_SHOWN = 100;

/** Yields the keys of the first items that are waiting, and of the first others. */
function* firstKeys<T>({ waiting, items }: WorkQueueInternals<T>): Generator {
  let left = MOST_LOOKED_AT;
  for (const { key } of waiting?.rows() ?? []) {
    if (left-- <= 0) break;
    yield key;
  }
  left = MOST_LOOKED_AT;
  for (const { key, phase } of items.table.all.values()) {
    if (left-- <= 0) break;
    if (phase !== IDLE) yield key;
  }
}

/** How often items have failed: the limiter counts it, or counts nothing, as a bucket does; then retries by `run` are counted here. */
class Retries {
  readonly #rateLimiter: RateLimiter<unknown>;
  readonly #uncounted = new FailureCounts<unknown>(Infinity);

  constructor(rateLimiter: RateLimiter<unknown>) {
    this.#rateLimiter = rateLimiter;
  }

  of(key: unknown): number {
    return this.#rateLimiter.numRequeues(key) + this.#uncounted.get(key);
  }

  /** As `of`, without errors of the limiter: these are reported. */
  knownOf(key: unknown): number {
    try {
      return this.of(key);
    } catch (error) {
      reportUncaught(error);
      return this.#uncounted.get(key);
    }
  }

  /** Called when an item is retried, after the limiter has returned its delay. */
  retried(key: unknown): void {
    if (this.knownOf(key) === this.#uncounted.get(key)) this.#uncounted.increment(key);
  }

  forget(key: unknown): void {
    this.#uncounted.forget(key);
    this.#rateLimiter.forget(key);
  }
}

/** On success forgets the failures of an item; on failure queues it again, and drops it after `maxRetries`. */
class RetryOutcomes<T> implements Outcomes<T> {
  readonly #queue: RateLimitingQueue<T>;
  readonly #retries: Retries;
  readonly #options: RetryOptions<T>;

  constructor(queue: RateLimitingQueue<T>, retries: Retries, options: RetryOptions<T>) {
    this.#queue = queue;
    this.#retries = retries;
    this.#options = options;
  }

  numRequeues(key: unknown): number {
    return this.#retries.knownOf(key);
  }

  succeeded(key: unknown): void {
    try {
      this.#retries.forget(key);
    } catch (error) {
      reportUncaught(error);
    }
  }

  failed(error: unknown, item: T, entry: ItemEntry<T>): boolean {
    const { maxRetries = MAX_RETRIES } = this.#options;
    reportWorkerError(this.#options, error, item);
    if (this.#queue.shuttingDown || this.numRequeues(entry.key) >= maxRetries) this.#drop(error, item, entry);
    else this.#retry(error, item, entry);
    return true;
  }

  /** Queues the newest object if the item was added again meanwhile. After a call of `done` the entry has no object. */
  #retry(error: unknown, item: T, entry: ItemEntry<T>): void {
    try {
      this.#queue.addRateLimited(entry.phase === IDLE ? item : (entry.item as T));
      this.#retries.retried(entry.key);
    } catch (thrown) {
      reportUncaught(thrown);
      this.#drop(error, item, entry);
    }
  }

  #drop(error: unknown, item: T, { key }: ItemEntry<T>): void {
    const { onDrop } = this.#options;
    this.succeeded(key);
    guarded(() => {
      if (onDrop === undefined) throw error;
      onDrop(error, item);
    });
  }
}
