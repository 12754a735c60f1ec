/**
 * The keys that wait for their turn to be checked, first in first out.
 *
 * WHY. What completes one operation often triggers the next: checked where they are triggered, a chain of them
 * would be as deep as it is long (Kafka's stack overflows at about 1 500, KAFKA-17509). So the outermost call checks
 * one key after the other, and a trigger from inside only puts its key in line. A key that is in line already need
 * not stand there twice: its check will begin after both triggers.
 */
export class PendingKeys {
  /** In the order in which they were added. */
  readonly #keys = new Set<unknown>();
  /** Goes on where it was, and sees what is added meanwhile: a new one would step over all that was taken. */
  #line: Iterator<unknown> | undefined;

  add(key: unknown): void {
    this.#keys.add(key);
  }

  /** Takes the first key; undefined if there is none, which is no key. */
  take(): unknown {
    if (this.#keys.size === 0) {
      this.#line = undefined;
      return undefined;
    }
    this.#line ??= this.#keys.values();
    const { value } = this.#line.next() as IteratorYieldResult<unknown>;
    this.#keys.delete(value);
    return value;
  }

  /** Emptying an empty set would make a new table all the same. */
  clear(): void {
    if (this.#keys.size > 0) this.#keys.clear();
    this.#line = undefined;
  }
}
