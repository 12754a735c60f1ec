import { requireIntegerAtLeast } from '../../../core/validate.ts';
import { requireQueueName } from '../../require-text.ts';
import { requireDuration } from '../../task-options.ts';
import type { LeasedTask, NewTask, TaskFailure, TaskRecord, Tick } from '../broker.ts';
import { leaseLost, tickEarly } from '../broker-errors.ts';
import { MARK_KEPT_MS, MOST_AHEAD_MS, MOST_SET_BACK_MS } from '../broker-settings.ts';
import { recordOf } from './inspection.ts';
import { listOf, type TaskRow } from './task-lists.ts';
import type { TaskStore } from './task-store.ts';

/* The life of a task, from enqueueing to the end of its runs. Each function checks first, then moves rows of the store. */

export function enqueue(store: TaskStore, task: NewTask): TaskRecord {
  store.check(task);
  const row = store.add(task);
  return recordOf(store, row, row.atMs);
}

export function enqueueMany(
  store: TaskStore,
  tasks: readonly NewTask[],
): readonly PromiseSettledResult<TaskRecord>[] {
  return tasks.map((task) => {
    try {
      return { status: 'fulfilled', value: enqueue(store, task) };
    } catch (reason) {
      return { status: 'rejected', reason };
    }
  });
}

export function enqueueTick(store: TaskStore, task: NewTask, tick: Tick): TaskRecord | undefined {
  const { entryKey, atMs } = tick;
  requireQueueName('task.message.queue', task.message.queue);
  const wallNowMs = store.clock.wallNow();
  if (atMs > wallNowMs + MOST_AHEAD_MS) throw tickEarly(tick);
  const { ticks } = store.openQueue(task.message.queue);
  const lastMs = ticks.get(entryKey);
  if (lastMs !== undefined && lastMs >= atMs && lastMs <= wallNowMs + MOST_SET_BACK_MS) return undefined;
  // Deleted first, so that the map stays in order of the latest tick.
  ticks.delete(entryKey);
  ticks.set(entryKey, atMs);
  forgetTicksBefore(Math.min(wallNowMs, atMs) - MARK_KEPT_MS, ticks);
  return enqueue(store, task);
}

function forgetTicksBefore(oldestMs: number, ticks: Map<string, number>): void {
  for (const [entryKey, atMs] of ticks) {
    if (atMs >= oldestMs) return;
    ticks.delete(entryKey);
  }
}

const NO_TASKS: readonly LeasedTask[] = Object.freeze([]);

export function dequeue(
  store: TaskStore,
  name: string,
  limit: number,
  leaseMs: number,
): readonly LeasedTask[] {
  requireIntegerAtLeast('limit', 0, limit);
  requireDuration('leaseMs', leaseMs);
  const queue = store.queues.get(name);
  if (queue === undefined || queue.isPaused) return NO_TASKS;
  const { pending } = queue.lists;
  if (pending.size === 0) return NO_TASKS;
  const nowMs = store.clock.now();
  const leased: LeasedTask[] = [];
  while (leased.length < limit) {
    const row = pending.head;
    if (row === undefined) break;
    leased.push(lease(store, row, leaseMs, nowMs));
  }
  return leased;
}

export function complete(store: TaskStore, task: LeasedTask): void {
  const row = leasedRow(store, task);
  const { days } = listOf(row).queue;
  const wallNowMs = store.clock.wallNow();
  const { retentionMs } = task.message;
  if (retentionMs > 0) {
    row.message = { ...row.message, completedAtMs: wallNowMs };
    store.makeCompleted(row, retentionMs, wallNowMs);
  } else {
    store.remove(row);
  }
  days.count(wallNowMs, false);
}

export function retry(store: TaskStore, task: LeasedTask, failure: TaskFailure, atMs: number): void {
  requireDuration('atMs', atMs);
  const row = leasedRow(store, task);
  const { days } = listOf(row).queue;
  const wallNowMs = store.clock.wallNow();
  const { message } = row;
  const retried = message.retried + (failure.isFailure ? 1 : 0);
  row.message = { ...message, retried, lastError: failure.error, lastFailedAtMs: wallNowMs };
  if (failure.isRecovery === true) row.recoveries++;
  store.makeRetry(row, atMs);
  if (failure.isFailure) days.count(wallNowMs, true);
}

export function archive(store: TaskStore, task: LeasedTask, failure: TaskFailure): void {
  const row = leasedRow(store, task);
  const { days } = listOf(row).queue;
  const wallNowMs = store.clock.wallNow();
  row.message = { ...row.message, lastError: failure.error, lastFailedAtMs: wallNowMs };
  if (failure.isRecovery === true) row.recoveries++;
  store.makeArchived(row);
  days.count(wallNowMs, true);
}

export function release(store: TaskStore, task: LeasedTask): void {
  store.giveBack(leasedRow(store, task));
}

export function discard(store: TaskStore, task: LeasedTask): void {
  store.remove(leasedRow(store, task));
}

export function extendLeases(
  store: TaskStore,
  tasks: readonly LeasedTask[],
  leaseMs: number,
): readonly LeasedTask[] {
  requireDuration('leaseMs', leaseMs);
  const lost: LeasedTask[] = [];
  const nowMs = store.clock.now();
  for (const task of tasks) {
    const row = findLeased(store, task);
    if (row === undefined) lost.push(task);
    else store.extendLease(row, leaseMs, nowMs);
  }
  return lost;
}

export function writeResult(store: TaskStore, task: LeasedTask, result: Uint8Array): void {
  const row = leasedRow(store, task);
  row.result = result.slice();
}

export function writeProgress(store: TaskStore, task: LeasedTask, progress: string): void {
  const row = leasedRow(store, task);
  row.progress = progress;
  store.notifications.progressed(listOf(row).queue, row.message.id);
}

/** In the order in which they were leased. O(active). */
export function recover(
  store: TaskStore,
  names: readonly string[],
  graceMs: number,
  leaseMs: number,
): readonly LeasedTask[] {
  requireDuration('graceMs', graceMs);
  requireDuration('leaseMs', leaseMs);
  const nowMs = store.clock.now();
  const endedUntilMs = nowMs - graceMs;
  const orphans: TaskRow[] = [];
  for (const name of new Set(names)) {
    for (const row of store.queues.get(name)?.lists.active ?? []) {
      if (row.atMs <= endedUntilMs) orphans.push(row);
    }
  }
  return orphans.map((row) => lease(store, row, leaseMs, nowMs));
}

function lease(store: TaskStore, row: TaskRow, leaseMs: number, nowMs: number): LeasedTask {
  store.lease(row, leaseMs, nowMs);
  return { message: row.message, epoch: row.serial, recoveries: row.recoveries };
}

function findLeased(store: TaskStore, { message, epoch }: LeasedTask): TaskRow | undefined {
  const row = store.queues.get(message.queue)?.rows.get(message.id);
  return row?.list?.state === 'active' && row.serial === epoch ? row : undefined;
}

function leasedRow(store: TaskStore, task: LeasedTask): TaskRow {
  const row = findLeased(store, task);
  if (row === undefined) throw leaseLost(task);
  return row;
}

/** The earliest first. The timer does it too, unless the wall clock was put forward. O(due tasks). */
export function forward(store: TaskStore, names: readonly string[]): number {
  const wallNowMs = store.clock.wallNow();
  let count = 0;
  for (const name of new Set(names)) {
    const lists = store.queues.get(name)?.lists;
    if (lists === undefined) continue;
    for (const list of [lists.scheduled, lists.retry]) {
      for (let row = list.first; row !== undefined && row.atMs <= wallNowMs; row = list.first, count++) {
        store.forward(row);
      }
    }
  }
  return count;
}

/** O(completed and archived tasks). */
export function deleteExpired(store: TaskStore, names: readonly string[], limit: number): number {
  requireIntegerAtLeast('limit', 1, limit);
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
}
