import { randomUUID } from 'node:crypto';
import { failedWith, isRetained, requireNewTask, retainedUntilMs } from '../../task-options.ts';
import type { Operations } from '../broker-base.ts';
import { leaseLost, setLost, tickEarly } from '../broker-errors.ts';
import { MARK_KEPT_MS, MOST_AHEAD_MS, MOST_SET_BACK_MS } from '../broker-settings.ts';
import type {
  GroupLimits,
  GroupTaking,
  LeasedTask,
  NewTask,
  TaskFailure,
  TaskRecord,
  TaskSet,
} from '../broker.ts';
import { recordOf } from './inspection.ts';
import { Kind } from './journal-format.ts';
import { journaled } from './journaled-row.ts';
import { type HeldSet, listOf, type QueueList } from './queue-state.ts';
import { NO_TIMER, type TaskList, type TaskRow } from './task-lists.ts';
import type { TaskStore } from './task-store.ts';

const NO_TASKS: readonly LeasedTask[] = Object.freeze([]);
const NO_SET: GroupTaking = Object.freeze({ set: undefined, againInMs: undefined });

/** The life of a task, from enqueueing to the end of its runs. Each operation checks first, then moves rows of the store. */
export const LIFE_OF_A_TASK = {
  enqueue,

  enqueueMany(store, tasks) {
    return tasks.map((task) => {
      try {
        requireNewTask(task);
        return { status: 'fulfilled', value: enqueue(store, task) };
      } catch (reason) {
        return { status: 'rejected', reason };
      }
    });
  },

  enqueueTick(store, task, tick) {
    const { entryKey, atMs } = tick;
    const wallNowMs = store.clock.wallNow();
    if (atMs > wallNowMs + MOST_AHEAD_MS) throw tickEarly(tick);
    const queue = store.openQueue(task.message.queue);
    const lastMs = queue.ticks.get(entryKey);
    if (lastMs !== undefined && lastMs >= atMs && lastMs <= wallNowMs + MOST_SET_BACK_MS) return undefined;
    queue.setTick(entryKey, atMs);
    forgetTicksBefore(Math.min(wallNowMs, atMs) - MARK_KEPT_MS, queue.ticks);
    store.journal?.write(Kind.tick, atMs, queue.name, entryKey);
    return enqueue(store, task);
  },

  lastTickMs: (store, queue, entryKey) => store.queues.get(queue)?.ticks.get(entryKey),

  dequeue(store, name, limit, leaseMs) {
    const queue = store.queues.get(name);
    if (queue === undefined || queue.isPaused || queue.pending.size === 0) return NO_TASKS;
    const nowMs = store.clock.now();
    const leased: LeasedTask[] = [];
    while (leased.length < limit) {
      const row = queue.pending.next(nowMs);
      if (row === undefined) break;
      leased.push(lease(store, row, leaseMs, nowMs));
    }
    return leased;
  },

  complete(store, task) {
    const row = leasedRow(store, task);
    const { queue } = listOf(row);
    const wallNowMs = store.clock.wallNow();
    if (isRetained(task.message)) {
      row.message = { ...row.message, completedAtMs: wallNowMs };
      store.makeCompleted(row, retainedUntilMs(task.message, wallNowMs), wallNowMs);
    } else {
      store.remove(row);
    }
    store.count(queue, wallNowMs, false);
  },

  retry(store, task, failure, atMs) {
    const row = leasedRow(store, task);
    const { queue } = listOf(row);
    const wallNowMs = writeFailure(store, row, failure, failure.isFailure ? 1 : 0);
    if (failure.isRecovery === true) row.recoveries++;
    store.makeRetry(row, atMs);
    if (failure.isFailure) store.count(queue, wallNowMs, true);
  },

  archive(store, task, failure) {
    const row = leasedRow(store, task);
    const { queue } = listOf(row);
    const wallNowMs = writeFailure(store, row, failure, 0);
    store.makeArchived(row);
    store.count(queue, wallNowMs, true);
  },

  release(store, task) {
    store.release(leasedRow(store, task));
  },

  discard(store, task) {
    store.remove(leasedRow(store, task));
  },

  extendLeases(store, tasks, leaseMs) {
    const lost: LeasedTask[] = [];
    const nowMs = store.clock.now();
    for (const task of tasks) {
      const row = findLeased(store, task);
      if (row === undefined) lost.push(task);
      else store.extendLease(row, leaseMs, nowMs);
    }
    return lost;
  },

  writeResult(store, task, result) {
    const row = leasedRow(store, task);
    row.result = Uint8Array.prototype.slice.call(result); // as in updatePayload
    store.journal?.write(Kind.result, journaled(row).number, row.result);
  },

  writeProgress(store, task, progress) {
    const row = leasedRow(store, task);
    row.progress = progress;
    store.journal?.write(Kind.progress, journaled(row).number, progress);
    store.notifications.progressed(listOf(row).queue, row.message.id);
  },

  /** In the order in which they were leased. O(active). */
  recover(store, names, graceMs, leaseMs) {
    const nowMs = store.clock.now();
    const active = store.queuesNamed(names).flatMap(({ lists }) => [...lists.active]);
    const orphans = active.filter(({ atMs }) => atMs <= nowMs - graceMs);
    return orphans.map((row) => lease(store, row, leaseMs, nowMs));
  },

  /** The timer does it, too: a minute later, if the wall clock was set forward. */
  forward(store, names) {
    return store.queuesNamed(names).reduce((count, queue) => count + store.forwardDue(queue), 0);
  },

  /** O(completed and archived tasks). */
  deleteExpired(store, names, limit) {
    const wallNowMs = store.clock.wallNow();
    let count = 0;
    for (const { lists } of store.queuesNamed(names)) {
      const expired: TaskRow[] = [];
      for (const list of [lists.completed, lists.archived]) {
        for (const row of list) {
          if (expired.length >= limit) break;
          if (row.atMs <= wallNowMs) expired.push(row);
        }
      }
      for (const row of expired) store.remove(row);
      count += expired.length;
    }
    return count;
  },

  // Aggregation: the tasks of a group are taken out of it as a set, and one task replaces the set.

  groups(store, name) {
    const groups = store.queues.get(name)?.groups.values() ?? [];
    return Array.from(groups, ({ group, size }) => ({ group, size }));
  },

  takeGroup(store, name, group, limits, holdMs) {
    const list = store.queues.get(name)?.groups.get(group);
    if (list === undefined) return NO_SET;
    const nowMs = store.clock.now();
    const againInMs = dueInMs(list, limits, nowMs);
    if (againInMs > 0) return { set: undefined, againInMs };
    const set = hold(store, list, limits.maxSize === 0 ? list.size : limits.maxSize, holdMs);
    return { set, againInMs: list.size === 0 ? undefined : dueInMs(list, limits, nowMs) };
  },

  replaceSet(store, set, task) {
    const { queue: name, group, id } = set;
    const held = store.queues.get(name)?.sets.get(id);
    if (held === undefined) throw setLost(name, group);
    store.check(task, held.list);
    drop(store, held);
    for (let row = held.list.head; row !== undefined; row = held.list.head) store.remove(row);
    return recordOf(store, store.add(task));
  },

  reclaimSets(store, names) {
    const nowMs = store.clock.now();
    let count = 0;
    for (const { sets } of store.queuesNamed(names)) {
      for (const held of [...sets.values()]) if (held.endsAtMs <= nowMs) count += reclaim(store, held);
    }
    return count;
  },
} satisfies Partial<Operations<TaskStore>>;

function enqueue(store: TaskStore, task: NewTask): TaskRecord {
  const duplicate = store.replaceable(task);
  if (duplicate !== undefined) return recordOf(store, store.replace(duplicate, task), store.clock.wallNow());
  store.check(task);
  const row = store.add(task);
  return recordOf(store, row, row.atMs);
}

function forgetTicksBefore(oldestMs: number, ticks: Map<string, number>): void {
  for (const [entryKey, atMs] of ticks) {
    if (atMs >= oldestMs) return;
    ticks.delete(entryKey);
  }
}

function lease(store: TaskStore, row: TaskRow, leaseMs: number, nowMs: number): LeasedTask {
  store.lease(row, leaseMs, nowMs);
  return { message: row.message, epoch: row.serial, recoveries: row.recoveries };
}

/** @returns the wall clock's time. */
function writeFailure({ clock }: TaskStore, row: TaskRow, failure: TaskFailure, retries: number): number {
  const wallNowMs = clock.wallNow();
  row.message = failedWith(row.message, failure.error, retries, wallNowMs);
  return wallNowMs;
}

/** Returns the row of a lease; undefined if the lease is lost. */
export function findLeased(store: TaskStore, { message, epoch }: LeasedTask): TaskRow | undefined {
  const row = store.queues.get(message.queue)?.rows.get(message.id);
  return row?.list?.state === 'active' && row.serial === epoch ? row : undefined;
}

function leasedRow(store: TaskStore, task: LeasedTask): TaskRow {
  const row = findLeased(store, task);
  if (row === undefined) throw leaseLost(task);
  return row;
}

// Groups.

/** Returns how long until a group with tasks is aggregated; 0 or less if that is now. */
function dueInMs(list: TaskList, { graceMs, maxDelayMs, maxSize }: GroupLimits, nowMs: number): number {
  const { head, tail } = list;
  if (head === undefined || tail === undefined || (maxSize > 0 && list.size >= maxSize)) return 0;
  const quietInMs = tail.atMs + graceMs - nowMs;
  const inMs = maxDelayMs === 0 ? quietInMs : Math.min(quietInMs, head.atMs + maxDelayMs - nowMs);
  return Math.max(inMs, 0);
}

function hold(store: TaskStore, list: QueueList, count: number, holdMs: number): TaskSet {
  const { queue, group } = list;
  const held: HeldSet = {
    id: randomUUID(),
    list: queue.groupList(group, true),
    endsAtMs: store.clock.now() + holdMs,
    timer: NO_TIMER,
  };
  for (let row = list.head; row !== undefined && held.list.size < count; row = list.head) {
    queue.take(row);
    held.list.push(row);
  }
  queue.sets.set(held.id, held);
  held.timer = store.timer.schedule(holdMs, () => void reclaim(store, held));
  const messages = Array.from(held.list, ({ message }) => message);
  return { id: held.id, queue: queue.name, group, messages };
}

/** Returns the tasks to their group, in front of those that were added later. @returns how many. */
function reclaim(store: TaskStore, held: HeldSet): number {
  const { queue, group, size } = held.list;
  drop(store, held);
  if (size === 0) return 0;
  const list = queue.group(group);
  let previous: TaskRow | undefined;
  let next = list.head;
  for (let row = held.list.head; row !== undefined; row = held.list.head) {
    while (next !== undefined && next.serial < row.serial) {
      previous = next;
      next = next.next;
    }
    held.list.remove(row);
    list.insertAfter(previous, row);
    previous = row;
  }
  store.notifications.grouped(queue, group);
  return size;
}

function drop(store: TaskStore, { id, list, timer }: HeldSet): void {
  store.timer.cancel(timer);
  list.queue.sets.delete(id);
}
