import type { TaskRow } from './task-lists.ts';

interface UniqueLock {
  readonly owner: TaskRow;
  /** On the monotonic clock. */
  readonly endsAtMs: number;
}

/**
 * Locks by their unique keys. An expired lock is noticed when it is next wanted, so it needs no timer; and because a lock is
 * freed with its task at the latest, there are never more locks than tasks. Every operation is O(1).
 */
export class UniqueLocks {
  readonly #locks = new Map<string, UniqueLock>();

  get size(): number {
    return this.#locks.size;
  }

  ownerOf(key: string, nowMs: number): TaskRow | undefined {
    const lock = this.#locks.get(key);
    if (lock === undefined || lock.endsAtMs <= nowMs) return undefined;
    // A removed queue frees its locks in pieces, later.
    return lock.owner.list?.queue.isRemoved === true ? undefined : lock.owner;
  }

  /** When the lock of a row ends, on the monotonic clock; undefined if it has none. */
  endOf(row: TaskRow): number | undefined {
    const { uniqueKey } = row.message;
    const lock = uniqueKey === '' ? undefined : this.#locks.get(uniqueKey);
    return lock?.owner === row ? lock.endsAtMs : undefined;
  }

  /** Takes a lock that is free. */
  take(key: string, owner: TaskRow, endsAtMs: number): void {
    this.#locks.set(key, { owner, endsAtMs });
  }

  free(row: TaskRow): void {
    const { uniqueKey } = row.message;
    if (uniqueKey !== '' && this.#locks.get(uniqueKey)?.owner === row) this.#locks.delete(uniqueKey);
  }

  entries(): Iterable<readonly [string, UniqueLock]> {
    return this.#locks;
  }
}
