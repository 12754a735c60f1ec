import { WaitGroup, WaitLine } from '../core/wait-line.ts';

/** Somebody who waits for room. */
interface Need {
  readonly bytes: number;
  /** He alone: empty when he has gone. */
  readonly waiter: WaitGroup<void>;
}

/**
 * How many bytes of messages may be unacknowledged, and who waits until there is room for his. First come, first served:
 * nobody who needs little passes somebody who needs much.
 */
export class Room {
  readonly #max: number;
  readonly #waiting = new WaitLine<void>();
  /** In the order of that line. Whoever has left it is still here, until it is noticed. */
  readonly #needs = new Set<Need>();
  #used: number;

  constructor(max: number, used: number) {
    this.#max = max;
    this.#used = used;
  }

  /** Takes room. @returns false, and takes none, if there is not enough, or others wait for it. */
  enter(bytes: number): boolean {
    if (this.#waiting.size > 0 || !this.#fits(bytes)) return false;
    this.#used += bytes;
    return true;
  }

  /** Takes room, whether there is enough or not. */
  exceed(bytes: number): void {
    this.#used += bytes;
  }

  /** Takes room when there is enough, and goes on at that moment: whoever comes later is behind. */
  async wait(bytes: number, goOn: () => Promise<void>, signal: AbortSignal | undefined): Promise<void> {
    const need: Need = { bytes, waiter: new WaitGroup() };
    this.#needs.add(need);
    try {
      await this.#waiting.wait(goOn, signal, need.waiter);
    } finally {
      if (this.#needs.delete(need)) this.#admit(); // he has gone, and stood before others
    }
  }

  leave(bytes: number): void {
    this.setUsed(this.#used - bytes);
  }

  /** What is used was counted anew. */
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
