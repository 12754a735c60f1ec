import type { TaskRecord } from '../broker.ts';
import { listOf, type TaskRow } from './task-row.ts';
import type { TaskStore } from './task-store.ts';

/**
 * A row as everybody may see it: a copy, which stays as it is.
 *
 * @param wallNowMs - if somebody has looked already.
 */
export function recordOf({ clock }: TaskStore, row: TaskRow, wallNowMs?: number): TaskRecord {
  const { message, atMs, result, progress } = row;
  const { state } = listOf(row);
  const isWaiting = state === 'scheduled' || state === 'retry';
  return {
    message,
    state,
    nextProcessAtMs: state === 'pending' ? (wallNowMs ?? clock.wallNow()) : isWaiting ? atMs : 0,
    result,
    progress,
    isOrphaned: state === 'active' && atMs <= clock.now(),
  };
}
