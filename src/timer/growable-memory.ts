/** The part of `WebAssembly.Memory` that is used here; its type is only in the browsers' library. */
interface SharedMemory {
  readonly buffer: SharedArrayBuffer;
  grow(pages: number): number;
}
type SharedMemoryConstructor = new (limits: {
  initial: number;
  maximum: number;
  shared: true;
}) => SharedMemory;

/** The unit that such a memory grows by. */
const MEMORY_PAGE_BYTES = 65_536;
/** The most that one memory is allowed to grow to: 2 GiB of addresses, none of which is used until it is needed. */
const MOST_MEMORY_PAGES = 32_768;
/** Up to here growing by copy takes less than half a millisecond. */
const MOST_COPIED_BYTES = 2 ** 20;
/** The largest element of a view of the memory. */
const ELEMENT_BYTES = 8;

/**
 * Flat memory that grows, and never stalls its process when it is large.
 *
 * WHY. Doubling by copy stops the world: ten million rows of 24 bytes take tens of milliseconds to move. A list
 * of pages never moves, but costs a second lookup for every link that is followed (12 of 45 ns for a cancel and
 * an add). A resizable `ArrayBuffer` does neither, but its length is computed at each access (8 ns). The memory
 * of a WebAssembly module, without a module, grows in place within a reserved span of addresses, and its views
 * are ordinary typed arrays. It is a shared one, because growing detaches the buffer of any other kind, and once
 * a process has seen a detached buffer V8 checks for it everywhere.
 *
 * A small memory is an ordinary buffer that grows by copy; so is a large one where shared memory is not available
 * (a limit on address space, a runtime without WebAssembly), which then stalls.
 */
export class GrowableMemory {
  /** Replaced by `grow`: views must be made anew after every call. */
  buffer: ArrayBufferLike;
  #shared: SharedMemory | undefined;

  constructor(bytes: number) {
    this.buffer = new ArrayBuffer(bytes);
  }

  /** Grows to at least this size, which must be more than before; new bytes are zero. */
  grow(bytes: number): void {
    const old = this.buffer;
    if (this.#shared !== undefined) {
      growTo(bytes, this.#shared);
      this.buffer = this.#shared.buffer;
      return;
    }
    if (bytes > MOST_COPIED_BYTES) this.#shared = newSharedMemory(bytes);
    this.buffer = this.#shared?.buffer ?? new ArrayBuffer(copiedBytes(bytes, old.byteLength));
    new Uint8Array(this.buffer).set(new Uint8Array(old));
  }
}

/** More than is needed, so that copying stays a constant cost per byte. */
function copiedBytes(bytes: number, oldBytes: number): number {
  return Math.max(bytes, Math.ceil((oldBytes * 1.5) / ELEMENT_BYTES) * ELEMENT_BYTES);
}

/** Returns undefined where the host has no such memory. */
function newSharedMemory(bytes: number): SharedMemory | undefined {
  const { WebAssembly } = globalThis as unknown as { WebAssembly: { Memory: SharedMemoryConstructor } };
  try {
    const memory = new WebAssembly.Memory({ initial: 0, maximum: MOST_MEMORY_PAGES, shared: true });
    growTo(bytes, memory);
    return memory;
  } catch {
    return undefined;
  }
}

function growTo(bytes: number, memory: SharedMemory): void {
  memory.grow(Math.ceil((bytes - memory.buffer.byteLength) / MEMORY_PAGE_BYTES));
}
