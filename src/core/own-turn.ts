/**
 * Calls back in a turn of the host's own, after the I/O that is ready. Taken when the module loads: a test's fake
 * timers must not be able to swallow what is called there.
 */
export const inOwnTurn: (callback: () => void) => void =
  typeof globalThis.setImmediate === 'function' ? globalThis.setImmediate : globalThis.setTimeout;
