import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError, type EscapementErrorCode } from '../core/errors.ts';
import { signalOf, type SignalOptions } from '../core/signal-options.ts';
import { WaitLine } from '../core/wait-line.ts';
import { IDLE, type ItemEntry } from './item-entry.ts';
import { ItemQueue } from './item-queue.ts';
import { LeaseIterator } from './lease-iterator.ts';
import type { Lease } from './lease.ts';
import { INTERNALS, type WorkQueueInternals } from './work-queue-internals.ts';
import { WorkQueueMetrics } from './work-queue-metrics.ts';
import { resolveWorkQueueOptions, type WorkQueueOptions } from './work-queue-options.ts';
import { plainOutcomes, requireRunOptions, WorkerRun, type RunOptions, type Worker } from './worker-run.ts';

/** What `get` resolves with: an item, or the news that there will not be another one. */
export type Taken<T> = TakenItem<T> | QueueEnd;

/** An item that was handed out. Whoever has it owes a `done`. */
export interface TakenItem<T> {
  /** What to work on. */
  readonly item: T;
  /** There may be more. */
  readonly shutdown: false;
}

/** The queue is shut down, and nothing is left in it. */
export interface QueueEnd {
  /** Nothing. */
  readonly item: undefined;
  /** There will not be another item. */
  readonly shutdown: true;
}

/**
 * A queue of work inside one process: first in, first out, and each item at most once.
 *
 * - N adds of an item before it is processed are one processing.
 * - An item is never held by two workers.
 * - Added while it is held, it is processed once more afterwards.
 *
 * HOW. Each key has an entry with a phase (item-entry.ts). Entries that are ready stand in a ring, callers that wait
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
  /** For metrics and errors. */
  readonly name: string;
  /** @internal For what is built on this queue, and for the integrity checker. */
  readonly [INTERNALS]: WorkQueueInternals<T>;
  readonly #maxSize: number;
  readonly #items: ItemQueue<T>;
  readonly #keyOf: (item: T) => unknown;
  /** Who waits for room, in a queue of limited size. */
  readonly #adders = new WaitLine<void>();

  /**
   * @throws TypeError `ERR_INVALID_ARG_TYPE` or RangeError `ERR_OUT_OF_RANGE` - an option of another type or value.
   * TypeError `ERR_UNKNOWN_OPTION` - an unknown option.
   */
  constructor(options: WorkQueueOptions<T> = {}) {
    const resolved = resolveWorkQueueOptions(options);
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

  /** Items ready to be handed out: neither those that are held, nor those that are delayed. O(1). */
  get length(): number {
    return this.#items.ready.size;
  }

  /** Items that are held: handed out, and not done. O(1). */
  get processing(): number {
    return this.#items.held;
  }

  /** Whether it was shut down. */
  get shuttingDown(): boolean {
    return this.#items.isShutDown;
  }

  /**
   * Queues an item, unless it is queued; then the newer object takes the place of the older one. One that is held is
   * queued when it is done. Ignored after shutdown. It never runs code of a worker.
   *
   * @throws EscapementError `ERR_QUEUE_FULL` - `maxSize` items are ready, and this is another one.
   */
  add(item: T): void {
    if (this.#items.isShutDown) return;
    const key = this.#keyOf(item);
    if (this.#items.ready.size >= this.#maxSize && this.#needsRoom(key)) {
      throw this.#fail('ERR_QUEUE_FULL', 'add', `is full: ${this.#maxSize} items are ready`);
    }
    this.#items.add(key, item);
  }

  /**
   * As `add`, when there is room: at once in a queue without `maxSize`.
   *
   * @returns a promise that rejects with the signal's reason, and with `ERR_QUEUE_SHUT_DOWN` if the queue is shut
   * down before there was room: the item was not added then.
   */
  async addWhenRoom(item: T, options: SignalOptions = {}): Promise<void> {
    const signal = signalOf('WorkQueue.addWhenRoom', options);
    signal?.throwIfAborted();
    if (this.#items.isShutDown) throw this.#shutDownError();
    const mustWait = this.#items.ready.size >= this.#maxSize && this.#needsRoom(this.#keyOf(item));
    if (!mustWait) this.add(item);
    else {
      await this.#adders.wait(() => {
        this.add(item);
      }, signal);
    }
  }

  /**
   * Takes the first item, or waits for one. Whoever takes it owes a `done`. Callers are served in the order they came.
   *
   * @returns `shutdown: true` once the queue is shut down, and nothing is queued or can come back from a holder.
   * The promise rejects with the signal's reason: also if an item is ready, which then stays.
   */
  get(options?: SignalOptions): Promise<Taken<T>> {
    try {
      const signal = options === undefined ? undefined : signalOf('WorkQueue.get', options);
      signal?.throwIfAborted();
      const entry = this.#items.take();
      if (entry !== undefined || this.#items.hasEnded) return Promise.resolve(takenOf(entry));
      return this.#items.wait<Taken<T>>(takenOf, signal);
    } catch (error) {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- a signal's reason is what it is
      return Promise.reject(error);
    }
  }

  /**
   * The processing of an item is over. If it was added again meanwhile, it is queued, at the back.
   *
   * By its item alone a second `done` cannot be told from the first of the next holder: leases can.
   *
   * @throws EscapementError `ERR_NOT_PROCESSING` - nobody holds it.
   */
  done(item: T): void {
    const entry = this.#items.table.find(this.#keyOf(item));
    if (entry === undefined || !this.#items.finish(entry, entry.handOut)) {
      throw this.#fail('ERR_NOT_PROCESSING', 'done', 'was told that an item is done which nobody holds');
    }
  }

  /**
   * No more adds. What is queued is still handed out, and what was added again while it is held; then `get` reports
   * the shutdown, and loops over leases end. Idempotent, and does not wait.
   */
  shutDown(): void {
    this.#stopAdding();
  }

  /**
   * As `shutDown`, and resolves once nothing is queued or held, for every caller. It needs workers that go on.
   *
   * The signal gives up the waiting; the shutdown stays.
   */
  async shutDownWithDrain(options: SignalOptions = {}): Promise<void> {
    const signal = signalOf('WorkQueue.shutDownWithDrain', options);
    this.#stopAdding();
    await this.#items.drained(signal);
  }

  /** The leases of what is ready, one after the other; the loop ends when the queue is shut down and empty. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Lease<T>, undefined, undefined> {
    return this.leases();
  }

  /** As the queue itself in a `for await`; with a signal, whose reason the loop then throws. */
  leases(options: SignalOptions = {}): AsyncIterableIterator<Lease<T>, undefined, undefined> {
    return new LeaseIterator(this.#items, signalOf('WorkQueue.leases', options));
  }

  /**
   * Lets a worker process items until the queue is shut down and empty, or the signal fires. `done` is always called.
   *
   * When the signal fires, no more items are taken, the signal of each worker fires, and what runs is waited for. An
   * item whose worker rejects because of that was interrupted: it is queued again.
   *
   * @param worker - gets the item and its context. What it throws goes to `onError`.
   * @returns a promise that resolves when no worker runs any more. Without `onError` the first error of a worker stops
   * the taking, and the promise rejects with it.
   */
  async run(worker: Worker<T>, options: RunOptions<T> = {}): Promise<void> {
    requireRunOptions('WorkQueue.run', worker, options);
    await new WorkerRun(this.#items, worker, plainOutcomes(options)).run(options);
  }

  /** @internal What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      length: this.length,
      processing: this.processing,
      waiting: this[INTERNALS].waiting?.size,
      maxSize: this.#maxSize === Infinity ? undefined : this.#maxSize,
      shuttingDown: this.shuttingDown,
    }));
  }

  /** Whether an add of the key would make the queue longer. */
  #needsRoom(key: unknown): boolean {
    return (this.#items.table.find(key)?.phase ?? IDLE) === IDLE;
  }

  #stopAdding(): void {
    this.#items.shutDown();
    this.#adders.failAll(this.#shutDownError());
  }

  /** An item was taken: there may be room. */
  #admit(): void {
    while (this.#items.ready.size < this.#maxSize && this.#adders.give());
  }

  #shutDownError(): EscapementError {
    return this.#fail('ERR_QUEUE_SHUT_DOWN', 'addWhenRoom', 'was shut down before there was room');
  }

  #fail(code: EscapementErrorCode, operation: string, message: string): EscapementError {
    return new EscapementError(code, `queue '${this.name}' ${message}`, { op: `WorkQueue.${operation}` });
  }
}

function takenOf<T>(entry: ItemEntry<T> | undefined): Taken<T> {
  if (entry === undefined) return { item: undefined, shutdown: true };
  return { item: entry.item as T, shutdown: false };
}
