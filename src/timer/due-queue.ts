import { NO_SLOT, type TimerTable, TimerTaskList } from './timer-table.ts';

/**
 * What is due and has not run: first in, first out, and still cancellable like anything that waits.
 *
 * HOW and WHY. No user code may run while a bucket is being emptied, so due entries come here first. While they
 * run, more may fall due; those belong to a later turn, or a task that re-adds itself with no delay would hold
 * this one for ever. So a run begins with a fence at the tail, and stops at it:
 *
 *     head → a → b → c → | fence | → d → e → tail          d and e fell due while a, b and c run
 *
 * The fence is a row of the same table. Counting would not do: entries before it may be cancelled meanwhile.
 */
export class DueQueue {
  readonly list: TimerTaskList;
  readonly #table: TimerTable;
  readonly #fence: number;
  #isFenced = false;

  constructor(table: TimerTable) {
    this.#table = table;
    this.list = new TimerTaskList(table, 0);
    this.#fence = table.newMarker();
  }

  get size(): number {
    return this.#isFenced ? this.list.size - 1 : this.list.size;
  }

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /** The fence's slot while it stands: for the integrity checker. */
  get fenceSlot(): number {
    return this.#isFenced ? this.#fence : NO_SLOT;
  }

  /** Appends an entry that has been due since `sinceMs`. */
  add(slot: number, sinceMs: number): void {
    if (this.isEmpty) this.list.expirationMs = sinceMs;
    this.list.add(slot);
  }

  /** Appends entries in their order, at least one. They have been due since they expired. */
  addAll(slots: Int32Array): void {
    if (this.isEmpty) this.list.expirationMs = this.#table.expirationOf(slots[0] as number);
    this.#table.appendAll(this.list.sentinel, slots);
  }

  /** Whatever is added from here on is not taken before `lowerFence`. */
  raiseFence(): void {
    this.list.add(this.#fence);
    this.#isFenced = true;
  }

  lowerFence(): void {
    if (!this.#isFenced) return;
    this.#table.unlink(this.#fence);
    this.#isFenced = false;
  }

  /** Takes the entry at the head, or `NO_SLOT` if none is left before the fence. */
  take(): number {
    const slot = this.list.first;
    if (slot === this.#fence || slot === this.list.sentinel) return NO_SLOT;
    this.#table.unlink(slot);
    return slot;
  }
}
