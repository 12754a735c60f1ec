/** The least number of items whose failures can be counted: one for each generation. */
export const MIN_FAILURE_COUNTS = 2;

/**
 * How often each item has failed.
 *
 * HOW it is bounded. Two generations: counts are made in the young one, and looked up in both. When the young one is
 * half of what is allowed and another item fails, it becomes the old one, and what was in the old one is forgotten. So
 * an item that fails again before as many others have failed keeps its count, the others go within one or two
 * generations, and nothing is ever sorted or moved in a list. Unbounded, there is only a young one.
 *
 * WHY. client-go keeps a count for every item that was ever given up without `forget` (kubernetes#138743).
 */
export class FailureCounts<T> {
  readonly #perGeneration: number;
  #young = new Map<T, number>();
  #old = new Map<T, number>();

  constructor(maxItems: number) {
    this.#perGeneration = Math.max(Math.floor(maxItems / 2), 1);
  }

  /** Items that are remembered. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  get(item: T): number {
    return this.#young.get(item) ?? this.#old.get(item) ?? 0;
  }

  /** @returns how often the item had failed before. */
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
