import { RingQueue } from '../core/ring-queue.ts';
import { WaitLine, type WaitGroup } from '../core/wait-line.ts';
import { HELD, HELD_AGAIN, IDLE, QUEUED, type ItemEntry } from './item-entry.ts';
import { ItemTable } from './item-table.ts';
import type { WorkQueueMetrics } from './work-queue-metrics.ts';

/**
 * The queue itself, in terms of entries: who is ready, who is held, who waits for one.
 *
 *      add ──► ready (a ring) ──► held ──► finish
 *                ▲    or straight to         │ added again meanwhile
 *                │    whoever waits          │
 *                └───────────────────────────┘
 *
 * It knows neither keys nor promises of its callers: WorkQueue makes those. Every operation is O(1), amortized.
 */
export class ItemQueue<T> {
  readonly table = new ItemTable<T>();
  readonly ready = new RingQueue<ItemEntry<T>>();
  /** Who waits for an entry. Given undefined, there will never be one again. */
  readonly #takers = new WaitLine<ItemEntry<T> | undefined>();
  readonly #drains = new WaitLine<void>();
  readonly #metrics: WorkQueueMetrics | undefined;
  readonly #onTaken: () => void;
  #held = 0;
  #heldAgain = 0;
  #handOuts = 0;
  #isShutDown = false;

  /** @param onTaken - called when fewer entries are ready than before. */
  constructor(metrics: WorkQueueMetrics | undefined, onTaken: () => void) {
    this.#metrics = metrics;
    this.#onTaken = onTaken;
  }

  /** Entries that somebody holds. */
  get held(): number {
    return this.#held;
  }

  /** Of those, how many were added again. */
  get heldAgain(): number {
    return this.#heldAgain;
  }

  /** Callers that wait for an entry. */
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

  /** The first entry that is ready; undefined if none is. */
  take(): ItemEntry<T> | undefined {
    const entry = this.ready.shift();
    if (entry === undefined) return undefined;
    this.#onTaken(); // first: who adds the same item now takes the place of the older one, and not of what is held
    this.#hold(entry);
    return entry;
  }

  /** Waits for an entry, or for undefined, when there will never be one again. */
  wait<R>(
    receive: (entry: ItemEntry<T> | undefined) => R,
    signal?: AbortSignal,
    group?: WaitGroup<ItemEntry<T> | undefined>,
  ): Promise<R> {
    return this.#takers.wait(receive, signal, group);
  }

  /** Whether nothing will ever be ready again. */
  get hasEnded(): boolean {
    return this.#isShutDown && this.ready.size === 0 && this.#heldAgain === 0;
  }

  /** @returns false, and changes nothing, if that hand-out of the entry is over. */
  finish(entry: ItemEntry<T>, handOut: number): boolean {
    if (!entry.isHeld || entry.handOut !== handOut) return false;
    this.#held--;
    this.#metrics?.finished(entry);
    if (entry.phase === HELD_AGAIN) {
      this.#heldAgain--;
      this.#offer(entry);
    } else this.table.release(entry);
    if (this.#isShutDown) this.#settle();
    return true;
  }

  /**
   * Takes back an entry that was handed out and not worked through. It is the first to be handed out again, of several
   * the one that had been handed out first.
   */
  putBack(entry: ItemEntry<T>, handOut: number): void {
    if (!entry.isHeld || entry.handOut !== handOut) return;
    if (entry.phase === HELD_AGAIN) this.#heldAgain--;
    this.#held--;
    this.#metrics?.putBack(entry);
    if (this.#takers.size > 0) this.#offer(entry);
    else {
      entry.phase = QUEUED;
      this.#queueInFront(entry);
    }
  }

  shutDown(): void {
    this.#isShutDown = true;
    this.#settle();
  }

  /** Resolves when it is shut down, and nothing is ready or held. */
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
      entry.handOut = 0;
      this.ready.push(entry);
    }
  }

  /** In front of all but those that were taken back like it, and had been handed out before. */
  #queueInFront(entry: ItemEntry<T>): void {
    const before: ItemEntry<T>[] = [];
    for (let { first } = this.ready; isTakenBackBefore(first, entry); { first } = this.ready) {
      before.push(first);
      this.ready.shift();
    }
    this.ready.unshift(entry);
    for (const earlier of before.reverse()) this.ready.unshift(earlier);
  }

  #hold(entry: ItemEntry<T>): void {
    entry.phase = HELD;
    entry.handOut = ++this.#handOuts;
    this.#held++;
    this.#metrics?.handedOut(entry);
  }

  /** Resolves the promises of callers that wait for the end. */
  #settle(): void {
    if (!this.hasEnded) return;
    this.#takers.giveAll(undefined);
    if (this.#held > 0) return;
    this.#metrics?.remove();
    this.#drains.giveAll();
  }
}

function isTakenBackBefore<T>(first: ItemEntry<T> | undefined, entry: ItemEntry<T>): first is ItemEntry<T> {
  return first !== undefined && first.handOut > 0 && first.handOut < entry.handOut;
}
