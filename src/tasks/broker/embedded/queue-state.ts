import type { TimerId } from '../../../timer/system-timer.ts';
import type { QueueLimits } from '../broker.ts';
import type { TaskState } from '../../task-state.ts';
import { DayCounters, type StoredDays } from './history.ts';
import { PendingTasks, type PendingHost, type StoredBucket } from './pending-tasks.ts';
import { RowIndex } from './row-index.ts';
import { isEarlier, TaskList, WaitingList, type TaskRow } from './task-lists.ts';

/** A list with its queue. Every list is one of a `QueueState`. */
export type QueueList = TaskList & { readonly queue: QueueState };

/** Tasks that were taken out of a group to be aggregated. */
export interface HeldSet {
  readonly id: string;
  readonly list: QueueList;
  /** When its tasks return to the group, on the monotonic clock. */
  readonly endsAtMs: number;
  timer: TimerId;
}

/** A state with one list in a queue. Aggregating tasks have one for each group and each set; pending ones have one for each key. */
export type ListedState = Exclude<TaskState, 'aggregating'>;

/** Everything of a queue but its tasks, as JSON has it. */
export interface QueueSettings extends StoredDays {
  readonly isPaused: boolean;
  readonly ticks: readonly (readonly [entryKey: string, atMs: number])[];
  readonly limits?: QueueLimits | undefined;
  /** Buckets of rates that are not full. */
  readonly buckets?: readonly StoredBucket[];
}

/**
 * A queue with its tasks:
 *
 *      queue ─┬─ lists ──── active, scheduled, retry, archived, completed; and pending: those without a key
 *             ├─ pending ── one list per key that has tasks           (pending)
 *             ├─ groups ─── one list per group that has tasks         (aggregating)
 *             └─ sets ───── one list per set taken out of a group     (aggregating, held)
 */
export class QueueState {
  readonly name: string;
  readonly rows = new RowIndex();
  readonly lists: Readonly<Record<ListedState, TaskList>> & {
    readonly scheduled: WaitingList;
    readonly retry: WaitingList;
  };
  /** Groups that have tasks. */
  readonly groups = new Map<string, QueueList>();
  readonly sets = new Map<string, HeldSet>();
  /** The latest tick of every schedule entry. */
  readonly ticks = new Map<string, number>();
  readonly days = new DayCounters();
  readonly pending: PendingTasks;
  isPaused = false;
  isRemoved = false;
  /** Whether a notification of that kind is pending. */
  isWorkNotified = false;
  isLeaseNotified = false;

  constructor(name: string, host: PendingHost) {
    this.name = name;
    this.pending = new PendingTasks(this, host);
    this.lists = {
      active: new TaskList(this, 'active'),
      pending: this.pending.withoutKey,
      scheduled: new WaitingList(this, 'scheduled'),
      retry: new WaitingList(this, 'retry'),
      archived: new TaskList(this, 'archived'),
      completed: new TaskList(this, 'completed'),
    };
  }

  /** Everything of the queue but its tasks and its buckets. */
  get settingsWithoutBuckets(): QueueSettings {
    const { limits } = this.pending;
    return {
      ...{ isPaused: this.isPaused, ticks: [...this.ticks], ...this.days.all },
      ...(limits && { limits }),
    };
  }

  /** Everything of the queue but its tasks. O(keys). */
  get settings(): QueueSettings {
    const settings = this.settingsWithoutBuckets;
    return settings.limits === undefined ? settings : { ...settings, buckets: [...this.pending.buckets()] };
  }

  /** Replaces everything of the queue but its tasks, and its buckets if they are not given. */
  restore({ isPaused, ticks, limits, buckets, ...days }: QueueSettings): void {
    this.isPaused = isPaused;
    this.pending.restore(limits, buckets);
    this.ticks.clear();
    for (const [entryKey, atMs] of ticks) this.ticks.set(entryKey, atMs);
    this.days.restore(days);
  }

  /** The latest tick comes last, so that the map stays in that order. */
  setTick(entryKey: string, atMs: number): void {
    this.ticks.delete(entryKey);
    this.ticks.set(entryKey, atMs);
  }

  /** Returns the list of a group, which is created if the group has no tasks. */
  group(name: string): QueueList {
    let list = this.groups.get(name);
    if (list === undefined) {
      list = this.groupList(name, false);
      this.groups.set(name, list);
    }
    return list;
  }

  /** Makes a list for tasks of a group, or of a set that is taken out of it. */
  groupList(group: string, isHeld: boolean): QueueList {
    return new TaskList(this, 'aggregating', group, isHeld) as QueueList;
  }

  /** Removes a row from its list. A group without tasks is removed. */
  take(row: TaskRow): void {
    const list = listOf(row);
    list.remove(row);
    if (list.size === 0 && list.group !== '' && !list.isHeld) this.groups.delete(list.group);
  }

  /** Whether rows wait for a time: scheduled ones, or those of retries. */
  get isTimed(): boolean {
    return this.lists.scheduled.size + this.lists.retry.size > 0;
  }

  /** Returns the first of them, if it is due at `wallMs`. */
  firstDue(wallMs: number): TaskRow | undefined {
    const { scheduled, retry } = this.lists;
    const [first, other] = [scheduled.first, retry.first];
    const row = first === undefined || (other !== undefined && isEarlier(other, first)) ? other : first;
    return row !== undefined && row.atMs <= wallMs ? row : undefined;
  }

  /** Yields the lists of a state; for aggregating tasks those of all groups or of one, without the sets. */
  *listsOf(state: TaskState, group?: string): Generator<TaskList> {
    if (state === 'pending') {
      yield* this.pending.lists();
    } else if (state !== 'aggregating') {
      yield this.lists[state];
    } else if (group === undefined) {
      yield* this.groups.values();
    } else {
      const list = this.groups.get(group);
      if (list !== undefined) yield list;
    }
  }

  /** Yields the lists of a state, with those of the sets of all groups or of one. */
  *listsWithSets(state: TaskState, group?: string): Generator<TaskList> {
    yield* this.listsOf(state, group);
    if (state !== 'aggregating') return;
    for (const { list } of this.sets.values()) if (group === undefined || list.group === group) yield list;
  }

  /** Returns the number of tasks in a state, including those in sets. O(groups), if the state is aggregating. */
  count(state: TaskState): number {
    if (state === 'pending') return this.pending.size;
    let count = 0;
    for (const { size } of this.listsWithSets(state)) count += size;
    return count;
  }
}

/** Returns the list of a row, with its queue. @throws Error - it is in none. */
export function listOf(row: TaskRow): QueueList {
  if (row.list === undefined) throw new Error(`task '${row.message.id}' is in no list`);
  return row.list as QueueList;
}
