import { RingQueue } from '../core/ring-queue.ts';
import { WaitLine } from '../core/wait-line.ts';

/**
 * How many bytes of messages may be unacknowledged, and who waits until there is room for his. First come, first served:
 * nobody who needs little passes somebody who needs much.
 */
export class Room {
  readonly #max: number;
  readonly #waiting = new WaitLine<void>();
  /** What those who wait need, in their order. Nobody leaves that line but all together. */
  readonly #needs = new RingQueue<number>();
  #used: number;

  constructor(max: number, used: number) {
    this.#max = max;
    this.#used = used;
  }

  /** Takes room. @returns false, and takes none, if there is not enough, or others wait for it. */
  enter(bytes: number): boolean {
    if (this.#needs.size > 0 || !this.#fits(bytes)) return false;
    this.#used += bytes;
    return true;
  }

  /** Takes room, whether there is enough or not. */
  exceed(bytes: number): void {
    this.#used += bytes;
  }

  /** Takes room when there is enough, and goes on at that moment: whoever comes later is behind. */
  async wait(bytes: number, goOn: () => Promise<void>): Promise<void> {
    this.#needs.push(bytes);
    await this.#waiting.wait(goOn);
  }

  leave(bytes: number): void {
    this.setUsed(this.#used - bytes);
  }

  /** What is used was counted anew. */
  setUsed(used: number): void {
    this.#used = used;
    for (let need = this.#needs.first; need !== undefined && this.#fits(need); need = this.#needs.first) {
      this.#needs.shift();
      this.#used += need;
      this.#waiting.give();
    }
  }

  failAll(error: unknown): void {
    this.#needs.clear();
    this.#waiting.failAll(error);
  }

  #fits(bytes: number): boolean {
    return this.#used + bytes <= this.#max;
  }
}
