import { requireIntegerAtLeast } from '../../../core/validate.ts';
import type { TaskRow } from './task-row.ts';
import type { TaskStore } from './task-store.ts';

/** For who asks: the timer sees to all of it, unless the wall clock was put forward. */

/** The earliest first. O(what is due). */
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

/** O(what is completed and archived). */
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
