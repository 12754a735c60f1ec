import { journaled, type JournaledRow } from './journaled-row.ts';
import type { TaskStore } from './task-store.ts';

/** The latest entries of all tasks: their bytes, and how many of them are in each segment of the log. */
export class LiveEntries {
  bytes: number;
  readonly #counts = new Map<number, number>();

  /** @param bytes - of the entries of all rows. O(tasks). */
  constructor({ queues }: TaskStore, bytes: number) {
    this.bytes = bytes;
    for (const { rows } of queues.values())
      for (const row of rows.values()) this.#add(journaled(row).segment, 1);
  }

  isIn(segment: number): boolean {
    return (this.#counts.get(segment) ?? 0) > 0;
  }

  segmentRemoved(segment: number): void {
    this.#counts.delete(segment);
  }

  /** The latest entry of a row is in that segment now, or in none if that is negative. */
  move(row: JournaledRow, segment: number, bytes: number): void {
    if (row.segment > 0) {
      this.bytes -= row.bytes;
      this.#add(row.segment, -1);
    }
    row.segment = segment;
    row.bytes = bytes;
    if (segment < 0) return;
    this.bytes += bytes;
    this.#add(segment, 1);
  }

  #add(segment: number, count: number): void {
    this.#counts.set(segment, (this.#counts.get(segment) ?? 0) + count);
  }
}
