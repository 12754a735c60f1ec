/** The host rounds shorter waits up to this. */
const SHORTEST_WAIT_MS = 1;

/**
 * Calls `arrive` at the moments of a Poisson process: gaps are independent and exponential, as when many users who
 * know nothing of each other send requests. The moments are fixed beforehand: a server that answers slowly is not
 * spared, and a caller that was late catches up.
 */
export class PoissonArrivals {
  readonly #meanGapMs: number;
  readonly #endMs: number;
  readonly #arrive: () => void;
  readonly #onEnd: () => void;
  #nextMs: number;
  #timeout: NodeJS.Timeout | undefined;

  constructor(options: {
    ratePerSecond: number;
    durationMs: number;
    arrive: () => void;
    /** Called once, when the time is up or `stop` was called. */
    onEnd: () => void;
  }) {
    const nowMs = performance.now();
    this.#meanGapMs = 1_000 / options.ratePerSecond;
    this.#endMs = nowMs + options.durationMs;
    this.#arrive = options.arrive;
    this.#onEnd = options.onEnd;
    this.#nextMs = nowMs + this.#gapMs();
    this.#pump();
  }

  stop(): void {
    if (this.#timeout === undefined) return;
    clearTimeout(this.#timeout);
    this.#timeout = undefined;
    this.#onEnd();
  }

  readonly #pump = (): void => {
    const nowMs = performance.now();
    while (this.#nextMs <= nowMs && this.#nextMs < this.#endMs) {
      this.#nextMs += this.#gapMs();
      this.#arrive();
    }
    const waitMs = Math.max(Math.min(this.#nextMs, this.#endMs) - nowMs, SHORTEST_WAIT_MS);
    this.#timeout = setTimeout(nowMs < this.#endMs ? this.#pump : this.#end, waitMs);
  };

  readonly #end = (): void => {
    this.stop();
  };

  #gapMs(): number {
    return -Math.log(1 - Math.random()) * this.#meanGapMs;
  }
}
