/**
 * The timer that one writes without this library: a binary heap on tinyqueue, one host timeout for its top, and
 * cancellation that only sets a flag. Python's asyncio works like this, and removes dead entries in the same way.
 */
import TinyQueue from 'tinyqueue';

/** With fewer dead entries a rebuild does not pay; asyncio's number. */
const REBUILD_FROM = 100;

/** The request extends it: a timer has no second object. */
export abstract class HeapEntry {
  declare expiresAtMs: number;
  declare isCancelled: boolean;

  constructor() {
    this.expiresAtMs = 0;
    this.isCancelled = false;
  }

  abstract expire(): void;
}

export class HeapTimer {
  #queue = new TinyQueue<HeapEntry>([], byExpiration);
  #armedForMs = Number.POSITIVE_INFINITY;
  #timeout: NodeJS.Timeout | undefined;
  /** Number of pending entries, without the dead ones. */
  size = 0;
  readonly #now: () => number;
  readonly #isDriven: boolean;
  readonly #wake = (): void => {
    this.#armedForMs = Number.POSITIVE_INFINITY;
    this.runDue();
  };

  /** @param isDriven - whether to arm a host timeout; otherwise the caller calls `runDue`. */
  constructor(now: () => number, isDriven: boolean) {
    this.#now = now;
    this.#isDriven = isDriven;
  }

  add(entry: HeapEntry, delayMs: number): void {
    const nowMs = this.#now();
    entry.expiresAtMs = nowMs + delayMs;
    this.#queue.push(entry);
    this.size++;
    if (this.#isDriven && entry.expiresAtMs < this.#armedForMs) this.#arm(entry.expiresAtMs, nowMs);
  }

  /** Sets the flag. The entry stays in the heap until it reaches the top, or dead entries outnumber the others. */
  cancel(entry: HeapEntry): boolean {
    if (entry.isCancelled) return false;
    entry.isCancelled = true;
    this.size--;
    const dead = this.#queue.length - this.size;
    if (dead > REBUILD_FROM && dead > this.size) this.#rebuild();
    return true;
  }

  /** Runs due entries in order. */
  runDue(): void {
    const nowMs = this.#now();
    for (let top = this.#queue.peek(); top !== undefined; top = this.#queue.peek()) {
      if (!top.isCancelled && top.expiresAtMs > nowMs) break;
      this.#queue.pop();
      if (top.isCancelled) continue;
      // A later cancel must not subtract the entry from the count again.
      top.isCancelled = true;
      this.size--;
      top.expire();
    }
    const next = this.#queue.peek();
    if (this.#isDriven && next !== undefined) this.#arm(next.expiresAtMs, nowMs);
  }

  close(): void {
    clearTimeout(this.#timeout);
    this.#queue = new TinyQueue<HeapEntry>([], byExpiration);
    this.size = 0;
  }

  #arm(expiresAtMs: number, nowMs: number): void {
    if (this.#armedForMs !== Number.POSITIVE_INFINITY) clearTimeout(this.#timeout);
    this.#armedForMs = expiresAtMs;
    this.#timeout = setTimeout(this.#wake, Math.ceil(expiresAtMs - nowMs));
  }

  #rebuild(): void {
    const living = this.#queue.data.filter((entry) => !entry.isCancelled);
    this.#queue = new TinyQueue(living, byExpiration);
  }
}

function byExpiration(a: HeapEntry, b: HeapEntry): number {
  return a.expiresAtMs - b.expiresAtMs;
}
