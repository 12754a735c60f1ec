import type { TaskState } from '../../task-state.ts';
import { DayCounters } from './day-counters.ts';
import type { HeldSet } from './held-set.ts';
import { TaskList } from './task-list.ts';
import type { TaskRow } from './task-row.ts';
import { WaitingList } from './waiting-list.ts';

/** A state that has one list in a queue; what is aggregating is in one for each group, and for each set. */
export type ListedState = Exclude<TaskState, 'aggregating'>;

/** A queue: its tasks by id, and each in the list of where it is. */
export class QueueState {
  readonly name: string;
  readonly rows = new Map<string, TaskRow>();
  readonly lists: Readonly<Record<ListedState, TaskList>> & {
    readonly scheduled: WaitingList;
    readonly retry: WaitingList;
  };
  /** Groups that have tasks. */
  readonly groups = new Map<string, TaskList>();
  /** Sets that were taken out of groups, by id. */
  readonly sets = new Map<string, HeldSet>();
  /** The latest tick of every schedule entry. */
  readonly ticks = new Map<string, number>();
  readonly days = new DayCounters();
  isPaused = false;
  isRemoved = false;
  /** Hints that are on their way. */
  isWorkHinted = false;
  isLeaseHinted = false;

  constructor(name: string) {
    this.name = name;
    this.lists = {
      active: new TaskList(this, 'active'),
      pending: new TaskList(this, 'pending'),
      scheduled: new WaitingList(this, 'scheduled'),
      retry: new WaitingList(this, 'retry'),
      archived: new TaskList(this, 'archived'),
      completed: new TaskList(this, 'completed'),
    };
  }

  /** The list of a group, made if there is none. */
  group(name: string): TaskList {
    let list = this.groups.get(name);
    if (list === undefined) {
      list = new TaskList(this, 'aggregating', name);
      this.groups.set(name, list);
    }
    return list;
  }

  /** Takes a row out of the list it is in. A group that has no tasks is none. */
  take(row: TaskRow): void {
    const { list } = row;
    if (list === undefined) return;
    list.remove(row);
    if (list.size === 0 && list.group !== '' && !list.isHeld) this.groups.delete(list.group);
  }

  /** The lists of a state: of what aggregates those of its groups, or of one, and not of what was taken out of them. */
  *listsOf(state: TaskState, group?: string): Generator<TaskList> {
    if (state !== 'aggregating') {
      yield this.lists[state];
    } else if (group === undefined) {
      yield* this.groups.values();
    } else {
      const list = this.groups.get(group);
      if (list !== undefined) yield list;
    }
  }

  /** How many tasks aggregate, those of sets included. O(groups). */
  countAggregating(): number {
    let count = 0;
    for (const { size } of this.groups.values()) count += size;
    for (const { list } of this.sets.values()) count += list.size;
    return count;
  }
}
