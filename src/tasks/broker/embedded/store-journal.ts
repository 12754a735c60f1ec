import type { LaidOutKind, ValuesOf } from './journal-format.ts';
import type { TaskRow } from './task-lists.ts';

/** Where a durable broker writes its changes: see journal.ts. */
export interface StoreJournal {
  /** @throws EscapementError `ERR_BROKER_UNAVAILABLE` - an earlier write has failed. */
  requireAvailable(): void;
  /** Called before an operation: all of it is stored, or nothing. */
  begin(): void;
  /** A task was added, or has another payload. @param payload - that of the row, if it is not in memory. */
  task(row: TaskRow, payload?: Uint8Array): void;
  /** A task has moved, and a run may have changed it. */
  change(row: TaskRow): void;
  /** A task was removed, by itself or with its queue. */
  remove(row: TaskRow, isWithQueue: boolean): void;
  /** A run has started. */
  start(row: TaskRow): void;
  /** Anything else has changed: the kinds of entries are in journal-format.ts. @returns the bytes of the entry. */
  write<K extends LaidOutKind>(kind: K, ...values: ValuesOf<K>): number;
}
