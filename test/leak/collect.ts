import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';

/** Full collections, with the turns in between that weak references and finalizers need. */
export async function collect(): Promise<void> {
  const { gc } = globalThis;
  if (gc === undefined) throw new Error('run with --expose-gc');
  for (let i = 0; i < 3; i++) {
    await nextTurn();
    gc();
  }
}

/** Whether nothing holds any of the objects: what is compiled in the background may hold one for a while. */
export async function isCollected(...objects: readonly WeakRef<object>[]): Promise<boolean> {
  for (let round = 0; round < 50; round++) {
    await collect();
    if (objects.every((object) => object.deref() === undefined)) return true;
    await pause(10);
  }
  return false;
}

/** Bytes that the process holds outside the code itself, after a collection. */
export async function heldBytes(): Promise<number> {
  await collect();
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  return heapUsed + external + arrayBuffers;
}
