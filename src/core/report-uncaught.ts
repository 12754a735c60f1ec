import { inOwnTurn } from './own-turn.ts';

/** Throws the error in a turn of its own, where it is an uncaught exception of the host and interrupts no loop of ours. */
export function reportUncaught(error: unknown): void {
  inOwnTurn(() => {
    throw error;
  });
}
