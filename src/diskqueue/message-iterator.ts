import { EscapementError } from '../core/errors.ts';
import { WaitGroup } from '../core/wait-line.ts';
import type { Delivery } from './backend-queue.ts';

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** Waits for a message, as one of a group that is dismissed with undefined. */
export type TakeMessage<V> = (group: WaitGroup<V | undefined>) => Promise<Delivery | undefined>;

/** Messages, one after the other: asking for the next one acknowledges the one before. It ends when the queue is closed. */
export class MessageIterator<V> implements AsyncIterableIterator<Uint8Array, undefined, undefined> {
  readonly #take: TakeMessage<V>;
  readonly #receivers = new WaitGroup<V | undefined>();
  /** Handed out and not asked past: one, unless somebody asks without waiting for the answer. */
  readonly #held: Delivery[] = [];
  #isOver = false;

  constructor(take: TakeMessage<V>) {
    this.#take = take;
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    for (const held of this.#held.splice(0)) held.ack();
    const delivery = this.#isOver ? undefined : await this.#next();
    return delivery === undefined ? END : this.#hold(delivery);
  }

  /** The loop was left: the message it was at was not worked through. */
  return(): Promise<IteratorReturnResult<undefined>> {
    this.#isOver = true;
    this.#receivers.dismiss(undefined);
    for (const held of this.#held.splice(0)) held.nack();
    return Promise.resolve(END);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #hold(delivery: Delivery): IteratorResult<Uint8Array, undefined> {
    if (this.#isOver) {
      delivery.nack(); // the loop was left in the moment in which it was given
      return END;
    }
    this.#held.push(delivery);
    return { done: false, value: delivery.data };
  }

  async #next(): Promise<Delivery | undefined> {
    try {
      return await this.#take(this.#receivers);
    } catch (error) {
      if (error instanceof EscapementError && error.code === 'ERR_QUEUE_CLOSED') return undefined;
      throw error;
    }
  }
}
