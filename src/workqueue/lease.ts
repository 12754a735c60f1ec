import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import type { ItemEntry } from './item-entry.ts';
import type { ItemQueue } from './item-queue.ts';

/** An item that was handed out, and the right to say that it is done. */
export interface Lease<T> {
  /** What to work on. */
  readonly item: T;
  /** The work is over: if the item was added again meanwhile, it is queued. Does nothing the second time. */
  done(): void;
  /** `done()`, for `using`. */
  [Symbol.dispose](): void;
}

/** The lease of one hand-out: it can end that one alone, and not the next one of the same key. */
export class HandOut<T> implements Lease<T> {
  /** As users know it: a console prints it. */
  static readonly name = 'Lease';
  readonly item: T;
  readonly #queue: ItemQueue<T>;
  readonly #entry: ItemEntry<T>;
  readonly #handOut: number;

  constructor(queue: ItemQueue<T>, entry: ItemEntry<T>) {
    this.item = entry.item as T;
    this.#queue = queue;
    this.#entry = entry;
    this.#handOut = entry.handOut;
  }

  done(): void {
    this.#queue.finish(this.#entry, this.#handOut);
  }

  [Symbol.dispose](): void {
    this.done();
  }

  /** What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({ state: this.#isHeld ? 'held' : 'done' }));
  }

  get #isHeld(): boolean {
    return this.#entry.isHeld && this.#entry.handOut === this.#handOut;
  }
}
