import { CONSOLE_VIEW, consoleView } from '../core/console-view.ts';
import type { Delivery } from './backend-queue.ts';

/** A message in somebody's hands, until it is settled: the first time counts. */
export class SettleOnce implements Delivery {
  /** As users know it: a console prints it. */
  static readonly name = 'Delivery';
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

  /** What a console prints. */
  [CONSOLE_VIEW](): object {
    return consoleView(this, () => ({
      data: undefined,
      bytes: this.data.length,
      state: this.#settle === undefined ? 'settled' : 'in flight',
    }));
  }

  #once(isDone: boolean): void {
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.(isDone);
  }
}
