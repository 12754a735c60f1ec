import type { TimerId } from '../../../timer/system-timer.ts';
import type { TaskMessage } from '../../task-options.ts';
import type { TaskState } from '../../task-state.ts';
import { RowsByTime } from './rows-by-time.ts';

/*
 * Rows and lists of the embedded broker. A row is a task; every row of a queue is in exactly one list, and its state is its
 * list's, so that the two cannot differ. The lists of a queue are in queue-state.ts.
 *
 *      head ⇄ row ⇄ row ⇄ … ⇄ tail        the links are in the rows: a list of a million rows needs no other memory
 *
 * Every operation is O(1), except iteration.
 */

/** The timer id of a row without a timer entry. No timer returns it. */
export const NO_TIMER = 0 as TimerId;

export class TaskRow {
  #message: TaskMessage | undefined;
  list: TaskList | undefined = undefined;
  next: TaskRow | undefined = undefined;
  previous: TaskRow | undefined = undefined;
  /**
   * Wall clock: when a scheduled or retried task is due; when a completed or archived one expires; since when one is
   * pending. Monotonic clock: when the lease of an active task ends; when an aggregating one joined its group.
   */
  atMs = 0;
  timer: TimerId = NO_TIMER;
  /** Active: the epoch of its lease. Otherwise a number that grows with each row that enters a state: arrival order. */
  serial = 0;
  recoveries = 0;
  result: Uint8Array | undefined = undefined;
  progress: string | undefined = undefined;

  constructor(message: TaskMessage | undefined) {
    this.#message = message;
  }

  get id(): string {
    return this.message.id;
  }

  get message(): TaskMessage {
    return (this.#message ??= this.unpack());
  }

  set message(message: TaskMessage) {
    this.#message = message;
  }

  /** The key of the task, which a packed message has in memory. */
  get key(): string {
    return this.message.key;
  }

  /** Called when the message is needed and was not there at the beginning: see journaled-row.ts. */
  protected unpack(): TaskMessage {
    throw new Error('a row without a message');
  }
}

/** The queue of a list: a `QueueState`, see `listOf` in queue-state.ts. */
export interface Owner {
  readonly name: string;
  readonly isRemoved: boolean;
}

/** Rows in arrival order: those of one state of a queue, of one group, or of one set that was taken out of a group. */
export class TaskList {
  readonly queue: Owner;
  readonly state: TaskState;
  /** Empty unless its rows are aggregating. */
  readonly group: string;
  /** Whether its rows are being aggregated: no other operation may change them. */
  readonly isHeld: boolean;
  head: TaskRow | undefined = undefined;
  tail: TaskRow | undefined = undefined;
  size = 0;

  constructor(queue: Owner, state: TaskState, group = '', isHeld = false) {
    this.queue = queue;
    this.state = state;
    this.group = group;
    this.isHeld = isHeld;
  }

  /** Row that a bulk operation begins with. */
  get first(): TaskRow | undefined {
    return this.head;
  }

  push(row: TaskRow): void {
    this.insertAfter(this.tail, row);
  }

  unshift(row: TaskRow): void {
    this.insertAfter(undefined, row);
  }

  /** Adds a row that is in no list after a row of this list; after undefined, at the beginning. */
  insertAfter(previous: TaskRow | undefined, row: TaskRow): void {
    const next = previous === undefined ? this.head : previous.next;
    row.list = this;
    row.previous = previous;
    row.next = next;
    if (previous === undefined) this.head = row;
    else previous.next = row;
    if (next === undefined) this.tail = row;
    else next.previous = row;
    this.size++;
  }

  remove(row: TaskRow): void {
    const { previous, next } = row;
    if (previous === undefined) this.head = next;
    else previous.next = next;
    if (next === undefined) this.tail = previous;
    else next.previous = previous;
    row.list = undefined;
    row.previous = undefined;
    row.next = undefined;
    this.size--;
  }

  /** From the head. The loop may add and remove rows, except the current one. */
  *[Symbol.iterator](): Generator<TaskRow, void, undefined> {
    for (let row = this.head; row !== undefined; row = row.next) yield row;
  }
}

/** Scheduled rows, or those of retries. The first one is the earliest, not the first that arrived. */
export class WaitingList extends TaskList {
  readonly byTime = new RowsByTime<TaskRow>();

  override get first(): TaskRow | undefined {
    return this.byTime.first;
  }

  override push(row: TaskRow): void {
    super.push(row);
    this.byTime.add(row);
  }

  override remove(row: TaskRow): void {
    super.remove(row);
    this.byTime.remove(row);
  }
}
