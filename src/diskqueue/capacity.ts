import { WaitGroup, WaitLine } from '../core/wait-line.ts';

/**
 * Limits the bytes of messages that are not acknowledged, and lets puts wait for capacity: first come, first served, so a
 * small message never passes a large one.
 */
export class Capacity {
  readonly #max: number;
  readonly #waiting = new WaitLine<void>();
  /**
   * The bytes that each waiter needs, in the order of that line. A waiter is a group of one, which is empty when it has left;
   * it stays here until `#admit` meets it.
   */
  readonly #needs = new Map<WaitGroup<void>, number>();
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
    const waiter = new WaitGroup<void>();
    this.#needs.set(waiter, bytes);
    try {
      await this.#waiting.wait(put, signal, waiter);
    } finally {
      if (this.#needs.delete(waiter)) this.#admit(); // it has left, and may have held up others
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
    for (const [waiter, bytes] of this.#needs) {
      const isWaiting = waiter.waiters.size > 0;
      if (isWaiting && !this.#fits(bytes)) return;
      this.#needs.delete(waiter);
      if (!isWaiting) continue;
      this.#used += bytes;
      this.#waiting.give();
    }
  }

  #fits(bytes: number): boolean {
    return this.#used + bytes <= this.#max;
  }
}
