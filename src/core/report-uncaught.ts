import { inOwnTurn } from './own-turn.ts';

/** Throws the error in a turn of its own, where it is the host's uncaught exception and interrupts nobody's loop. */
export function reportUncaught(error: unknown): void {
  inOwnTurn(() => {
    throw error;
  });
}
