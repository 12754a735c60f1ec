/**
 * Live bytes after a forced collection: the heap, the memory outside that it refers to, and the shared memories of
 * WebAssembly, which `process.memoryUsage()` does not count.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { forceCollection } from './collector.ts';

interface Memory {
  readonly buffer: ArrayBufferLike;
}

type MemoryConstructor = new (...limits: unknown[]) => Memory;

let sharedMemories: WeakRef<Memory>[] = [];
let isTracking = false;

/** `external` includes `arrayBuffers`: adding both would count every typed array twice. */
export async function liveBytes(): Promise<number> {
  // Reading a weak reference keeps its target alive until the turn ends: those of the last call must be released.
  await nextTurn();
  forceCollection();
  const { heapUsed, external } = process.memoryUsage();
  sharedMemories = sharedMemories.filter((memory) => memory.deref() !== undefined);
  const shared = sharedMemories.map((memory) => memory.deref()?.buffer.byteLength ?? 0);
  return shared.reduce((sum, bytes) => sum + bytes, heapUsed + external);
}

/** Call it before anything that is measured is made: it wraps the constructor of memories. */
export function trackSharedMemories(): void {
  const { WebAssembly } = globalThis as { WebAssembly?: { Memory: MemoryConstructor } };
  if (isTracking || WebAssembly === undefined) return;
  isTracking = true;
  WebAssembly.Memory = new Proxy(WebAssembly.Memory, {
    construct(target, limits, newTarget): Memory {
      const memory = Reflect.construct(target, limits, newTarget) as Memory;
      if (memory.buffer instanceof SharedArrayBuffer) sharedMemories.push(new WeakRef(memory));
      return memory;
    },
  });
}

/**
 * Calls a function that a module exports, in a process that does nothing else: memory is measured in one.
 *
 * @returns what the function returns, as JSON.
 */
export async function inChild<F extends (...values: never[]) => unknown>(
  module: URL,
  name: string,
  ...values: Parameters<F>
): Promise<Awaited<ReturnType<F>>> {
  const words = [join(import.meta.dirname, 'child.ts'), module.href, name, JSON.stringify(values)];
  const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, ...words]);
  return JSON.parse(stdout) as Awaited<ReturnType<F>>;
}
