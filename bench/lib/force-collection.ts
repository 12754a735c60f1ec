/**
 * A full collection on demand, with or without `--expose-gc` on the command line: a smoke run inside a test
 * process must work as well.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** The first finds what died, the second frees the array buffers that the first one only queued for sweeping. */
const PASSES = 2;

let collect: (() => void) | undefined;

export function forceCollection(): void {
  collect ??= exposedCollector() ?? collectorOfNewContext();
  for (let pass = 0; pass < PASSES; pass++) collect();
}

function exposedCollector(): (() => void) | undefined {
  const { gc } = globalThis;
  if (gc === undefined) return undefined;
  return () => {
    gc();
  };
}

function collectorOfNewContext(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}
