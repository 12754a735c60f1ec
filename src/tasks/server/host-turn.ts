import { inOwnTurn } from '../../core/own-turn.ts';
import { TurnBudget } from '../../core/turn-budget.ts';

/** How long handlers may hold the event loop before the host has its turn, in milliseconds. */
const LONGEST_MS = 10;

/**
 * Lets the host have its turn between handlers that never wait: after many, or after a few slow ones. Else nobody would
 * renew a lease, or hear of a cancellation, while there is something to do.
 */
export class HostTurn {
  readonly #budget = new TurnBudget();
  #startedMs = 0;
  /** Whether this turn of the event loop is timed. */
  #isTimed = false;

  /** A handler is about to be called. @returns whether the host is due a turn before: see `next`. */
  isDue(nowMs: number): boolean {
    if (!this.#isTimed) this.#time(nowMs);
    return this.#budget.spend() || nowMs - this.#startedMs > LONGEST_MS;
  }

  /** Resolves in the next turn. */
  next(): Promise<void> {
    return this.#budget.next();
  }

  #time(nowMs: number): void {
    this.#isTimed = true;
    this.#startedMs = nowMs;
    inOwnTurn(() => {
      this.#isTimed = false;
    });
  }
}
