import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { WaitGroup } from '../core/wait-line.ts';
import type { ItemQueue } from './item-queue.ts';
import type { ItemEntry } from './item-table.ts';

/** The right to work on an item, until it is done. */
export interface Lease<T> {
  /** The item. */
  readonly item: T;
  /** Ends the lease: if the item was added again meanwhile, it is queued. Does nothing the second time. */
  done(): void;
  /** `done()`, for `using`. */
  [Symbol.dispose](): void;
}

/** One lease of a key: `done` ends this lease and not the next one of the same key. */
class ItemLease<T> implements Lease<T> {
  /** The public name, which a console prints. */
  static readonly name = 'Lease';
  readonly item: T;
  readonly #queue: ItemQueue<T>;
  readonly #entry: ItemEntry<T>;
  readonly #lease: number;

  constructor(queue: ItemQueue<T>, entry: ItemEntry<T>) {
    this.item = entry.item as T;
    this.#queue = queue;
    this.#entry = entry;
    this.#lease = entry.lease;
  }

  done(): void {
    this.#queue.finish(this.#entry, this.#lease);
  }

  [Symbol.dispose](): void {
    this.done();
  }

  /** Returns what a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({ state: this.#isHeld ? 'held' : 'done' }));
  }

  get #isHeld(): boolean {
    return this.#entry.isHeld && this.#entry.lease === this.#lease;
  }
}

type Step<T> = IteratorResult<Lease<T>, undefined>;

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** Iterates over leases until the queue has ended. Not a generator, so that an item is not lost when the loop is left. */
export class LeaseIterator<T> implements AsyncIterableIterator<Lease<T>, undefined, undefined> {
  readonly #queue: ItemQueue<T>;
  readonly #signal: AbortSignal | undefined;
  /** Pending steps: more than one if the caller does not await each of them. */
  readonly #waiting = new WaitGroup<ItemEntry<T> | undefined>();
  #isOver = false;

  constructor(queue: ItemQueue<T>, signal: AbortSignal | undefined) {
    this.#queue = queue;
    this.#signal = signal;
  }

  next(): Promise<Step<T>> {
    if (this.#isOver) return Promise.resolve(END);
    if (this.#signal?.aborted === true) return this.#aborted(this.#signal);
    const entry = this.#queue.take();
    if (entry !== undefined || this.#queue.hasEnded) return Promise.resolve(this.#stepOf(entry));
    const step = this.#queue.wait((taken) => this.#stepOf(taken), this.#signal, this.#waiting);
    if (this.#signal !== undefined) {
      step.catch(() => {
        this.#isOver = true;
      });
    }
    return step;
  }

  /** Called when the loop is left. */
  return(): Promise<Step<T>> {
    this.#isOver = true;
    this.#waiting.dismiss(undefined);
    return Promise.resolve(END);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #stepOf(entry: ItemEntry<T> | undefined): Step<T> {
    if (entry === undefined) return END;
    return { done: false, value: new ItemLease(this.#queue, entry) };
  }

  /** Ends the iterator with the signal's reason. */
  #aborted(signal: AbortSignal): Promise<Step<T>> {
    this.#isOver = true;
    return Promise.reject(signal.reason as Error);
  }
}
