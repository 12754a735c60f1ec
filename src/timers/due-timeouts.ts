import { inOwnTurn } from '../core/own-turn.ts';

/** Runs a timeout whose delay is over. */
export const RUN: unique symbol = Symbol('escapement.timers.run');

/** A timeout whose delay can be over. */
export interface DueTimeout {
  [RUN](): void;
}

/**
 * The timeouts whose delay is over: first in, first out, each in a turn of the host's event loop of its own.
 *
 * HOW and WHY. The host runs `process.nextTick` callbacks and microtasks between two callbacks of timeouts, and reports
 * what one throws before it calls the next. No public function does that, but the host does it between two turns, too:
 *
 *     wake-up    queue a turn for b, one for c ─► run a ─► ticks, microtasks
 *     turns                                       run b ─► ticks, microtasks ─► run c ─► ticks, microtasks
 *
 * The turns are queued before `a` runs, so they come before every immediate that a callback sets. A turn takes the
 * timeout that is first by then: one that is cleared or refreshed meanwhile leaves, and the last turn has nothing to do.
 */
export class DueTimeouts {
  /** In order. */
  readonly #due = new Set<DueTimeout>();
  /** Lives as long as the set is not empty: a new one would pass all that were deleted before the first. */
  #inOrder = this.#due.values();
  /** The turns that are queued. */
  #turns = 0;

  add(timeout: DueTimeout): void {
    if (this.#due.size === 0) this.#inOrder = this.#due.values();
    this.#due.add(timeout);
  }

  delete(timeout: DueTimeout): void {
    this.#due.delete(timeout);
  }

  /** Runs the first one now, and the others in turns of their own. What the first one throws is the caller's. */
  run(): void {
    for (const others = this.#due.size - 1; this.#turns < others; this.#turns++) inOwnTurn(this.#runTurn);
    this.#runFirst();
  }

  readonly #runTurn = (): void => {
    this.#turns--;
    this.#runFirst();
  };

  #runFirst(): void {
    if (this.#due.size === 0) return;
    const timeout = this.#inOrder.next().value as DueTimeout;
    this.#due.delete(timeout);
    timeout[RUN]();
  }
}
