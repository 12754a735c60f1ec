import type { TaskState } from '../../task-state.ts';
import { journaled } from './journaled-row.ts';
import type { QueueState } from './queue-state.ts';
import type { TaskRow } from './task-lists.ts';
import type { TaskStore } from './task-store.ts';

/* How a row of an earlier process, or of another broker, comes into a store: everything but its list is filled in. */

/** Puts a row where it was. `row.atMs` is wall-clock time, `row.serial` its order. */
export function restore(store: TaskStore, row: TaskRow, queue: QueueState, state: TaskState): void {
  const { clock } = store;
  if (state === 'pending') {
    queue.pending.push(row);
  } else if (state === 'aggregating') {
    row.atMs = Math.min(clock.now() + row.atMs - clock.wallNow(), clock.now());
    queue.group(row.message.group).push(row);
  } else {
    queue.lists[state].push(row);
    store.arm(row, row.atMs - clock.wallNow());
  }
}

/** Its worker was lost with the process: it goes to the head of its queue. */
export function restoreStarted(store: TaskStore, row: TaskRow, queue: QueueState): void {
  row.recoveries++;
  store.toHead(row, queue);
}

/** Returns when the leases of a store end, by the numbers of their tasks: for {@link restoreLease}. */
export function leasesOf({ queues }: TaskStore): ReadonlyMap<number, number> {
  const ends = new Map<number, number>();
  for (const { lists } of queues.values())
    for (const row of lists.active) ends.set(journaled(row).number, row.atMs);
  return ends;
}

/** Its run goes on, with the same epoch. A lease whose end is not known is over: until it is recovered, its holder may settle. */
export function restoreLease(store: TaskStore, row: TaskRow, queue: QueueState, endsAtMs?: number): void {
  const nowMs = store.clock.now();
  row.atMs = endsAtMs ?? nowMs;
  queue.lists.active.push(row);
  queue.pending.resume(row);
  store.arm(row, row.atMs - nowMs);
}

export function restoreLock({ clock, locks }: TaskStore, row: TaskRow, endsWallMs: number): void {
  locks.take(row.message.uniqueKey, row, clock.now() + endsWallMs - clock.wallNow());
}
