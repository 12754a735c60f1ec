import { WaitGroup, WaitLine } from '../core/wait-line.ts';

/** A put that waits for capacity. */
interface Need {
  readonly bytes: number;
  /** A group of exactly one waiter; empty once that waiter has left. */
  readonly waiter: WaitGroup<void>;
}

/**
 * Limits the bytes of messages that are not acknowledged, and lets puts wait for capacity: first come, first served, so a
 * small message never passes a large one.
 */
export class Capacity {
  readonly #max: number;
  readonly #waiting = new WaitLine<void>();
  /** In the order of that line. A waiter that has left it stays here until `#admit` meets it. */
  readonly #needs = new Set<Need>();
  #used: number;

  constructor(max: number, used: number) {
    this.#max = max;
    this.#used = used;
  }

  /** Takes capacity. Returns false, and takes none, if there is not enough, or other puts wait for it. */
  take(bytes: number): boolean {
    if (this.#waiting.size > 0 || !this.#fits(bytes)) return false;
    this.#used += bytes;
    return true;
  }

  /** Takes capacity, even beyond the limit. */
  exceed(bytes: number): void {
    this.#used += bytes;
  }

  /** Takes capacity when there is enough, and calls `put` synchronously then, so that puts keep their order. */
  async wait(bytes: number, put: () => Promise<void>, signal: AbortSignal | undefined): Promise<void> {
    const need: Need = { bytes, waiter: new WaitGroup() };
    this.#needs.add(need);
    try {
      await this.#waiting.wait(put, signal, need.waiter);
    } finally {
      if (this.#needs.delete(need)) this.#admit(); // it has left, and may have held up others
    }
  }

  release(bytes: number): void {
    this.setUsed(this.#used - bytes);
  }

  /** Replaces the number of used bytes by a new count. */
  setUsed(used: number): void {
    this.#used = used;
    this.#admit();
  }

  failAll(error: unknown): void {
    this.#needs.clear();
    this.#waiting.failAll(error);
  }

  #admit(): void {
    for (const need of this.#needs) {
      const isWaiting = need.waiter.waiters.size > 0;
      if (isWaiting && !this.#fits(need.bytes)) return;
      this.#needs.delete(need);
      if (!isWaiting) continue;
      this.#used += need.bytes;
      this.#waiting.give();
    }
  }

  #fits(bytes: number): boolean {
    return this.#used + bytes <= this.#max;
  }
}
