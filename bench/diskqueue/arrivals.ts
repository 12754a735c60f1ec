/** For stores that cannot tell when there is more to read: whoever has put something says so. */
export class Arrivals {
  #hasNew = false;
  #wake: (() => void) | undefined;

  announce(): void {
    this.#hasNew = true;
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Resolves when something was announced since the last time. One at a time may wait. */
  async wait(): Promise<void> {
    if (!this.#hasNew) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#hasNew = false;
  }
}
