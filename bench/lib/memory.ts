/**
 * Live bytes after a forced collection: the heap, the memory outside that it refers to, and what Node 20 does not count
 * in `process.memoryUsage()`: bytes that `ArrayBuffer.prototype.resize` commits, and shared memories of WebAssembly.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { forceCollection } from './collector.ts';

/** An object that holds memory outside the heap. */
interface Holder {
  readonly buffer: ArrayBufferLike;
}

interface Tracked {
  readonly holder: WeakRef<Holder>;
  /** Bytes of it that the host counts. */
  readonly countedBytes: number;
}

type MemoryConstructor = new (...limits: unknown[]) => Holder;

/** Large enough to stand out from what else a few microseconds allocate. */
const PROBE_BYTES = 2 ** 23;

let tracked: Tracked[] = [];
let isTracking = false;

/** `external` includes `arrayBuffers`: adding both would count every typed array twice. */
export async function liveBytes(): Promise<number> {
  // Reading a weak reference keeps its target alive until the turn ends: those of the last call must be released.
  await nextTurn();
  forceCollection();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external + uncountedBytes();
}

/** Call it before anything that is measured is made: it wraps the functions that make and grow memory. */
export function trackUncountedMemory(): void {
  if (isTracking) return;
  isTracking = true;
  if (!hostCountsResizes()) trackResizes();
  trackSharedMemories();
}

function uncountedBytes(): number {
  tracked = tracked.filter(({ holder }) => holder.deref() !== undefined);
  return tracked.reduce(
    (sum, { holder, countedBytes }) =>
      sum + (holder.deref()?.buffer.byteLength ?? countedBytes) - countedBytes,
    0,
  );
}

function hostCountsResizes(): boolean {
  const probe = new ArrayBuffer(0, { maxByteLength: PROBE_BYTES });
  const before = process.memoryUsage().external;
  probe.resize(PROBE_BYTES);
  return process.memoryUsage().external - before > probe.byteLength / 2;
}

function trackResizes(): void {
  // eslint-disable-next-line @typescript-eslint/unbound-method -- called with its `this` below
  const resize = ArrayBuffer.prototype.resize;
  const views = new WeakMap<ArrayBuffer, Uint8Array>();
  ArrayBuffer.prototype.resize = function (this: ArrayBuffer, bytes?: number): void {
    if (!views.has(this)) {
      // The host has counted the initial bytes of the buffer. Only the buffer keeps the view alive.
      const view = new Uint8Array(this);
      views.set(this, view);
      tracked.push({ holder: new WeakRef(view), countedBytes: this.byteLength });
    }
    resize.call(this, bytes);
  };
}

function trackSharedMemories(): void {
  const { WebAssembly } = globalThis as { WebAssembly?: { Memory: MemoryConstructor } };
  if (WebAssembly === undefined) return;
  WebAssembly.Memory = new Proxy(WebAssembly.Memory, {
    construct(target, limits, newTarget): Holder {
      const memory = Reflect.construct(target, limits, newTarget) as Holder;
      if (memory.buffer instanceof SharedArrayBuffer) {
        tracked.push({ holder: new WeakRef(memory), countedBytes: 0 });
      }
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
