import { setImmediate as nextTurn } from 'node:timers/promises';

/** Full collections, with the turns in between that weak references and finalizers need. */
export async function collect(): Promise<void> {
  const { gc } = globalThis;
  if (gc === undefined) throw new Error('run with --expose-gc');
  for (let i = 0; i < 3; i++) {
    await nextTurn();
    gc();
  }
}

/** Bytes that the process holds outside the code itself, after a collection. */
export async function heldBytes(): Promise<number> {
  await collect();
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  return heapUsed + external + arrayBuffers;
}
