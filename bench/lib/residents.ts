/**
 * Keeps the first run of each contestant of a case, closed, until the case is over.
 *
 * WHY. A collection that finds no object of a shape takes the code with it that V8 has compiled for that shape. With
 * a collection before every round, whoever is made of objects of their own would start every round in the
 * interpreter, and the host, whose shapes are always in use, would not. No program is like that: its timer lives
 * as long as itself.
 */
export class Residents {
  readonly #kept = new Map<unknown, unknown>();

  /** `owner` is the same for all runs of a contestant. */
  keepFirst(owner: unknown, run: unknown): void {
    if (!this.#kept.has(owner)) this.#kept.set(owner, run);
  }
}
