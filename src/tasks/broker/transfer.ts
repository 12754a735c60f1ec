import type { Broker, EnqueueEvent, QueueLimits } from './broker.ts';
import type { TaskMessage } from '../task-options.ts';
import type { TaskState } from '../task-state.ts';

/*
 * The seam by which everything of a broker is read and written as it is: see copy-tasks.ts. Not in the interface `Broker`: nothing
 * else needs it, and a broker of a user need not have it.
 */

/** A task with everything that a broker keeps of it. There is no active one: what was in work when its process died is pending. */
export interface WholeTask {
  readonly message: TaskMessage;
  readonly state: Exclude<TaskState, 'active'>;
  /**
   * In wall-clock milliseconds. Scheduled and retry: when it is due. Pending and aggregating: since when. Archived: since when.
   * Completed: until when it is retained.
   */
  readonly atMs: number;
  readonly recoveries: number;
  /** When its unique lock ends, in wall-clock milliseconds; 0 if it has none. */
  readonly lockEndsMs: number;
  readonly result: Uint8Array | undefined;
  readonly progress: string | undefined;
}

/** Everything of a queue but its tasks. */
export interface WholeQueue {
  readonly name: string;
  readonly isPaused: boolean;
  /** What its servers may do together; undefined if there is no limit. */
  readonly limits: QueueLimits | undefined;
  /** Epochs of its leases were at most this one until now. */
  readonly epoch: number;
  /** The latest tick of each schedule entry, in wall-clock milliseconds. */
  readonly ticks: readonly (readonly [entryKey: string, atMs: number])[];
  /** Runs and failed runs of each UTC day. */
  readonly days: readonly (readonly [date: string, processed: number, failed: number])[];
  readonly processedTotal: number;
  readonly failedTotal: number;
}

/** A piece of a broker: a queue, then its tasks in order, some at a time, then the next queue; then the events of schedule entries. */
export type Piece =
  | { readonly kind: 'queue'; readonly queue: WholeQueue }
  | { readonly kind: 'tasks'; readonly queue: string; readonly tasks: readonly WholeTask[] }
  | { readonly kind: 'events'; readonly entryId: string; readonly events: readonly EnqueueEvent[] };

/** Number of tasks of a piece. */
export const TASKS_PER_PIECE = 200;

/** Names the method of a broker, which may be in another loaded copy of the package. */
export const TRANSFER: unique symbol = Symbol.for('escapement.broker.transfer');

/** What reads and writes the pieces of a broker. */
export interface Transfer {
  /** Yields every piece. Tasks that change meanwhile may be missing. */
  read(): AsyncIterable<Piece>;

  /**
   * Writes a piece as it is. Idempotent: a task whose id its queue has stays as it is there, and so does a lock that another task
   * holds. Counts and ticks become the larger ones, and a queue is paused if it is paused in either.
   *
   * @returns the number of tasks that were added.
   */
  write(piece: Piece): Promise<number>;
}

/** A broker whose tasks can be copied as they are. */
export interface TransferableBroker extends Broker {
  [TRANSFER](): Transfer;
}
