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

/** Calls a function for each listener. What it throws is reported, and the other listeners are called. */
export function callEach<L>(listeners: Iterable<L>, call: (listener: L) => void): void {
  for (const listener of listeners) {
    guarded(() => {
      call(listener);
    });
  }
}
