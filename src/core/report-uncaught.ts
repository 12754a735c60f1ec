/** Taken when the module loads: a test's fake timers must not be able to swallow an error. */
const inOwnTurn: (callback: () => void) => void =
  typeof globalThis.setImmediate === 'function' ? globalThis.setImmediate : globalThis.setTimeout;

/** Throws the error in a turn of its own, where it is the host's uncaught exception and interrupts nobody's loop. */
export function reportUncaught(error: unknown): void {
  inOwnTurn(() => {
    throw error;
  });
}
