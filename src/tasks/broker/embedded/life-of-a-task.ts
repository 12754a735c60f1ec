import { failedWith, isRetained, requireNewTask, retainedUntilMs } from '../../task-options.ts';
import type { Operations } from '../broker-base.ts';
import { leaseLost, tickEarly } from '../broker-errors.ts';
import { MARK_KEPT_MS, MOST_AHEAD_MS, MOST_SET_BACK_MS } from '../broker-settings.ts';
import type { LeasedTask, NewTask, TaskFailure, TaskRecord } from '../broker.ts';
import { recordOf } from './inspection.ts';
import { Kind } from './journal-format.ts';
import { journaled } from './journaled-row.ts';
import { listOf } from './queue-state.ts';
import type { TaskRow } from './task-lists.ts';
import type { TaskStore } from './task-store.ts';

const NO_TASKS: readonly LeasedTask[] = Object.freeze([]);

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
    if (queue === undefined || queue.isPaused) return NO_TASKS;
    const { pending } = queue;
    if (pending.size === 0) return NO_TASKS;
    const nowMs = store.clock.now();
    const leased: LeasedTask[] = [];
    while (leased.length < limit) {
      const row = pending.next(nowMs);
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
    row.result = result.slice();
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
    const endedUntilMs = nowMs - graceMs;
    const orphans: TaskRow[] = [];
    for (const name of new Set(names)) {
      for (const row of store.queues.get(name)?.lists.active ?? []) {
        if (row.atMs <= endedUntilMs) orphans.push(row);
      }
    }
    return orphans.map((row) => lease(store, row, leaseMs, nowMs));
  },

  /** The timer does it, too: a minute later, if the wall clock was set forward. */
  forward(store, names) {
    let count = 0;
    for (const name of new Set(names)) {
      const queue = store.queues.get(name);
      if (queue !== undefined) count += store.forwardDue(queue);
    }
    return count;
  },

  /** O(completed and archived tasks). */
  deleteExpired(store, names, limit) {
    const wallNowMs = store.clock.wallNow();
    let count = 0;
    for (const name of new Set(names)) {
      const expired: TaskRow[] = [];
      const { completed = [], archived = [] } = store.queues.get(name)?.lists ?? {};
      for (const list of [completed, archived]) {
        for (const row of list) if (row.atMs <= wallNowMs && expired.length < limit) expired.push(row);
      }
      for (const row of expired) store.remove(row);
      count += expired.length;
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
  if (failure.isRecovery === true) row.recoveries++;
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
