/** The first ring, in slots. Sizes are powers of two, so that a position is found with a mask. */
const SMALLEST = 16;
/** A ring of up to this many slots (128 KB) stays as it is when it empties: it would soon be made again. */
const STAYS = 16_384;

/**
 * A queue of values in a ring: first in, first out.
 *
 * HOW. The array is a circle; it doubles when it is full, and, if it is large, halves when three quarters are empty.
 *
 *          head            head + size
 *            ▼                  ▼
 *      [ . . a b c d e f g h i . . . . . ]
 *
 * WHY not `Array.prototype.shift`: V8 moves every element once an array is large. A slot that was taken is cleared, so
 * that the queue holds nothing that it has given away. O(1), amortized.
 */
export class RingQueue<T> {
  #slots: (T | undefined)[] = new Array<undefined>(SMALLEST);
  #mask = SMALLEST - 1;
  #head = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The value that `shift` would take. */
  get first(): T | undefined {
    return this.#slots[this.#head];
  }

  push(value: T): void {
    if (this.#size > this.#mask) this.#resize((this.#mask + 1) * 2);
    this.#slots[(this.#head + this.#size) & this.#mask] = value;
    this.#size++;
  }

  /** Puts a value in front of all others. */
  unshift(value: T): void {
    if (this.#size > this.#mask) this.#resize((this.#mask + 1) * 2);
    this.#head = (this.#head - 1) & this.#mask;
    this.#slots[this.#head] = value;
    this.#size++;
  }

  /** Takes the first value; undefined if there is none. */
  shift(): T | undefined {
    if (this.#size === 0) return undefined;
    const value = this.#slots[this.#head];
    this.#slots[this.#head] = undefined;
    this.#head = (this.#head + 1) & this.#mask;
    this.#size--;
    if (this.#mask >= STAYS && this.#size < this.#mask >> 2) this.#resize((this.#mask + 1) >> 1);
    return value;
  }

  /** The values in order; the ring must not change meanwhile. */
  *[Symbol.iterator](): Generator<T, void> {
    for (let i = 0; i < this.#size; i++) yield this.#slots[(this.#head + i) & this.#mask] as T;
  }

  #resize(capacity: number): void {
    const slots = new Array<T | undefined>(capacity);
    for (let i = 0; i < this.#size; i++) slots[i] = this.#slots[(this.#head + i) & this.#mask];
    this.#slots = slots;
    this.#mask = capacity - 1;
    this.#head = 0;
  }
}
