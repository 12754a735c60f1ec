/** What is alive, in bytes, after a forced collection: the heap, and what hangs on it outside. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { forceCollection } from './force-collection.ts';
import { uncountedBytes } from './uncounted-memory.ts';

/** `external` includes `arrayBuffers`: adding both would count every typed array twice. */
export async function liveBytes(): Promise<number> {
  // Looking at a weak reference keeps its target alive until the turn ends: those of the last look must be let go.
  await nextTurn();
  forceCollection();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external + uncountedBytes();
}
