import { RingQueue } from '../core/ring-queue.ts';
import { WaitLine, type WaitGroup } from '../core/wait-line.ts';
import { HELD, HELD_AGAIN, IDLE, ItemTable, QUEUED, type ItemEntry } from './item-table.ts';
import type { WorkQueueMetrics } from './work-queue-metrics.ts';

/**
 * The queue in terms of entries: those that are ready, those that are held, and the callers that wait for one.
 *
 *      add ──► ready (a ring) ──► held ──► finish
 *                ▲    or directly to         │ added again meanwhile
 *                │    a waiting caller       │
 *                └───────────────────────────┘
 *
 * Every operation is O(1), amortized.
 */
export class ItemQueue<T> {
  readonly table = new ItemTable<T>();
  readonly ready = new RingQueue<ItemEntry<T>>();
  /** Callers that wait for an entry; undefined is given to them when the queue has ended. */
  readonly #takers = new WaitLine<ItemEntry<T> | undefined>();
  readonly #drains = new WaitLine<void>();
  readonly #metrics: WorkQueueMetrics | undefined;
  readonly #onTaken: () => void;
  #held = 0;
  #heldAgain = 0;
  #leases = 0;
  #isShutDown = false;

  /** @param onTaken - called when fewer entries are ready than before. */
  constructor(metrics: WorkQueueMetrics | undefined, onTaken: () => void) {
    this.#metrics = metrics;
    this.#onTaken = onTaken;
  }

  /** Number of entries that are held. */
  get held(): number {
    return this.#held;
  }

  /** Number of held entries that were added again. */
  get heldAgain(): number {
    return this.#heldAgain;
  }

  /** Number of callers that wait for an entry. */
  get takers(): number {
    return this.#takers.size;
  }

  get isShutDown(): boolean {
    return this.#isShutDown;
  }

  add(key: unknown, item: T): void {
    const entry = this.table.use(key);
    entry.item = item;
    if (entry.phase === QUEUED || entry.phase === HELD_AGAIN) return;
    this.#metrics?.added(entry);
    if (entry.phase === IDLE) {
      this.#offer(entry);
      return;
    }
    entry.phase = HELD_AGAIN;
    this.#heldAgain++;
  }

  /** Takes the first entry that is ready; returns undefined if there is none. */
  take(): ItemEntry<T> | undefined {
    const entry = this.ready.shift();
    if (entry === undefined) return undefined;
    this.#onTaken(); // first: an add of the same item must replace the object that is about to be taken
    this.#hold(entry);
    return entry;
  }

  /** Waits for an entry; `receive` gets undefined if the queue ends. */
  wait<R>(
    receive: (entry: ItemEntry<T> | undefined) => R,
    signal?: AbortSignal,
    group?: WaitGroup<ItemEntry<T> | undefined>,
  ): Promise<R> {
    return this.#takers.wait(receive, signal, group);
  }

  /** Whether no entry will ever be ready again. */
  get hasEnded(): boolean {
    return this.#isShutDown && this.ready.size === 0 && this.#heldAgain === 0;
  }

  /** Ends a lease. @returns false, and changes nothing, if it had ended before. */
  finish(entry: ItemEntry<T>, lease: number): boolean {
    if (!entry.isHeld || entry.lease !== lease) return false;
    this.#held--;
    this.#metrics?.finished(entry);
    if (entry.phase === HELD_AGAIN) {
      this.#heldAgain--;
      this.#offer(entry);
    } else this.table.release(entry);
    this.#settle();
    return true;
  }

  /**
   * Ends the lease of an entry that was not processed. It is taken next; of several such entries, the one whose lease was
   * earliest.
   */
  putBack(entry: ItemEntry<T>, lease: number): void {
    if (!entry.isHeld || entry.lease !== lease) return;
    if (entry.phase === HELD_AGAIN) this.#heldAgain--;
    this.#held--;
    this.#metrics?.putBack(entry);
    if (this.#takers.size > 0) this.#offer(entry);
    else {
      entry.phase = QUEUED;
      this.#queueInFront(entry);
    }
    this.#settle();
  }

  shutDown(): void {
    this.#isShutDown = true;
    this.#settle();
  }

  /** Resolves when the queue is shut down, and no entry is ready or held. */
  drained(signal?: AbortSignal): Promise<void> {
    const drained = this.#drains.wait(() => undefined, signal);
    this.#settle();
    return drained;
  }

  #offer(entry: ItemEntry<T>): void {
    if (this.#takers.size > 0) {
      this.#hold(entry);
      this.#takers.give(entry);
    } else {
      entry.phase = QUEUED;
      entry.lease = 0;
      this.ready.push(entry);
    }
  }

  /** Queues an entry in front of all but those that were put back as well and had an earlier lease. */
  #queueInFront(entry: ItemEntry<T>): void {
    const before: ItemEntry<T>[] = [];
    for (let { first } = this.ready; hasEarlierLease(first, entry); { first } = this.ready) {
      before.push(first);
      this.ready.shift();
    }
    this.ready.unshift(entry);
    for (const earlier of before.reverse()) this.ready.unshift(earlier);
  }

  #hold(entry: ItemEntry<T>): void {
    entry.phase = HELD;
    entry.lease = ++this.#leases;
    this.#held++;
    this.#metrics?.taken(entry);
  }

  /** If the queue has ended, resolves the promises of callers that wait for that. */
  #settle(): void {
    if (!this.hasEnded) return;
    this.#takers.giveAll(undefined);
    if (this.#held > 0) return;
    this.#metrics?.remove();
    this.#drains.giveAll();
  }
}

function hasEarlierLease<T>(first: ItemEntry<T> | undefined, entry: ItemEntry<T>): first is ItemEntry<T> {
  return first !== undefined && first.lease > 0 && first.lease < entry.lease;
}
