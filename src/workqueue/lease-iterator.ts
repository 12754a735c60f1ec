import { WaitGroup } from '../core/wait-line.ts';
import type { ItemEntry } from './item-entry.ts';
import type { ItemQueue } from './item-queue.ts';
import { HandOut, type Lease } from './lease.ts';

type Step<T> = IteratorResult<Lease<T>, undefined>;

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** Leases, one after the other, until the queue has ended. Written by hand, so that leaving the loop loses nothing. */
export class LeaseIterator<T> implements AsyncIterableIterator<Lease<T>, undefined, undefined> {
  readonly #queue: ItemQueue<T>;
  readonly #signal: AbortSignal | undefined;
  /** Steps that were asked for and not answered: more than one, if somebody does not wait for the one before. */
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

  /** The loop was left. */
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
    return { done: false, value: new HandOut(this.#queue, entry) };
  }

  /** An iterator that has thrown is over. */
  #aborted(signal: AbortSignal): Promise<Step<T>> {
    this.#isOver = true;
    return Promise.reject(signal.reason as Error);
  }
}
