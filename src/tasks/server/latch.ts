import type { SystemTimer } from '../../timer/system-timer.ts';

/**
 * Where one loop waits until there may be something to do. A wake-up that comes while it does not wait is kept, so that
 * none is missed between a look and a wait.
 */
export class Latch {
  readonly #timer: SystemTimer;
  #isSet = false;
  #resolve: (() => void) | undefined;

  constructor(timer: SystemTimer) {
    this.#timer = timer;
  }

  wake(): void {
    if (this.#resolve === undefined) {
      this.#isSet = true;
      return;
    }
    const resolve = this.#resolve;
    this.#resolve = undefined;
    resolve();
  }

  /** Resolves when it is woken, or after a time. */
  async wait(timeoutMs?: number): Promise<void> {
    if (this.#isSet) {
      this.#isSet = false;
      return;
    }
    const woken = new Promise<void>((resolve) => {
      this.#resolve = resolve;
    });
    if (timeoutMs === undefined) return woken;
    const id = this.#timer.schedule(timeoutMs, wakeLatch, this);
    await woken;
    this.#timer.cancel(id);
  }
}

const wakeLatch = (latch: Latch): void => {
  latch.wake();
};
