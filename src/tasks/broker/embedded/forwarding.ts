import { requireIntegerAtLeast } from '../../../core/validate.ts';
import type { TaskRow } from './task-row.ts';
import type { TaskStore } from './task-store.ts';

/** For who asks: the timer sees to all of it, unless the wall clock was put forward. O(what waits). */

/** The earliest first. */
export function forward(store: TaskStore, names: readonly string[]): number {
  const wallNowMs = store.clock.wallNow();
  let count = 0;
  for (const name of new Set(names)) {
    const { scheduled = [], retry = [] } = store.queues.get(name)?.lists ?? {};
    for (const list of [scheduled, retry]) {
      const due: TaskRow[] = [];
      for (const row of list) if (row.atMs <= wallNowMs) due.push(row);
      due.sort((a, b) => a.atMs - b.atMs);
      for (const row of due) store.forward(row);
      count += due.length;
    }
  }
  return count;
}

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
