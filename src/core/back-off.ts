/** Options of a {@link BackOff}. */
export interface BackOffOptions {
  /** The first wait, in milliseconds. @default 100: short enough for a hiccup */
  readonly firstMs?: number;
  /** The longest wait, in milliseconds. @default 10_000 */
  readonly longestMs?: number;
  /** The part of a wait that is random, from 0 to 1. @default 0.5 */
  readonly jitter?: number;
}

/**
 * Computes how long to wait before a failed operation is tried again.
 *
 *      failure   1    2    3    4   …         twice as long each time, up to the longest wait;
 *      wait    100  200  400  800   10_000    by default a random value from the upper half
 *
 * WHY random: clients that lost the same peer would otherwise all return to it at the same time. O(1), two numbers of state.
 */
export class BackOff {
  readonly #options: Required<BackOffOptions>;
  #failures = 0;

  constructor({ firstMs = 100, longestMs = 10_000, jitter = 0.5 }: BackOffOptions = {}) {
    this.#options = { firstMs, longestMs, jitter };
  }

  /** Counts a failure. @returns how long to wait, in milliseconds. */
  next(): number {
    const { firstMs, longestMs, jitter } = this.#options;
    const waitMs = Math.min(firstMs * 2 ** this.#failures++, longestMs);
    return waitMs * (1 - jitter * Math.random());
  }

  /** The operation has succeeded: the next wait is the first one again. */
  reset(): void {
    this.#failures = 0;
  }
}
