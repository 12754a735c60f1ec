import { queueNotEmpty, queueState, taskState } from '../broker-errors.ts';
import type { QueueState } from './queue-state.ts';
import { listOf, type TaskRow } from './task-row.ts';
import type { TaskStore } from './task-store.ts';

/** What somebody does to single tasks, and to whole queues, by hand. */

export function deleteTask(store: TaskStore, queue: string, id: string): void {
  store.remove(rowIn(store, queue, id, 'deleted', ['active']));
}

export function runTask(store: TaskStore, queue: string, id: string): void {
  store.makePending(rowIn(store, queue, id, 'run now', ['active', 'pending']));
}

export function archiveTask(store: TaskStore, queue: string, id: string): void {
  store.makeArchived(rowIn(store, queue, id, 'archived', ['active', 'archived']));
}

export function updatePayload(store: TaskStore, queue: string, id: string, payload: Uint8Array): void {
  const row = store.row(queue, id);
  const { state } = listOf(row);
  if (state !== 'scheduled') throw taskState(queue, id, state, 'changed');
  row.message = { ...row.message, payload: payload.slice() };
}

export function pause(store: TaskStore, name: string): void {
  const queue = store.queue(name);
  if (queue.isPaused) throw queueState(name, 'paused already');
  queue.isPaused = true;
}

export function resume(store: TaskStore, name: string): void {
  const queue = store.queue(name);
  if (!queue.isPaused) throw queueState(name, 'not paused');
  queue.isPaused = false;
  if (queue.lists.pending.size > 0) store.hints.work(queue);
}

/** Takes a queue off the store, at once: its tasks are still in it, and nobody finds them. */
export function detachQueue(store: TaskStore, name: string, force: boolean): QueueState {
  const queue = store.queue(name);
  if (queue.lists.active.size > 0) throw queueNotEmpty(name, 'active tasks');
  if (!force && queue.rows.size > 0) throw queueNotEmpty(name, `${queue.rows.size} tasks`);
  queue.isRemoved = true;
  store.queues.delete(name);
  for (const { timer } of queue.sets.values()) store.timer.cancel(timer);
  return queue;
}

function rowIn(
  store: TaskStore,
  queue: string,
  id: string,
  verb: string,
  except: readonly string[],
): TaskRow {
  const row = store.row(queue, id);
  const { state, isHeld } = listOf(row);
  if (except.includes(state)) throw taskState(queue, id, state, verb);
  if (isHeld) throw taskState(queue, id, 'being aggregated', verb);
  return row;
}
