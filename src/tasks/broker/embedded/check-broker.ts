import { INTERNALS as TIMER_INTERNALS } from '../../../timer/timer-internals.ts';
import { checkTimer } from '../../../timer/check-timer.ts';
import { NO_SLOT } from '../../../timer/timer-table.ts';
import { INTERNALS, type EmbeddedBroker } from './embedded-broker.ts';
import { NO_TIMER, WaitingList, type QueueState, type TaskList, type TaskRow } from './task-lists.ts';
import type { TaskStore } from './task-store.ts';

/**
 * Checks the whole structure of an embedded broker: that every task is in exactly one list, and found by its id; every
 * link and every count; that what waits for a moment has its place in the timer, and nothing else has; that every lock
 * belongs to a task. For tests: O(tasks). A broker that is closed has nothing to check.
 *
 * @throws Error - naming the first thing that does not hold.
 */
export function checkBroker(broker: EmbeddedBroker): void {
  const { store } = broker[INTERNALS]();
  if (store === undefined) return;
  checkTimer(store.timer);
  let timers = 0;
  for (const [name, queue] of store.queues) {
    ensure(queue.name === name && !queue.isRemoved, `queue '${name}' is another one, or was removed`);
    timers += checkQueueState(store, queue);
  }
  ensure(store.timer.size === timers, `${store.timer.size} entries are in the timer, but ${timers} wait`);
  checkLocks(store);
}

function ensure(holds: boolean, claim: string): asserts holds {
  if (!holds) throw new Error(`checkBroker: ${claim}`);
}

/** @returns how many entries it has in the timer. */
function checkQueueState(store: TaskStore, queue: QueueState): number {
  let tasks = 0;
  let timers = 0;
  const check = (list: TaskList): void => {
    timers += checkList(store, queue, list);
    tasks += list.size;
  };
  for (const [state, list] of Object.entries(queue.lists)) {
    ensure(list.state === state && list.group === '' && !list.isHeld, `the list '${state}' is another one`);
    check(list);
  }
  for (const [group, list] of queue.groups) {
    ensure(
      list.group === group && list.state === 'aggregating' && !list.isHeld,
      `group '${group}' is another one`,
    );
    ensure(list.size > 0, `group '${group}' has no tasks`);
    check(list);
  }
  for (const [id, { id: ownId, list, timer }] of queue.sets) {
    ensure(id === ownId && list.isHeld && list.state === 'aggregating', `set '${id}' is another one`);
    ensure(list.size > 0, `set '${id}' has no tasks`);
    ensure(isScheduled(store, timer), `set '${id}' is in no timer`);
    timers++;
    check(list);
  }
  ensure(queue.rows.size === tasks, `${queue.rows.size} tasks have an id, but ${tasks} are in a list`);
  ensure(queue.days.size <= 91, `${queue.days.size} days are kept`);
  ensure(queue.days.failedTotal <= queue.days.processedTotal, 'more has failed than was processed');
  return timers;
}

function checkList(store: TaskStore, queue: QueueState, list: TaskList): number {
  let count = 0;
  let timers = 0;
  let previous: TaskRow | undefined;
  for (let row = list.head; row !== undefined; row = row.next) {
    const where = `task '${row.message.id}' of queue '${queue.name}', ${list.state}`;
    ensure(++count <= list.size, `${where}: its list has ${list.size}, and goes on`);
    ensure(row.list === list && list.queue === queue, `${where}: it says that it is elsewhere`);
    ensure(row.previous === previous, `${where}: its link back leads elsewhere`);
    ensure(queue.rows.get(row.message.id) === row, `${where}: its id leads elsewhere`);
    ensure(row.message.queue === queue.name, `${where}: it is of queue '${row.message.queue}'`);
    ensure(list.group === '' || row.message.group === list.group, `${where}: it is in group '${list.group}'`);
    ensure(isOrdered(list, previous, row), `${where}: it has come before the one that it is behind`);
    if (checkWaiting(store, row, list, where)) timers++;
    previous = row;
  }
  if (list instanceof WaitingList) checkOrder(list);
  ensure(list.tail === previous, `the list of what is ${list.state} ends elsewhere`);
  ensure(count === list.size, `${list.size} are ${list.state}, but there are ${count}`);
  return timers;
}

function checkOrder(list: WaitingList): void {
  let count = 0;
  let previous: TaskRow | undefined;
  for (const row of list.byTime) {
    const where = `task '${row.message.id}', ${list.state}`;
    ensure(row.list === list, `${where}: it has a moment, and is elsewhere`);
    ensure(
      previous === undefined || isEarlier(previous, row),
      `${where}: its moment is not behind the one before`,
    );
    previous = row;
    count++;
  }
  ensure(count === list.size, `${list.size} are ${list.state}, but ${count} have a moment`);
  ensure(
    list.byTime.slice(0, count + 1).length === count,
    `a page of what is ${list.state} has not all of it`,
  );
}

function isEarlier(a: TaskRow, b: TaskRow): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.serial < b.serial);
}

/** Groups and sets are in the order in which their tasks came. */
function isOrdered(list: TaskList, previous: TaskRow | undefined, row: TaskRow): boolean {
  return list.state !== 'aggregating' || previous === undefined || previous.serial < row.serial;
}

/** @returns whether it waits. */
function checkWaiting(store: TaskStore, row: TaskRow, { state }: TaskList, where: string): boolean {
  const isWaiting = row.timer !== NO_TIMER;
  ensure(!isWaiting || isScheduled(store, row.timer), `${where}: it waits, and is in no timer`);
  if (state === 'pending' || state === 'aggregating') ensure(!isWaiting, `${where}: it waits for a moment`);
  // A lease that is over has had its moment.
  else if (state !== 'active') ensure(isWaiting, `${where}: it waits for no moment`);
  else
    ensure(
      isWaiting || row.atMs <= store.clock.now(),
      `${where}: its lease goes on, and nobody will see it end`,
    );
  return isWaiting;
}

function checkLocks({ locks, queues }: TaskStore): void {
  for (const [key, { owner }] of locks.entries()) {
    const { uniqueKey, queue, id } = owner.message;
    ensure(uniqueKey === key, `lock '${key}': its owner's key is '${uniqueKey}'`);
    // One of a queue that was removed goes soon.
    if (owner.list?.queue.isRemoved === true) continue;
    ensure(queues.get(queue)?.rows.get(id) === owner, `lock '${key}': its owner '${id}' is gone`);
    const state = owner.list?.state;
    ensure(
      state !== 'completed' && state !== 'archived',
      `lock '${key}': its owner '${id}' is ${state ?? 'nowhere'}`,
    );
  }
}

function isScheduled({ timer }: TaskStore, id: number): boolean {
  return timer[TIMER_INTERNALS]().wheels.table.slotOf(id) !== NO_SLOT;
}
