import type { Timer } from '../timer/timer.ts';
import { isTimed, setTimed, type DelayedOperation } from './delayed-operation.ts';

/** The timeouts of one purgatory's operations, on a timer that it may share, and their exact number. */
export class OperationTimeouts {
  readonly #timer: Timer | undefined;
  #size = 0;

  /** Without a timer nothing ever times out. */
  constructor(timer: Timer | undefined) {
    this.#timer = timer;
  }

  /** Operations that wait for their timeout. */
  get size(): number {
    return this.#size;
  }

  /** Starts the timeout of an operation. Throws what the timer throws, and then has not. */
  start(operation: DelayedOperation): void {
    if (this.#timer === undefined || operation.delayMs === Infinity) return;
    setTimed(operation, true);
    this.#size++;
    try {
      // Last, because another's timer may run what is due at once.
      this.#timer.add(operation);
    } catch (error) {
      this.gone(operation);
      throw error;
    }
  }

  /** The operation no longer waits for its timeout. */
  gone(operation: DelayedOperation): void {
    if (!isTimed(operation)) return;
    setTimed(operation, false);
    this.#size--;
  }
}
