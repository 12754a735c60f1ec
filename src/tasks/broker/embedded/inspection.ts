import { requireIntegerAtLeast } from '../../../core/validate.ts';
import { TASK_STATES, type TaskState } from '../../task-state.ts';
import type { DayStats, Page, QueueStats, TaskRecord } from '../broker.ts';
import { dateOf } from './day-counters.ts';
import { memoryBytesOf } from './memory-estimate.ts';
import type { QueueState } from './queue-state.ts';
import { recordOf } from './record.ts';
import type { TaskList } from './task-list.ts';
import type { TaskRow } from './task-row.ts';
import type { TaskStore } from './task-store.ts';

/** What there is to see of queues and their tasks; nothing here changes anything. */

/** By name. */
export function queueNames(store: TaskStore): readonly string[] {
  return [...store.queues.keys()].sort();
}

export function queueStats(store: TaskStore, name: string): QueueStats {
  const queue = store.queue(name);
  const wallNowMs = store.clock.wallNow();
  const { head } = queue.lists.pending;
  const today = queue.days.of(wallNowMs, 0);
  return {
    queue: name,
    counts: countsOf(queue),
    groups: queue.groups.size,
    latencyMs: head === undefined ? 0 : Math.max(wallNowMs - head.atMs, 0),
    memoryBytes: memoryBytesOf(queue),
    processed: today.processed,
    failed: today.failed,
    processedTotal: queue.days.processedTotal,
    failedTotal: queue.days.failedTotal,
    isPaused: queue.isPaused,
    atMs: wallNowMs,
  };
}

export function history(store: TaskStore, name: string, days: number): readonly DayStats[] {
  requireIntegerAtLeast('days', 1, days);
  const queue = store.queue(name);
  const wallNowMs = store.clock.wallNow();
  return Array.from({ length: days }, (_, daysAgo) => {
    const { processed, failed } = queue.days.of(wallNowMs, daysAgo);
    return { queue: name, date: dateOf(wallNowMs, daysAgo), processed, failed };
  });
}

/** A page far behind costs a walk to it; of what waits for a moment, a short one: see rows-by-moment.ts. */
export function tasks(
  store: TaskStore,
  name: string,
  state: TaskState,
  page: Page,
  group: string | undefined,
): readonly TaskRecord[] {
  requireIntegerAtLeast('page.page', 1, page.page);
  requireIntegerAtLeast('page.size', 1, page.size);
  const queue = store.queue(name);
  const skip = (page.page - 1) * page.size;
  const isByMoment = state === 'scheduled' || state === 'retry';
  const rows = isByMoment
    ? queue.lists[state].byMoment.slice(skip, page.size)
    : slice(queue.listsOf(state, group), skip, page.size);
  return rows.map((row) => recordOf(store, row));
}

function slice(lists: Iterable<TaskList>, skip: number, count: number): TaskRow[] {
  const rows: TaskRow[] = [];
  let left = skip;
  for (const list of lists) {
    if (left >= list.size) {
      left -= list.size;
      continue;
    }
    for (const row of list) {
      if (left > 0) left--;
      else if (rows.push(row) === count) return rows;
    }
  }
  return rows;
}

function countsOf(queue: QueueState): Record<TaskState, number> {
  const counts = {} as Record<TaskState, number>;
  for (const state of TASK_STATES) {
    counts[state] = state === 'aggregating' ? queue.countAggregating() : queue.lists[state].size;
  }
  return counts;
}
