import { requireQueueName } from '../../require-text.ts';
import type { NewTask, TaskRecord, Tick } from '../broker.ts';
import { tickEarly } from '../broker-errors.ts';
import { MARK_KEPT_MS, MOST_AHEAD_MS, MOST_SET_BACK_MS } from '../broker-settings.ts';
import { recordOf } from './record.ts';
import type { TaskStore } from './task-store.ts';

/** Tasks come in. */

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
  ticks.delete(entryKey);
  ticks.set(entryKey, atMs);
  forgetOld(ticks, Math.min(wallNowMs, atMs) - MARK_KEPT_MS);
  return enqueue(store, task);
}

/** Marks of entries that have not ticked since then, the one that ticked least recently first. */
function forgetOld(ticks: Map<string, number>, oldestMs: number): void {
  for (const [entryKey, atMs] of ticks) {
    if (atMs >= oldestMs) return;
    ticks.delete(entryKey);
  }
}
