import { machineNowMs } from '../machine-clock.ts';

/** The records of a partition, in memory, on the leader or on a follower. A record is a text; its place is its offset. */
export class PartitionLog {
  readonly #values: string[] = [];
  readonly #appendedAtMs: number[] = [];
  /** Bytes of all records before each offset: what `minBytes` is measured with, in O(1). */
  readonly #bytesBefore: number[] = [0];

  /** The offset that the next record will have. */
  get endOffset(): number {
    return this.#values.length;
  }

  /** When each record came to this replica, on the clock of the machine. */
  get appendedAtMs(): readonly number[] {
    return this.#appendedAtMs;
  }

  append(values: readonly string[]): void {
    const nowMs = machineNowMs();
    for (const value of values) {
      this.#bytesBefore.push(this.#bytesUpTo(this.endOffset) + Buffer.byteLength(value));
      this.#values.push(value);
      this.#appendedAtMs.push(nowMs);
    }
  }

  /** Bytes of the records from one offset up to another one, which is not included. */
  bytesBetween(from: number, until: number): number {
    return Math.max(this.#bytesUpTo(until) - this.#bytesUpTo(from), 0);
  }

  /** Records from an offset, below another one, of at most so many bytes together; at least one if there is one. */
  read(from: number, until: number, maxBytes = Infinity): string[] {
    let end = Math.min(from + 1, until);
    while (end < until && this.bytesBetween(from, end + 1) <= maxBytes) end++;
    return this.#values.slice(from, end);
  }

  #bytesUpTo(offset: number): number {
    return this.#bytesBefore[offset] ?? 0;
  }
}
