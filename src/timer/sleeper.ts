/** The callback of every entry that somebody sleeps in; the sleeper is the argument. */
export const wakeSleeper = (sleeper: Sleeper): void => {
  sleeper.wake();
};

/** One promise that waits for a moment or for its signal, whichever is first; it leaves no listener behind. */
export class Sleeper {
  readonly #wake: () => void;
  readonly #fail: (reason: unknown) => void;
  readonly #signal: AbortSignal | undefined;
  #cancelEntry: (() => void) | undefined;

  constructor(wake: () => void, fail: (reason: unknown) => void, signal: AbortSignal | undefined) {
    this.#wake = wake;
    this.#fail = fail;
    this.#signal = signal;
  }

  /** @param cancelEntry - takes the sleeper out of the timer. */
  watch(cancelEntry: () => void): void {
    this.#cancelEntry = cancelEntry;
    this.#signal?.addEventListener('abort', this);
  }

  wake(): void {
    this.#signal?.removeEventListener('abort', this);
    this.#wake();
  }

  fail(reason: unknown): void {
    this.#signal?.removeEventListener('abort', this);
    this.#fail(reason);
  }

  /** The signal fired. */
  handleEvent(): void {
    this.#cancelEntry?.();
    this.fail(this.#signal?.reason);
  }
}
