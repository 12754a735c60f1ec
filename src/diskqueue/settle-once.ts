import type { Delivery } from './backend-queue.ts';

/** A message in somebody's hands, until it is settled: the first time counts. */
export class SettleOnce implements Delivery {
  readonly data: Uint8Array;
  #settle: ((isDone: boolean) => void) | undefined;

  constructor(data: Uint8Array, settle: (isDone: boolean) => void) {
    this.data = data;
    this.#settle = settle;
  }

  ack(): void {
    this.#once(true);
  }

  nack(): void {
    this.#once(false);
  }

  #once(isDone: boolean): void {
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.(isDone);
  }
}
