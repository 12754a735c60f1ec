/**
 * Bytes that `process.memoryUsage()` does not see, measured in Node 20: what `ArrayBuffer.prototype.resize`
 * commits, and the shared memories of WebAssembly. A table built on either would look free.
 */

/** Something that holds memory outside the heap, and how much of it the host already counts. */
interface Holder {
  readonly buffer: ArrayBufferLike;
}

interface Tracked {
  readonly holder: WeakRef<Holder>;
  readonly countedBytes: number;
}

type MemoryConstructor = new (...limits: unknown[]) => Holder;

/** Large enough to stand out among what else a few microseconds allocate. */
const PROBE_BYTES = 2 ** 23;

let tracked: Tracked[] = [];
let isTracking = false;

/** Call once before anything that is to be measured is made: it wraps what memory is made and grown with. */
export function trackUncountedMemory(): void {
  if (isTracking) return;
  isTracking = true;
  if (!hostCountsResizes()) trackResizes();
  trackSharedMemories();
}

/** What is held beyond what the host has counted. Run a collection first. */
export function uncountedBytes(): number {
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
      // The host has counted what the buffer was made with. The view is kept by its buffer, and by nothing else.
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
