import type { TimerTable } from './timer-table.ts';

/** The expiration of a bucket that waits for nothing. */
const UNSET_MS = -1;

/**
 * A doubly linked list of entries through a sentinel: one bucket of a wheel, or the queue of what is due.
 *
 * After Kafka's class of this name, with the links moved into the table; the sentinel's slot is all that is left.
 * A bucket is the element of the delay queue, so it knows when it expires and whether it is queued.
 */
export class TimerTaskList {
  /** The sentinel's slot in the table. */
  readonly sentinel: number;
  /** The length of the time span that shares this bucket, in milliseconds; 0 for a list outside any wheel. */
  readonly tickMs: number;
  /** When the bucket expires: the beginning of its time span. */
  expirationMs = UNSET_MS;
  /** Whether the delay queue holds it. A bucket that lost its last entry stays there until it comes to the top. */
  isQueued = false;
  readonly #table: TimerTable;

  constructor(table: TimerTable, tickMs: number) {
    this.#table = table;
    this.tickMs = tickMs;
    this.sentinel = table.newSentinel(this);
  }

  get size(): number {
    return this.#table.count(this.sentinel);
  }

  get isEmpty(): boolean {
    return this.#table.next(this.sentinel) === this.sentinel;
  }

  /** The slot at the head; only meaningful when the list is not empty. */
  get first(): number {
    return this.#table.next(this.sentinel);
  }

  /** Links an entry, which must be in no list, at the tail. */
  add(slot: number): void {
    this.#table.append(this.sentinel, slot);
  }
}
