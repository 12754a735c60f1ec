import type { TimerId } from '../../../timer/system-timer.ts';
import type { TaskMessage } from '../../task-message.ts';
import type { QueueState } from './queue-state.ts';
import type { TaskList } from './task-list.ts';

/** Of a row that waits for no moment. Timers never give it. */
export const NO_TIMER = 0 as TimerId;

/**
 * A task of the embedded broker: what it says, and where it is. The links are its own, so that a list of a million costs
 * nothing beside the rows; its state is its list's, so that the two cannot differ.
 */
export class TaskRow {
  message: TaskMessage;
  list: TaskList | undefined = undefined;
  next: TaskRow | undefined = undefined;
  previous: TaskRow | undefined = undefined;
  /**
   * Its moment. Wall clock: scheduled and retry, when it is due; completed and archived, when it goes; pending, since when
   * it is. Monotonic: active, when its lease ends; aggregating, when it joined its group.
   */
  atMs = 0;
  timer: TimerId = NO_TIMER;
  /** Active: the epoch of its lease. Others: their place among all, in the order in which they have come to their state. */
  serial = 0;
  recoveries = 0;
  result: Uint8Array | undefined = undefined;
  progress: string | undefined = undefined;

  constructor(message: TaskMessage) {
    this.message = message;
  }
}

/** Where a row is that is somewhere. */
export function listOf(row: TaskRow): TaskList {
  if (row.list === undefined) throw new Error(`task '${row.message.id}' is nowhere`);
  return row.list;
}

export function queueOf(row: TaskRow): QueueState {
  return listOf(row).queue;
}
