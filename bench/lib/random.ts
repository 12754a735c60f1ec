/** Random numbers that are the same in every run, so that every contestant gets the same work. */

/** A power of two, so that the position wraps with a mask. */
const LENGTH = 2 ** 16;
const SEED = 20_260_101;

/** Delays in whole milliseconds, because the host truncates fractions. */
export class DelaySequence {
  readonly #values: Int32Array;
  #position = 0;

  /** Uniform from `minMs` to `maxMs`, both included. */
  constructor(minMs: number, maxMs: number) {
    const random = new SeededRandom();
    this.#values = Int32Array.from({ length: LENGTH }, () => minMs + random.nextInt(maxMs - minMs + 1));
  }

  next(): number {
    this.#position = (this.#position + 1) & (LENGTH - 1);
    return this.#values[this.#position] ?? 0;
  }
}

export class SeededRandom {
  #state: number;
  /** The polar method makes normal values in pairs: this is the second one. */
  #spareGaussian: number | undefined;

  constructor(seed = SEED) {
    this.#state = seed >>> 0;
  }

  /** Uniform in [0, 1). Mulberry32 by Tommy Ettinger: 32 bits of state, every bit of the output well mixed. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 to `end - 1`. */
  nextInt(end: number): number {
    return Math.floor(this.next() * end);
  }

  /** Standard normal, by Marsaglia's polar method, which Java's `Random` uses too. */
  nextGaussian(): number {
    const spare = this.#spareGaussian;
    if (spare !== undefined) {
      this.#spareGaussian = undefined;
      return spare;
    }
    for (;;) {
      const x = 2 * this.next() - 1;
      const y = 2 * this.next() - 1;
      const square = x * x + y * y;
      if (square >= 1 || square === 0) continue;
      const scale = Math.sqrt((-2 * Math.log(square)) / square);
      this.#spareGaussian = y * scale;
      return x * scale;
    }
  }
}
