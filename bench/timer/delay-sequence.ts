/** The delays of a case: seeded, so that every contestant and every run gets the very same ones, in order. */

/** A power of two, so that the position wraps with a mask. */
const LENGTH = 2 ** 16;
const SEED = 20_260_101;

export class DelaySequence {
  /** Whole milliseconds: the host truncates fractions and would be handed more lists to keep than it asked for. */
  readonly #values: Int32Array;
  #position = 0;

  /** Uniform in `minMs` to `maxMs`, both included. */
  constructor(minMs: number, maxMs: number) {
    let state = SEED;
    this.#values = Int32Array.from({ length: LENGTH }, () => {
      state = nextRandom(state);
      return minMs + Math.floor((state / 2 ** 32) * (maxMs - minMs + 1));
    });
  }

  next(): number {
    this.#position = (this.#position + 1) & (LENGTH - 1);
    return this.#values[this.#position] ?? 0;
  }
}

/** Places in a ring, in an order nobody can predict and everybody shares. Computed: a table would cost cache. */
export class RandomPlaces {
  readonly #size: number;
  #state = SEED;

  constructor(size: number) {
    this.#size = size;
  }

  next(): number {
    this.#state = nextRandom(this.#state);
    return Math.floor((this.#state / 2 ** 32) * this.#size);
  }
}

/** Numerical Recipes' linear congruential generator, of period 2^32; its high bits are what is used. */
function nextRandom(state: number): number {
  return (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
}
