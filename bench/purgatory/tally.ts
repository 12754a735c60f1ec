/** Who has completed: every request must, once, and some of them by their timeout. */
export class Tally {
  readonly #completions: Uint8Array;
  readonly #onAllDone: () => void;
  #completed = 0;
  #expired = 0;

  /** @param onAllDone - called when the last of `size` requests completes. */
  constructor(size: number, onAllDone: () => void = () => undefined) {
    this.#completions = new Uint8Array(size);
    this.#onAllDone = onAllDone;
  }

  get completed(): number {
    return this.#completed;
  }

  get expired(): number {
    return this.#expired;
  }

  complete(id: number): void {
    this.#completions[id] = (this.#completions[id] ?? 0) + 1;
    if (++this.#completed === this.#completions.length) this.#onAllDone();
  }

  expire(): void {
    this.#expired++;
  }

  check(): string | undefined {
    const wrong = this.#completions.findIndex((completions) => completions !== 1);
    return wrong === -1 ? undefined : `request ${wrong} completed ${this.#completions[wrong] ?? 0} times`;
  }
}
