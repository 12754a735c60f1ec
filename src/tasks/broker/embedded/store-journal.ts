import type { EnqueueEvent } from '../broker.ts';
import type { QueueSettings, QueueState } from './queue-state.ts';
import type { TaskRow } from './task-lists.ts';

/** Where a durable broker writes its changes: see journal.ts. What compaction writes again returns its bytes. */
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
  result(row: TaskRow, result: Uint8Array): void;
  progress(row: TaskRow, progress: string): void;
  /** A run of a queue has ended. */
  count(queue: QueueState, wallMs: number, hasFailed: boolean): void;
  /** Something of a queue has changed that is not a task. */
  queue(queue: QueueState, settings?: QueueSettings): number;
  removeQueue(name: string): void;
  tick(queue: string, entryKey: string, atMs: number): void;
  /** A token was taken: see pending-tasks.ts. */
  bucket(queue: string, name: string, fullAtWallMs: number): number;
  event(entryId: string, event: EnqueueEvent): void;
  events(entryId: string, events: readonly EnqueueEvent[]): number;
  /** Serials are below the limit from now on. */
  serial(limit: number): number;
}
