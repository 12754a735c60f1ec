import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import { EscapementError } from '../core/errors.ts';
import { WaitGroup } from '../core/wait-line.ts';
import type { Delivery } from './backend-queue.ts';

/** A delivery that is settled by the first call of `ack` or `nack`. */
export class SettleOnce implements Delivery {
  /** The name in a console: that of the public interface. */
  static readonly name = 'Delivery';
  readonly data: Uint8Array;
  #settle: ((isAcked: boolean) => void) | undefined;

  constructor(data: Uint8Array, settle: (isAcked: boolean) => void) {
    this.data = data;
    this.#settle = settle;
  }

  ack(): void {
    this.#once(true);
  }

  nack(): void {
    this.#once(false);
  }

  /** What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      data: undefined,
      bytes: this.data.length,
      state: this.#settle === undefined ? 'settled' : 'in flight',
    }));
  }

  #once(isAcked: boolean): void {
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.(isAcked);
  }
}

/** Waits for a message in a group; undefined when the group is dismissed with it. */
export type TakeMessage<V> = (group: WaitGroup<V | undefined>) => Promise<Delivery | undefined>;

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** Iterates over messages, and acknowledges each when the next one is requested. Ends when the queue is closed. */
export class MessageIterator<V> implements AsyncIterableIterator<Uint8Array, undefined, undefined> {
  readonly #take: TakeMessage<V>;
  readonly #receivers = new WaitGroup<V | undefined>();
  /** Deliveries in flight: at most one, unless `next` is called again before its promise settles. */
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

  /** Ends the loop. The message of its last turn may be half processed, so it returns to the queue. */
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
      delivery.nack(); // the loop ended while the message was on its way
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
