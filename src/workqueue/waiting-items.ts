import { readClock } from '../core/clock.ts';
import type { SystemTimer, TimerId } from '../timer/system-timer.ts';

/** The timer id of an item that is parked. */
const NO_TIMER = 0;
/** Up to this many rows (640 KB) stay when the last item leaves: they would soon be made again. */
const STAY = 16_384;

/**
 * The waiting items of a queue. Each is one callback of a timer, so a million of them arm one wake-up.
 *
 * HOW. A row per item in plain arrays, and a map from the key to the row. In an object per item V8 would box its two
 * times in 16 bytes each: this is half the memory.
 *
 *      rows: Map        items       dueAtMs     timers
 *      'a' → 0          'a'         5_012.4     71…
 *      'b' → 1          'b'         Infinity    NO_TIMER      parked: until it is added or cancelled
 *
 * Earliest wins: a later due time than that of the item is ignored. client-go has a heap of its own, which returns equal times in
 * any order.
 */
export class WaitingItems<T> {
  readonly #timer: () => SystemTimer;
  readonly #onDue: (key: unknown, item: T) => void;
  readonly #rows = new Map<unknown, number>();
  readonly #keys: unknown[] = [];
  readonly #items: (T | undefined)[] = [];
  readonly #dueAtMs: number[] = [];
  readonly #timers: number[] = [];
  readonly #free: number[] = [];
  /** One function for all items, with the row as its argument: no object per item. */
  readonly #expire = (row: number): void => {
    const key = this.#keys[row];
    this.#onDue(key, this.#take(row));
  };

  /** @param timer - called when the first item is delayed. */
  constructor(timer: () => SystemTimer, onDue: (key: unknown, item: T) => void) {
    this.#timer = timer;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#rows.size;
  }

  has(key: unknown): boolean {
    return this.#rows.has(key);
  }

  /** The timer of the delays. */
  get timer(): SystemTimer {
    return this.#timer();
  }

  /**
   * Adds an item; one that is waiting keeps the earlier due time and the newer object. If the timer throws, nothing has changed.
   *
   * @param delayMs - above 0; `Infinity` parks the item.
   */
  add(key: unknown, item: T, delayMs: number): void {
    const dueAtMs = readClock(this.#timer().clock) + delayMs;
    let row = this.#rows.get(key);
    if (row === undefined) {
      row = this.#free.at(-1) ?? this.#items.length;
      this.#timers[row] = this.#schedule(delayMs, row);
      this.#free.pop();
      this.#rows.set(key, row);
      this.#keys[row] = key;
      this.#dueAtMs[row] = dueAtMs;
    } else if (dueAtMs < (this.#dueAtMs[row] as number)) {
      // A parked item has no valid id. In a closed timer no id is valid, and schedule throws.
      const isMoved = this.#timer().reschedule(this.#timers[row] as TimerId, delayMs);
      if (!isMoved) this.#timers[row] = this.#schedule(delayMs, row);
      this.#dueAtMs[row] = dueAtMs;
    }
    this.#items[row] = item;
  }

  /** Removes an item. @returns whether it was waiting. */
  remove(key: unknown): boolean {
    const row = this.#rows.get(key);
    if (row === undefined) return false;
    this.#withdraw(row);
    return true;
  }

  /** Removes all items. @returns them in order of their due times; equal ones in order of arrival. */
  clear(): T[] {
    // Infinity - Infinity is NaN, which sort() takes for equal.
    const inOrder = (a: number, b: number) => (this.#dueAtMs[a] as number) - (this.#dueAtMs[b] as number);
    const rows = [...this.#rows.values()].sort(inOrder);
    return rows.map((row) => this.#withdraw(row));
  }

  /** Returns every row in use. */
  *rows(): Generator<{ key: unknown; item: T; dueAtMs: number; timer: number }, void> {
    for (const [key, row] of this.#rows) {
      const item = this.#items[row] as T;
      yield { key, item, dueAtMs: this.#dueAtMs[row] as number, timer: this.#timers[row] as number };
    }
  }

  #schedule(delayMs: number, row: number): number {
    return delayMs === Infinity ? NO_TIMER : this.#timer().schedule(delayMs, this.#expire, row);
  }

  #withdraw(row: number): T {
    this.#timer().cancel(this.#timers[row] as TimerId); // that of a parked item is no valid id
    return this.#take(row);
  }

  #take(row: number): T {
    const item = this.#items[row] as T;
    this.#rows.delete(this.#keys[row]);
    this.#keys[row] = undefined;
    this.#items[row] = undefined;
    this.#free.push(row);
    if (this.#rows.size === 0 && this.#free.length > STAY)
      for (const column of [this.#keys, this.#items, this.#dueAtMs, this.#timers, this.#free])
        column.length = 0;
    return item;
  }
}
