/** The first wait, in milliseconds: short enough for a hiccup. */
const FIRST_MS = 100;
/** The longest wait, in milliseconds: how late it may be noticed that a broker is back. */
const LONGEST_MS = 10_000;

/**
 * How long to wait before something is tried again that has failed: twice as long each time, up to ten seconds, and
 * somewhere in the upper half of that, so that a fleet does not come back in step.
 */
export class BackOff {
  #failures = 0;

  /** It failed. @returns how long to wait, in milliseconds. */
  next(): number {
    const mostMs = Math.min(FIRST_MS * 2 ** Math.min(this.#failures++, 10), LONGEST_MS);
    return mostMs * (0.5 + Math.random() / 2);
  }

  /** It worked. */
  reset(): void {
    this.#failures = 0;
  }
}
