/** Random numbers that are the same in every run, so that every contestant gets the very same requests. */
export class SeededRandom {
  #state: number;
  /** The polar method makes normal values in pairs; the second one waits here. */
  #spareGaussian: number | undefined;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Uniform in [0, 1). Mulberry32, by Tommy Ettinger: 32 bits of state, every one of them well mixed. */
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

  /** Standard normal, by Marsaglia's polar method, which is also what Java's `Random` uses. */
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
