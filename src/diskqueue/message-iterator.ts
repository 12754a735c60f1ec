import { EscapementError } from '../core/errors.ts';
import { WaitGroup } from '../core/wait-line.ts';
import type { Delivery } from './backend-queue.ts';
import type { HandOuts, Receivers } from './hand-outs.ts';

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** Messages, one after the other: asking for the next one acknowledges the one before. It ends when the queue is closed. */
export class MessageIterator implements AsyncIterableIterator<Uint8Array, undefined, undefined> {
  readonly #handOuts: HandOuts;
  readonly #receivers: Receivers = new WaitGroup();
  #current: Delivery | undefined;
  #isOver = false;

  constructor(handOuts: HandOuts) {
    this.#handOuts = handOuts;
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#current?.ack();
    this.#current = undefined;
    if (this.#isOver) return END;
    const delivery = await this.#take();
    if (delivery === undefined) return END;
    this.#current = delivery;
    return { done: false, value: delivery.data };
  }

  /** The loop was left: the message it was at was not worked through. */
  return(): Promise<IteratorReturnResult<undefined>> {
    this.#isOver = true;
    this.#receivers.dismiss(undefined);
    this.#current?.nack();
    this.#current = undefined;
    return Promise.resolve(END);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #take(): Promise<Delivery | undefined> {
    try {
      return await this.#handOuts.take(undefined, this.#receivers);
    } catch (error) {
      if (error instanceof EscapementError && error.code === 'ERR_QUEUE_CLOSED') return undefined;
      throw error;
    }
  }
}
