/** What the workers do, whatever their queue: as little as possible. */
export interface Work {
  work(key: string): void;
}

/** Jobs that come in bursts. */
export class Jobs implements Work {
  worked = 0;
  #characters = 0;
  #expected = 0;
  #expectedCharacters = 0;
  #finish: () => void = () => undefined;

  work(key: string): void {
    this.worked++;
    this.#characters += key.length;
    if (this.worked === this.#expected) this.#finish();
  }

  /** Before the jobs are added. @returns a promise that resolves when all of them are done. */
  expect(keys: readonly string[]): Promise<void> {
    this.#expected += keys.length;
    for (const key of keys) this.#expectedCharacters += key.length;
    return new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  check(): string | undefined {
    if (this.worked !== this.#expected) return `${this.worked} jobs done, not ${this.#expected}`;
    return this.#characters === this.#expectedCharacters
      ? undefined
      : 'jobs done for other keys than were added';
  }
}
