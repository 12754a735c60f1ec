import { inOwnTurn } from './own-turn.ts';

/** Pieces of work in one turn of the event loop: about a millisecond of small ones. */
const PIECES_PER_TURN = 1_000;

/**
 * Lets the host have its turn now and then in a loop over work that may never wait for anything: without it no timeout
 * and no I/O would come before the end of the loop, also not the one that is to end it.
 */
export class TurnBudget {
  #left = PIECES_PER_TURN;

  /** One piece was done. @returns whether the host is due a turn: see `next`. */
  spend(): boolean {
    return --this.#left <= 0;
  }

  /** Resolves in a turn of its own, after the I/O that is ready. */
  async next(): Promise<void> {
    await new Promise<void>(inOwnTurn);
    this.#left = PIECES_PER_TURN;
  }
}
