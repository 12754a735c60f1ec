import { requireIntegerAtLeast } from '../../../core/validate.ts';
import { requireDuration } from '../../task-options.ts';
import type { LeasedTask, TaskFailure } from '../broker.ts';
import { leaseLost } from '../broker-errors.ts';
import { queueOf, type TaskRow } from './task-row.ts';
import type { TaskStore } from './task-store.ts';

const NONE: readonly LeasedTask[] = Object.freeze([]);

/** Tasks that are processed: who has them, and how it ends. */

export function dequeue(
  store: TaskStore,
  name: string,
  limit: number,
  leaseMs: number,
): readonly LeasedTask[] {
  requireIntegerAtLeast('limit', 0, limit);
  requireDuration('leaseMs', leaseMs);
  const queue = store.queues.get(name);
  if (queue === undefined || queue.isPaused) return NONE;
  const { pending } = queue.lists;
  if (pending.size === 0) return NONE;
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
  const { days } = queueOf(row);
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
  const { days } = queueOf(row);
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
  const { days } = queueOf(row);
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
  store.hints.progressed(queueOf(row), row.message.id);
}

/** Those that were leased first come first. O(active). */
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
