import type { TaskRow } from './task-row.ts';

/** What a task has of its unique key. */
export interface UniqueLock {
  readonly owner: TaskRow;
  /** On the monotonic clock. */
  readonly endsAtMs: number;
}

/**
 * Who keeps others out. A lock that is over is noticed by who wants it next: it needs no timer, and since it goes with its
 * task at the latest, there are never more of them than tasks. Each is O(1).
 */
export class UniqueLocks {
  readonly #locks = new Map<string, UniqueLock>();

  get size(): number {
    return this.#locks.size;
  }

  /** The task that holds the lock of that name. */
  ownerOf(key: string, nowMs: number): TaskRow | undefined {
    const lock = this.#locks.get(key);
    if (lock === undefined || lock.endsAtMs <= nowMs) return undefined;
    // A queue that was removed has gone at once, and gives its locks back in its own time.
    return lock.owner.list?.queue.isRemoved === true ? undefined : lock.owner;
  }

  /** Takes a lock that nobody holds. */
  take(key: string, owner: TaskRow, endsAtMs: number): void {
    this.#locks.set(key, { owner, endsAtMs });
  }

  /** Gives back the lock of a task, if it is still its own. */
  free(row: TaskRow): void {
    const { uniqueKey } = row.message;
    if (uniqueKey !== '' && this.#locks.get(uniqueKey)?.owner === row) this.#locks.delete(uniqueKey);
  }

  entries(): Iterable<readonly [string, UniqueLock]> {
    return this.#locks;
  }
}
