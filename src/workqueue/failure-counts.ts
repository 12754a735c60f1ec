/** The smallest `maxItems`: one for each generation. */
export const MIN_FAILURE_COUNTS = 2;

/**
 * How often each item has failed.
 *
 * HOW it is bounded. Two generations: counts are written in the young one, and read in both. When the young one has half of
 * `maxItems` and another item fails, it becomes the old one, and the old one is forgotten. So an item that fails again before as
 * many others have failed keeps its count, other counts are forgotten after one or two generations, and nothing is sorted or
 * moved in a list. Without a bound there is only a young one.
 *
 * WHY. client-go keeps a count for every item that was ever dropped without `forget` (kubernetes#138743).
 */
export class FailureCounts<T> {
  readonly #perGeneration: number;
  #young = new Map<T, number>();
  #old = new Map<T, number>();

  /** @param maxItems - at least MIN_FAILURE_COUNTS, or `Infinity`. */
  constructor(maxItems: number) {
    this.#perGeneration = Math.floor(maxItems / 2);
  }

  /** Number of items with a count. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  get(item: T): number {
    return this.#young.get(item) ?? this.#old.get(item) ?? 0;
  }

  /** Counts a failure. @returns how often the item had failed before. */
  increment(item: T): number {
    const failures = this.get(item);
    if (this.#young.size >= this.#perGeneration && !this.#young.has(item)) this.#age();
    this.#young.set(item, failures + 1);
    if (this.#old.size > 0) this.#old.delete(item);
    return failures;
  }

  forget(item: T): void {
    this.#young.delete(item);
    this.#old.delete(item);
  }

  #age(): void {
    this.#old = this.#young;
    this.#young = new Map();
  }
}
