/** What a typed array over foreign memory is made with. */
type TypedArrayConstructor<A> = (new (buffer: ArrayBufferLike) => A) & { readonly BYTES_PER_ELEMENT: number };

/** The part of `WebAssembly.Memory` that is used here; its type is only in the browsers' library. */
interface GrowableMemory {
  readonly buffer: SharedArrayBuffer;
  grow(pages: number): number;
}
type GrowableMemoryConstructor = new (limits: {
  initial: number;
  maximum: number;
  shared: true;
}) => GrowableMemory;

/** The unit that such a memory grows by. */
const MEMORY_PAGE_BYTES = 65_536;
/** The most that one memory is allowed to grow to: 2 GiB of addresses, none of which is used until it is needed. */
const MOST_MEMORY_PAGES = 32_768;
/** Up to here growing by copy takes less than half a millisecond. */
const MOST_COPIED_BYTES = 2 ** 20;

/**
 * A typed array that grows, and never stalls its process when it is large.
 *
 * WHY. Doubling by copy stops the world: ten million rows of 24 bytes take tens of milliseconds to move. A list
 * of pages never moves, but costs a second lookup for every link that is followed (12 of 45 ns for a cancel and
 * an add). A resizable `ArrayBuffer` does neither, but its length is computed at each access (8 ns). The memory
 * of a WebAssembly module, without a module, grows in place within a reserved span of addresses, and what looks
 * at it is an ordinary typed array. It is a shared one, because growing detaches the buffer of any other kind,
 * and once a process has seen a detached buffer V8 checks for it everywhere.
 *
 * A small array is an ordinary buffer that grows by copy; so is a large one where such memory cannot be had
 * (a limit on address space, a runtime without WebAssembly), which then stalls.
 */
export class GrowableArray<A extends Int32Array | Float64Array> {
  /** Replaced by `grow`: read it anew after every call. */
  values: A;
  readonly #type: TypedArrayConstructor<A>;
  readonly #bytesPerRow: number;
  #memory: GrowableMemory | undefined;

  constructor(type: TypedArrayConstructor<A>, elementsPerRow: number, rows: number) {
    this.#type = type;
    this.#bytesPerRow = type.BYTES_PER_ELEMENT * elementsPerRow;
    this.values = new type(new ArrayBuffer(rows * this.#bytesPerRow));
  }

  /** Makes room for `rows` in all; what is new is zero. */
  grow(rows: number): void {
    const bytes = rows * this.#bytesPerRow;
    if (bytes <= this.values.byteLength) return;
    if (this.#memory !== undefined) {
      growTo(bytes, this.#memory);
      this.values = new this.#type(this.#memory.buffer);
      return;
    }
    this.#memory = bytes > MOST_COPIED_BYTES ? newMemory(bytes) : undefined;
    const moved = new this.#type(this.#memory?.buffer ?? new ArrayBuffer(this.#copiedBytes(bytes)));
    moved.set(this.values);
    this.values = moved;
  }

  /** Ahead of what is asked for, so that copying stays a constant cost per row. Whole rows. */
  #copiedBytes(bytes: number): number {
    const aheadRows = Math.ceil((this.values.byteLength * 1.5) / this.#bytesPerRow);
    return Math.max(bytes, aheadRows * this.#bytesPerRow);
  }
}

/** Undefined where it cannot be had. */
function newMemory(bytes: number): GrowableMemory | undefined {
  const { WebAssembly } = globalThis as { WebAssembly?: { Memory: GrowableMemoryConstructor } };
  try {
    const memory =
      WebAssembly && new WebAssembly.Memory({ initial: 0, maximum: MOST_MEMORY_PAGES, shared: true });
    if (memory !== undefined) growTo(bytes, memory);
    return memory;
  } catch {
    return undefined;
  }
}

function growTo(bytes: number, memory: GrowableMemory): void {
  memory.grow(Math.ceil((bytes - memory.buffer.byteLength) / MEMORY_PAGE_BYTES));
}
