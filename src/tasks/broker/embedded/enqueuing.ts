import type { NewTask, TaskRecord, Tick } from '../broker.ts';
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

export function enqueueTick(
  store: TaskStore,
  task: NewTask,
  { entryKey, atMs }: Tick,
): TaskRecord | undefined {
  const { ticks } = store.openQueue(task.message.queue);
  const lastMs = ticks.get(entryKey);
  if (lastMs !== undefined && lastMs >= atMs) return undefined;
  ticks.set(entryKey, atMs);
  return enqueue(store, task);
}
