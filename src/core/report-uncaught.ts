import { inOwnTurn } from './own-turn.ts';

/** Throws the error in a turn of its own, where it is an uncaught exception of the host and interrupts no loop of ours. */
export function reportUncaught(error: unknown): void {
  inOwnTurn(() => {
    throw error;
  });
}

/** Calls user code; what it throws is an uncaught exception and does not stop the caller. */
export function guarded(call: () => void): void {
  try {
    call();
  } catch (error) {
    reportUncaught(error);
  }
}
