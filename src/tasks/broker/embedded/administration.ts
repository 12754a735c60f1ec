import { inOwnTurn } from '../../../core/own-turn.ts';
import type { TaskState } from '../../task-state.ts';
import { brokerClosed, bulkState, queueNotEmpty, queueState, taskState } from '../broker-errors.ts';
import { listOf, type QueueState, type TaskRow } from './task-lists.ts';
import type { TaskStore } from './task-store.ts';

/* What an administrator does with tasks and queues. */

/** Rows that are changed in one turn of the event loop: a millisecond or less. */
const ROWS_PER_TURN = 1_000;

/** Something that can be done to one task, or to all of a state. */
export interface Change {
  /** The operation that does it to all. */
  readonly all: string;
  readonly verb: string;
  /** States in which it cannot be done. */
  readonly except: readonly TaskState[];
  apply(store: TaskStore, row: TaskRow): void;
}

export const DELETE: Change = {
  all: 'deleteAll',
  verb: 'deleted',
  except: ['active'],
  apply(store, row) {
    store.remove(row);
  },
};

export const RUN: Change = {
  all: 'runAll',
  verb: 'run now',
  except: ['active', 'pending'],
  apply(store, row) {
    store.makePending(row);
  },
};

export const ARCHIVE: Change = {
  all: 'archiveAll',
  verb: 'archived',
  except: ['active', 'archived'],
  apply(store, row) {
    store.makeArchived(row);
  },
};

export function changeTask(store: TaskStore, change: Change, queue: string, id: string): void {
  const row = store.row(queue, id);
  const { state, isHeld } = listOf(row);
  if (change.except.includes(state)) throw taskState(queue, id, state, change.verb);
  if (isHeld) throw taskState(queue, id, 'being aggregated', change.verb);
  change.apply(store, row);
}

/**
 * Changes every task of a state, a thousand a turn, and no more than there were at first: so it ends even if others arrive as
 * fast. It always takes the first row of a list, so it has no position that could become wrong between turns.
 */
export async function changeAll(
  store: TaskStore,
  change: Change,
  name: string,
  state: TaskState,
  group: string | undefined,
): Promise<number> {
  const queue = store.queue(name);
  if (change.except.includes(state)) throw bulkState(state, change.verb);
  let left = 0;
  for (const list of queue.listsOf(state, group)) left += list.size;
  let done = 0;
  while (left > 0) {
    const changed = changeSome(store, change, queue, state, group, Math.min(left, ROWS_PER_TURN));
    done += changed;
    left -= changed;
    if (changed < ROWS_PER_TURN || left === 0) break;
    await nextTurn(store, change.all);
    if (queue.isRemoved) break;
  }
  return done;
}

/** @returns how many rows it changed: fewer than `limit` if there are no more. */
function changeSome(
  store: TaskStore,
  change: Change,
  queue: QueueState,
  state: TaskState,
  group: string | undefined,
  limit: number,
): number {
  let done = 0;
  for (const list of queue.listsOf(state, group)) {
    for (let row = list.first; row !== undefined; row = list.first) {
      change.apply(store, row);
      if (++done === limit) return done;
    }
  }
  return done;
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
  if (queue.lists.pending.size > 0) store.notifications.work(queue);
}

/** Removes a queue at once; then what its tasks hold (timers, locks), a thousand tasks a turn. */
export async function removeQueue(store: TaskStore, name: string, force: boolean): Promise<void> {
  const queue = store.queue(name);
  if (queue.lists.active.size > 0) throw queueNotEmpty(name, 'active tasks');
  if (!force && queue.rows.size > 0) throw queueNotEmpty(name, `${queue.rows.size} tasks`);
  queue.isRemoved = true;
  store.queues.delete(name);
  for (const { timer } of queue.sets.values()) store.timer.cancel(timer);
  let left = ROWS_PER_TURN;
  for (const row of queue.rows.values()) {
    store.remove(row);
    if (--left > 0) continue;
    await nextTurn(store, 'removeQueue');
    left = ROWS_PER_TURN;
  }
  queue.sets.clear();
}

async function nextTurn(store: TaskStore, operation: string): Promise<void> {
  await new Promise<void>(inOwnTurn);
  if (store.isClosed) throw brokerClosed(`EmbeddedBroker.${operation}`);
}
