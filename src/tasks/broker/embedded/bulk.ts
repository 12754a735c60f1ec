import { inOwnTurn } from '../../../core/own-turn.ts';
import type { TaskState } from '../../task-state.ts';
import { brokerClosed, bulkState } from '../broker-errors.ts';
import type { QueueState } from './queue-state.ts';
import type { TaskRow } from './task-row.ts';
import type { TaskStore } from './task-store.ts';

/** Rows that are moved in one turn of the event loop: a millisecond or less. */
const ROWS_PER_TURN = 1_000;

/** What is done to many tasks of a queue at once. */
export interface BulkOperation {
  readonly name: string;
  readonly verb: string;
  /** States that tasks cannot be in for it. */
  readonly except: readonly TaskState[];
  apply(store: TaskStore, row: TaskRow): void;
}

export const DELETE_ALL: BulkOperation = {
  name: 'deleteAll',
  verb: 'deleted',
  except: ['active'],
  apply(store, row) {
    store.remove(row);
  },
};

export const RUN_ALL: BulkOperation = {
  name: 'runAll',
  verb: 'run now',
  except: ['active', 'pending'],
  apply(store, row) {
    store.makePending(row);
  },
};

export const ARCHIVE_ALL: BulkOperation = {
  name: 'archiveAll',
  verb: 'archived',
  except: ['active', 'archived'],
  apply(store, row) {
    store.makeArchived(row);
  },
};

/**
 * Does it to every task of a state, a thousand a turn; not to more than there were at first, so that it ends although
 * others come as fast. Always to the first one of a list, the earliest of what waits: whatever happens in between, there is no place to lose.
 */
export async function applyToAll(
  store: TaskStore,
  operation: BulkOperation,
  name: string,
  state: TaskState,
  group: string | undefined,
): Promise<number> {
  const queue = store.queue(name);
  if (operation.except.includes(state)) throw bulkState(state, operation.verb);
  let left = 0;
  for (const list of queue.listsOf(state, group)) left += list.size;
  let done = 0;
  while (left > 0) {
    const piece = applyToSome(store, operation, queue, state, group, Math.min(left, ROWS_PER_TURN));
    done += piece;
    left -= piece;
    if (piece < ROWS_PER_TURN || left === 0 || !(await isStillThere(store, operation.name, queue))) break;
  }
  return done;
}

/** Gives back what the tasks of a queue that was detached hold, a thousand a turn. */
export async function clear(store: TaskStore, queue: QueueState): Promise<void> {
  let left = ROWS_PER_TURN;
  for (const row of queue.rows.values()) {
    store.remove(row);
    if (--left > 0) continue;
    await nextTurn(store, 'removeQueue');
    left = ROWS_PER_TURN;
  }
  queue.sets.clear();
}

/** @returns how many it was done to: less than `limit` if there are no more. */
function applyToSome(
  store: TaskStore,
  operation: BulkOperation,
  queue: QueueState,
  state: TaskState,
  group: string | undefined,
  limit: number,
): number {
  let done = 0;
  for (const list of queue.listsOf(state, group)) {
    for (let row = list.first; row !== undefined; row = list.first) {
      operation.apply(store, row);
      if (++done === limit) return done;
    }
  }
  return done;
}

async function isStillThere(store: TaskStore, operation: string, queue: QueueState): Promise<boolean> {
  await nextTurn(store, operation);
  return !queue.isRemoved;
}

async function nextTurn(store: TaskStore, operation: string): Promise<void> {
  await new Promise<void>(inOwnTurn);
  if (store.isClosed) throw brokerClosed(`EmbeddedBroker.${operation}`);
}
