import { ownTurn } from '../../../core/own-turn.ts';
import { reportUncaught } from '../../../core/report-uncaught.ts';
import { TASK_CHANGES, type TaskChange, type TaskState } from '../../task-state.ts';
import { limitsOf } from '../broker-settings.ts';
import type { Operations } from '../broker-base.ts';
import { brokerClosed, bulkState, queueNotEmpty, queueState, taskState } from '../broker-errors.ts';
import { Kind } from './journal-format.ts';
import { listOf } from './queue-state.ts';
import type { TaskList, TaskRow } from './task-lists.ts';
import { ROWS_PER_TURN, type TaskStore } from './task-store.ts';

/** The move of the store that makes each change. */
const MOVES = { delete: 'remove', run: 'makePending', archive: 'makeArchived' } as const;

export const ADMINISTRATION = {
  announceServer: ({ servers }, read) => void servers.set(read().id, read),
  withdrawServer: ({ servers }, { id }) => void servers.delete(id),
  servers: ({ servers }) => [...servers.values()].flatMap((read) => tryRead(() => [read()])),

  announceScheduler: ({ schedulers }, id, read) => void schedulers.set(id, read),
  withdrawScheduler: ({ schedulers }, id) => void schedulers.delete(id),
  scheduleEntries: ({ schedulers }) => [...schedulers.values()].flatMap((read) => tryRead(read)),

  recordEnqueueEvent(store, entryId, event) {
    store.enqueueEvents.add(entryId, event);
    store.journal?.write(Kind.event, event.atMs, entryId, event.taskId);
  },

  enqueueEvents(store, entryId, page) {
    return store.enqueueEvents
      .of(entryId)
      .toReversed()
      .slice((page.page - 1) * page.size, page.page * page.size);
  },

  change(store, queue, target, change) {
    if (!('id' in target)) return changeAll(store, queue, target.state, target.group, change);
    const row = store.row(queue, target.id);
    const { state, isHeld } = listOf(row);
    const { done, refused } = TASK_CHANGES[change];
    if (refused.includes(state)) throw taskState(queue, target.id, state, done);
    if (isHeld) throw taskState(queue, target.id, 'being aggregated', done);
    store[MOVES[change]](row);
    return 1;
  },

  updatePayload(store, queue, id, payload) {
    const row = store.row(queue, id);
    const { state } = listOf(row);
    if (state !== 'scheduled') throw taskState(queue, id, state, 'changed');
    // The caller may change its bytes; the `slice` of a Buffer copies nothing.
    row.message = { ...row.message, payload: Uint8Array.prototype.slice.call(payload) };
    store.journal?.task(row);
  },

  /** No other program can change the broker's memory, so there is nothing to repair. */
  repair(store, queue) {
    store.queue(queue);
    return [];
  },

  limits: (store, name) => store.queues.get(name)?.pending.limits,

  setLimits(store, name, given) {
    const limits = limitsOf(given);
    if (limits === undefined && !store.queues.has(name)) return;
    const queue = store.openQueue(name);
    queue.pending.setLimits(limits);
    store.journal?.write(Kind.queue, name, queue.settings);
  },

  pause(store, name) {
    const queue = store.queue(name);
    if (queue.isPaused) throw queueState(name, 'paused already');
    queue.isPaused = true;
    store.journal?.write(Kind.queue, name, queue.settingsWithoutBuckets);
  },

  resume(store, name) {
    const queue = store.queue(name);
    if (!queue.isPaused) throw queueState(name, 'not paused');
    queue.isPaused = false;
    store.journal?.write(Kind.queue, name, queue.settingsWithoutBuckets);
    queue.pending.announceAll();
  },

  /**
   * Removes a queue immediately; then the timer entries and locks of its tasks, a thousand tasks a turn. If the store is closed, or read
   * again from its log, meanwhile, nothing is left to do.
   */
  async removeQueue(store, name, { force }) {
    const queue = store.queue(name);
    if (queue.lists.active.size > 0) throw queueNotEmpty(name, 'active');
    if (!force && queue.rows.size > 0) throw queueNotEmpty(name, queue.rows.size);
    queue.isRemoved = true;
    store.queues.delete(name);
    store.leaving.add(queue);
    store.journal?.write(Kind.removeQueue, name);
    queue.pending.close();
    for (const { timer } of queue.sets.values()) store.timer.cancel(timer);
    let left = ROWS_PER_TURN;
    for (const row of queue.rows.values()) {
      store.remove(row);
      if (--left > 0) continue;
      await ownTurn();
      if (store.isClosed || !store.leaving.has(queue)) return;
      left = ROWS_PER_TURN;
    }
    store.leaving.delete(queue);
  },
} satisfies Partial<Operations<TaskStore>>;

/**
 * Changes every task of a state, a thousand a turn, and no more than there were at first: so it ends even if others arrive as
 * fast. It always takes the first row of a list, so it has no position that could become wrong between turns.
 */
async function changeAll(
  store: TaskStore,
  name: string,
  state: TaskState,
  group: string | undefined,
  change: TaskChange,
): Promise<number> {
  const queue = store.queue(name);
  const { done: verb, refused } = TASK_CHANGES[change];
  if (refused.includes(state)) throw bulkState(state, verb);
  let most = 0;
  for (const list of queue.listsOf(state, group)) most += list.size;
  let done = 0;
  while (done < most) {
    const enough = Math.min(most, done + ROWS_PER_TURN);
    for (const row of firstRows(queue.listsOf(state, group))) {
      store[MOVES[change]](row);
      if (++done === enough) break;
    }
    if (done < enough || done === most) break;
    await nextTurn(store);
    if (queue.isRemoved) break;
  }
  await store.journal?.settled(); // what the last turn has written
  return done;
}

/** Yields the first row of each list until the list is empty: the loop takes each row out. */
function* firstRows(lists: Iterable<TaskList>): Generator<TaskRow, void, undefined> {
  for (const list of lists) for (let row = list.first; row !== undefined; row = list.first) yield row;
}

async function nextTurn(store: TaskStore): Promise<void> {
  await ownTurn();
  if (store.isClosed) throw brokerClosed();
  // What was changed is refused: the log is read again, and would get the rest of an operation that has begun before.
  store.journal?.requireAvailable();
}

/** Calls a function of a server or scheduler; one that throws must not hide the others. */
function tryRead<T>(read: () => readonly T[]): readonly T[] {
  try {
    return read();
  } catch (error) {
    reportUncaught(error);
    return [];
  }
}
