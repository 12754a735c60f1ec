import { requireClock, systemClock, type Clock } from '../core/clock.ts';
import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError, type EscapementErrorCode } from '../core/errors.ts';
import { integer, orInfinity, readOptions, type OptionTable } from '../core/options.ts';
import { signalOf, type SignalOptions } from '../core/signal-options.ts';
import { requireFunction, requireString } from '../core/validate.ts';
import { WaitLine } from '../core/wait-line.ts';
import { requireMetrics, type MetricsProvider } from '../metrics/provider.ts';
import { ItemQueue } from './item-queue.ts';
import { IDLE, type ItemEntry } from './item-table.ts';
import { LeaseIterator, type Lease } from './lease.ts';
import type { WaitingItems } from './waiting-items.ts';
import { WorkQueueMetrics } from './work-queue-metrics.ts';
import { plainOutcomes, requireRunOptions, WorkerRun, type RunOptions, type Worker } from './worker-run.ts';

/** The name of the property with the internals of a queue, which may come from another loaded copy of the package. */
export const INTERNALS: unique symbol = Symbol.for('escapement.workqueue.internals');

/** What subclasses and the integrity checker read. */
export interface WorkQueueInternals<T> {
  readonly items: ItemQueue<T>;
  readonly metrics: WorkQueueMetrics | undefined;
  /** Returns the key of an item. */
  readonly keyOf: (item: T) => unknown;
  /** Only in a queue with delays. */
  waiting: WaitingItems<T> | undefined;
}

/** Options of a `WorkQueue`. All are checked by its constructor. */
export interface WorkQueueOptions<T> {
  /** Name of the queue in metrics and errors. @default 'workqueue' */
  readonly name?: string | undefined;
  /** The clock of measured durations. @default systemClock */
  readonly clock?: Clock | undefined;
  /** Receives the measurements that docs/metrics.md lists. @default none */
  readonly metrics?: MetricsProvider | undefined;
  /**
   * Returns the key of an item: items with equal keys are the same item. It must always return the same key for an item.
   *
   * @default the item itself, compared as in a `Map`: an object is equal only to itself
   * @example (pod) => `${pod.namespace}/${pod.name}`
   */
  readonly keyOf?: ((item: T) => unknown) | undefined;
  /**
   * Most items that may be ready at once: an integer of at least 1. A full queue accepts no new item: `add` throws
   * `ERR_QUEUE_FULL`, and `addWhenRoom` waits. An item that is added again while it is held, or whose delay is over, is queued
   * all the same.
   *
   * @default Infinity
   */
  readonly maxSize?: number | undefined;
}

export const WORK_QUEUE_OPTIONS = {
  name: [requireString, 'workqueue'],
  clock: [requireClock, systemClock],
  metrics: [requireMetrics, undefined],
  keyOf: [requireFunction, identity],
  maxSize: [orInfinity(integer(1)), Infinity],
} satisfies OptionTable<WorkQueueOptions<unknown>>;

function identity(item: unknown): unknown {
  return item;
}

/** The result of `get`: an item, or the end of the queue. */
export type Taken<T> = TakenItem<T> | QueueEnd;

/** The state of a work queue, for people: a copy. */
export interface WorkQueueSnapshot {
  /** Name of the queue. */
  readonly name: string;
  /** Number of items that are ready to be taken. */
  readonly depth: number;
  /** Number of items that are held: taken, and not done. */
  readonly inProgress: number;
  /** Number of items that are waiting: delayed, or parked. 0 in a queue without delays. */
  readonly waiting: number;
  /**
   * At most a hundred items that have failed and not been forgotten since, those that have failed most first, of the first two thousand that are
   * waiting, ready or held. Only in a `RateLimitingQueue`.
   */
  readonly retries: readonly ItemRetries[];
}

/** An item that has failed. */
export interface ItemRetries {
  /** Its key: the item itself, without a `keyOf`. */
  readonly key: unknown;
  /** How often it was queued again. */
  readonly retries: number;
}

/** An item that was taken. The caller must call `done`. */
export interface TakenItem<T> {
  /** The item. */
  readonly item: T;
  /** False: there may be more items. */
  readonly shutdown: false;
}

/** The end of a queue that is shut down and empty. */
export interface QueueEnd {
  /** Undefined: there is no item. */
  readonly item: undefined;
  /** True: there will be no more items. */
  readonly shutdown: true;
}

/**
 * A queue of work inside one process: first in, first out, and each item at most once.
 *
 * - An item that is added several times before it is processed is processed once.
 * - An item is never held by two workers.
 * - An item that is added while it is held is processed once more afterwards.
 *
 * HOW. Each key has an entry with a phase (item-table.ts). Entries that are ready are in a ring, callers that wait
 * for one in a line, and one of the two is always empty. O(1) an operation.
 *
 * After the queue of Kubernetes' client-go; where it differs is in docs/workqueue.md.
 *
 * @typeParam T - the items. Objects need `keyOf`, unless each is an item of its own.
 * @example
 * ```ts
 * const queue = new WorkQueue<string>();
 * queue.add('default/web');
 * await queue.run(async (key) => reconcile(key), { concurrency: 4, signal });
 * ```
 */
export class WorkQueue<T> {
  /** Name of the queue in metrics and errors. */
  readonly name: string;
  /** @internal For subclasses, and for the integrity checker. */
  readonly [INTERNALS]: WorkQueueInternals<T>;
  readonly #maxSize: number;
  readonly #items: ItemQueue<T>;
  readonly #keyOf: (item: T) => unknown;
  /** Callers that wait for capacity, in a queue of limited size. */
  readonly #adders = new WaitLine<void>();

  /**
   * @throws TypeError `ERR_INVALID_ARG_TYPE` or RangeError `ERR_OUT_OF_RANGE` - an option of another type or value.
   * TypeError `ERR_UNKNOWN_OPTION` - an unknown option.
   */
  constructor(options: WorkQueueOptions<T> = {}) {
    const resolved = readOptions('WorkQueue', options, WORK_QUEUE_OPTIONS);
    const { name, clock, metrics: provider, keyOf, maxSize } = resolved;
    const metrics =
      provider === undefined ? undefined : new WorkQueueMetrics(provider, clock, name, () => this.#items);
    this.name = name;
    this.#keyOf = keyOf;
    this.#maxSize = maxSize;
    this.#items = new ItemQueue(metrics, () => {
      this.#admit();
    });
    this[INTERNALS] = { items: this.#items, keyOf, metrics, waiting: undefined };
  }

  /** Number of items that are ready to be taken: neither held nor delayed. O(1). */
  get length(): number {
    return this.#items.ready.size;
  }

  /** Number of items that are held: taken, and not done. O(1). */
  get processing(): number {
    return this.#items.held;
  }

  /** Whether the queue was shut down. */
  get shuttingDown(): boolean {
    return this.#items.isShutDown;
  }

  /** Returns a copy of the state, for inspection. It takes less than a millisecond, however many items there are. */
  inspect(): WorkQueueSnapshot {
    const waiting = this[INTERNALS].waiting?.size ?? 0;
    return { name: this.name, depth: this.length, inProgress: this.processing, waiting, retries: [] };
  }

  /**
   * Queues an item. If it is queued already, the newer object replaces the older one. An item that is held is queued when it
   * is done. Ignored after shutdown. Never runs code of a worker.
   *
   * @throws EscapementError `ERR_QUEUE_FULL` - `maxSize` items are ready, and this is not one of them.
   */
  add(item: T): void {
    if (this.#items.isShutDown) return;
    const key = this.#keyOf(item);
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- keyOf may have shut it down
    if (this.#items.isShutDown) return;
    if (this.#items.ready.size >= this.#maxSize && this.#needsCapacity(key)) {
      throw this.#fail('ERR_QUEUE_FULL', 'add', `is full: maxSize is ${this.#maxSize}`);
    }
    this.#items.add(key, item);
  }

  /**
   * Adds an item as soon as the queue has capacity: at once in a queue without `maxSize`.
   *
   * @returns a promise that rejects with the signal's reason, and with `ERR_QUEUE_SHUT_DOWN` if the queue is shut
   * down first: then the item was not added.
   */
  async addWhenRoom(item: T, options: SignalOptions = {}): Promise<void> {
    const signal = signalOf('WorkQueue.addWhenRoom', options);
    signal?.throwIfAborted();
    const mustWait = this.#items.ready.size >= this.#maxSize && this.#needsCapacity(this.#keyOf(item));
    if (this.#items.isShutDown) throw this.#shutDownError(); // not before keyOf, which may have shut it down
    if (!mustWait) this.add(item);
    else {
      await this.#adders.wait(() => {
        this.add(item);
      }, signal);
    }
  }

  /**
   * Takes the first item, or waits for one. The caller must call `done` for it. Callers get items in the order of their calls.
   *
   * @returns `shutdown: true` once the queue is shut down, and no item is queued or was added again while it is held.
   * The promise rejects with the signal's reason, even if an item is ready, which then stays in the queue.
   */
  get(options?: SignalOptions): Promise<Taken<T>> {
    try {
      const signal = options === undefined ? undefined : signalOf('WorkQueue.get', options);
      signal?.throwIfAborted();
      const entry = this.#items.take();
      if (entry !== undefined || this.#items.hasEnded) return Promise.resolve(takenOf(entry));
      return this.#items.wait<Taken<T>>(takenOf, signal);
    } catch (error) {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- a signal's reason may be any value
      return Promise.reject(error);
    }
  }

  /**
   * Ends the processing of an item. If it was added again meanwhile, it is queued at the back.
   *
   * A second `done` of one holder cannot be distinguished from the first of the next: with leases it can.
   *
   * @throws EscapementError `ERR_NOT_PROCESSING` - the item is not being processed.
   */
  done(item: T): void {
    const entry = this.#items.table.find(this.#keyOf(item));
    if (entry === undefined || !this.#items.finish(entry, entry.lease)) {
      throw this.#fail('ERR_NOT_PROCESSING', 'done', 'is not processing the item that done() was called for');
    }
  }

  /**
   * Shuts the queue down: adds are ignored. Items that are queued, or were added again while they are held, can still be taken;
   * then `get` returns the end, and loops over leases end. Idempotent, and does not wait.
   */
  shutDown(): void {
    this.#stopAdding();
  }

  /**
   * As `shutDown`, and resolves for every caller once no item is queued or held: workers must go on meanwhile.
   *
   * The signal ends the wait, but not the shutdown.
   */
  async shutDownWithDrain(options: SignalOptions = {}): Promise<void> {
    const signal = signalOf('WorkQueue.shutDownWithDrain', options);
    this.#stopAdding();
    await this.#items.drained(signal);
  }

  /** Iterates over leases of items; the loop ends when the queue is shut down and empty. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Lease<T>, undefined, undefined> {
    return this.leases();
  }

  /** Iterates over leases, as `for await` over the queue; the loop throws the reason of the signal. */
  leases(options: SignalOptions = {}): AsyncIterableIterator<Lease<T>, undefined, undefined> {
    return new LeaseIterator(this.#items, signalOf('WorkQueue.leases', options));
  }

  /**
   * Processes items with a worker until the queue is shut down and empty, or the signal is aborted. `done` is always called.
   *
   * On an abort no more items are taken, the signal of each worker is aborted, and running workers are awaited. An item whose
   * worker rejects because of the abort is queued again.
   *
   * @param worker - receives the item and its context. Its errors go to `onError`.
   * @returns a promise that resolves when no worker runs any more. Without `onError` the first error of a worker stops
   * the run, and the promise rejects with it.
   */
  async run(worker: Worker<T>, options: RunOptions<T> = {}): Promise<void> {
    requireRunOptions('WorkQueue.run', worker, options);
    await new WorkerRun(this.#items, worker, plainOutcomes(options)).run(options);
  }

  /** @internal Returns what a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      length: this.length,
      processing: this.processing,
      waiting: this[INTERNALS].waiting?.size,
      maxSize: this.#maxSize === Infinity ? undefined : this.#maxSize,
      shuttingDown: this.shuttingDown,
    }));
  }

  /** Whether an add of the key would lengthen the queue. */
  #needsCapacity(key: unknown): boolean {
    return (this.#items.table.find(key)?.phase ?? IDLE) === IDLE;
  }

  #stopAdding(): void {
    this.#items.shutDown();
    this.#adders.failAll(this.#shutDownError());
  }

  /** Lets callers of `addWhenRoom` add their items while there is capacity. */
  #admit(): void {
    while (this.#items.ready.size < this.#maxSize && this.#adders.give());
  }

  #shutDownError(): EscapementError {
    return this.#fail('ERR_QUEUE_SHUT_DOWN', 'addWhenRoom', 'was shut down before it had capacity');
  }

  #fail(code: EscapementErrorCode, operation: string, message: string): EscapementError {
    return new EscapementError(code, `queue '${this.name}' ${message}`, { op: `WorkQueue.${operation}` });
  }
}

function takenOf<T>(entry: ItemEntry<T> | undefined): Taken<T> {
  if (entry === undefined) return { item: undefined, shutdown: true };
  return { item: entry.item as T, shutdown: false };
}
