import type { TaskState } from '../../task-state.ts';
import type { QueueState } from './queue-state.ts';
import type { TaskRow } from './task-row.ts';

/**
 * Rows in a row: what is in one state of a queue, in one group of it, or in one set that was taken out of a group.
 *
 *      head ⇄ row ⇄ row ⇄ … ⇄ tail        a row is in one list at most: its links are in itself
 *
 * Everything is O(1) but the walk.
 */
export class TaskList {
  readonly queue: QueueState;
  /** Of every row in it. */
  readonly state: TaskState;
  /** Empty unless its rows are aggregating. */
  readonly group: string;
  /** Whether somebody aggregates its rows at present: nothing else may be done with them. */
  readonly isHeld: boolean;
  head: TaskRow | undefined = undefined;
  tail: TaskRow | undefined = undefined;
  size = 0;

  constructor(queue: QueueState, state: TaskState, group = '', isHeld = false) {
    this.queue = queue;
    this.state = state;
    this.group = group;
    this.isHeld = isHeld;
  }

  /** The one to begin with. */
  get first(): TaskRow | undefined {
    return this.head;
  }

  /** Adds a row that is in no list at the end. */
  push(row: TaskRow): void {
    this.insertAfter(this.tail, row);
  }

  /** Adds a row that is in no list at the beginning. */
  unshift(row: TaskRow): void {
    this.insertAfter(undefined, row);
  }

  /** Adds a row that is in no list behind one that is in this one; behind none, it is the first. */
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

  /** Takes out a row that is in this list. */
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

  /** From the head. Rows may be taken out and added while it goes on, only not the one that it has just given. */
  *[Symbol.iterator](): Generator<TaskRow, void, undefined> {
    for (let row = this.head; row !== undefined; row = row.next) yield row;
  }
}
