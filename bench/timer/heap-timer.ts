/**
 * The timer one would write in an afternoon: a binary heap on tinyqueue, one host timeout for its top, and
 * cancellation that only sets a flag. It is what asyncio does in Python, with the same care for dead entries.
 */
import TinyQueue from 'tinyqueue';

/** Below that many dead entries a rebuild is not worth it; asyncio's number. */
const REBUILD_FROM = 100;

/** The request is the entry: no second object a timer. */
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
  #size = 0;
  #armedForMs = Number.POSITIVE_INFINITY;
  #timeout: NodeJS.Timeout | undefined;
  #wakeups = 0;
  readonly #now: () => number;
  readonly #isDriven: boolean;
  readonly #wake = (): void => {
    this.#wakeups++;
    this.#armedForMs = Number.POSITIVE_INFINITY;
    this.runDue();
  };

  /** @param isDriven - arms a host timeout; without, somebody calls `runDue`. */
  constructor(now: () => number, isDriven: boolean) {
    this.#now = now;
    this.#isDriven = isDriven;
  }

  /** Entries that wait, without the dead ones. */
  get size(): number {
    return this.#size;
  }

  /** How often the host timeout fired. */
  get wakeups(): number {
    return this.#wakeups;
  }

  add(entry: HeapEntry, delayMs: number): void {
    const nowMs = this.#now();
    entry.expiresAtMs = nowMs + delayMs;
    this.#queue.push(entry);
    this.#size++;
    if (this.#isDriven && entry.expiresAtMs < this.#armedForMs) this.#arm(entry.expiresAtMs, nowMs);
  }

  /** Sets the flag. The entry stays in the heap until it comes to the top, or the dead outnumber the living. */
  cancel(entry: HeapEntry): boolean {
    if (entry.isCancelled) return false;
    entry.isCancelled = true;
    this.#size--;
    const dead = this.#queue.length - this.#size;
    if (dead > REBUILD_FROM && dead > this.#size) this.#rebuild();
    return true;
  }

  /** Runs what is due, in order. @returns how many. */
  runDue(): number {
    const nowMs = this.#now();
    let ran = 0;
    for (let top = this.#queue.peek(); top !== undefined; top = this.#queue.peek()) {
      if (!top.isCancelled && top.expiresAtMs > nowMs) break;
      this.#queue.pop();
      if (top.isCancelled) continue;
      // A later cancel must find it gone, not take it off the count again.
      top.isCancelled = true;
      this.#size--;
      top.expire();
      ran++;
    }
    const next = this.#queue.peek();
    if (this.#isDriven && next !== undefined) this.#arm(next.expiresAtMs, nowMs);
    return ran;
  }

  close(): void {
    clearTimeout(this.#timeout);
    this.#queue = new TinyQueue<HeapEntry>([], byExpiration);
    this.#size = 0;
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
