/** What {@link Coalescer} is made of. */
export interface CoalescerOptions<T, R> {
  /** Does it for many, of one key. @returns one result each, in their order. */
  readonly run: (key: string, items: readonly T[]) => Promise<readonly R[]>;
  /** What one weighs, in bytes. */
  readonly bytesOf: (item: T) => number;
}

interface Asked<T, R> {
  readonly item: T;
  readonly resolve: (result: R) => void;
  readonly reject: (reason: unknown) => void;
}

/** A script stops everything else in Redis: with so many it takes a few milliseconds at most. */
const MAX_ITEMS = 500;
const MAX_BYTES = 1_048_576;

/**
 * What many callers ask for in one turn of the event loop is asked for once: a round trip and a script for all of them. One
 * who is alone waits for nothing but the rest of the turn.
 */
export class Coalescer<T, R> {
  readonly #options: CoalescerOptions<T, R>;
  readonly #asked = new Map<string, Asked<T, R>[]>();
  #isArmed = false;

  constructor(options: CoalescerOptions<T, R>) {
    this.#options = options;
  }

  /** @returns its result. Rejects with what made the piece that it is in fail. */
  ask(key: string, item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      const asked = this.#asked.get(key);
      if (asked === undefined) this.#asked.set(key, [{ item, resolve, reject }]);
      else asked.push({ item, resolve, reject });
      if (this.#isArmed) return;
      this.#isArmed = true;
      setImmediate(this.#flush);
    });
  }

  readonly #flush = (): void => {
    this.#isArmed = false;
    const all = [...this.#asked];
    this.#asked.clear();
    for (const [key, asked] of all) {
      for (const piece of this.#pieces(asked)) void this.#run(key, piece);
    }
  };

  *#pieces(asked: Asked<T, R>[]): Generator<Asked<T, R>[]> {
    let first = 0;
    let bytes = 0;
    for (const [at, { item }] of asked.entries()) {
      const more = this.#options.bytesOf(item);
      if (at > first && (at - first >= MAX_ITEMS || bytes + more > MAX_BYTES)) {
        yield asked.slice(first, at);
        first = at;
        bytes = 0;
      }
      bytes += more;
    }
    yield first === 0 ? asked : asked.slice(first);
  }

  async #run(key: string, piece: readonly Asked<T, R>[]): Promise<void> {
    try {
      const results = await this.#options.run(
        key,
        piece.map(({ item }) => item),
      );
      for (const [at, { resolve }] of piece.entries()) resolve(results[at] as R);
    } catch (error) {
      for (const { reject } of piece) reject(error);
    }
  }
}
