import { isDeepStrictEqual } from 'node:util';
import { requireInternals } from '../../../core/validate.ts';
import { INTERNALS as TIMER_INTERNALS } from '../../../timer/system-timer.ts';
import { checkTimer } from '../../../timer/check-timer.ts';
import { NO_SLOT } from '../../../timer/timer-table.ts';
import type { CorruptionEvent } from '../../../log/segment.ts';
import { HISTORY_DAYS } from '../broker-settings.ts';
import { INTERNALS, type EmbeddedBroker } from './embedded-broker.ts';
import type { Journal } from './journal.ts';
import { leasesOf, replay } from './replay.ts';
import { journaled, PayloadOnDisk } from './journaled-row.ts';
import type { StoredBucket } from './pending-tasks.ts';
import { listOf, type QueueState } from './queue-state.ts';
import { isEarlier, NO_TIMER, type TaskList, type TaskRow, WaitingList } from './task-lists.ts';
import type { TaskStore } from './task-store.ts';

/**
 * Checks the whole structure of an embedded broker: that every task is in exactly one list, and found by its id; every
 * link and every count; that tasks with a deadline have an entry in the timer, and no others do; that every lock belongs to a
 * task. For tests: O(tasks). A closed broker has nothing to check. `checkBrokerLog` checks what a folder holds.
 *
 * @throws Error - naming the first thing that does not hold. TypeError `ERR_INVALID_ARG_TYPE` - not an embedded broker.
 */
export function checkBroker(broker: EmbeddedBroker): void {
  requireInternals('broker', 'an EmbeddedBroker', INTERNALS, broker);
  const { store } = broker[INTERNALS]();
  if (store === undefined) return;
  checkTimer(store.timer);
  let timers = store.clockCheck === NO_TIMER ? 0 : 1;
  for (const [name, queue] of store.queues) {
    ensure(queue.name === name && !queue.isRemoved, `queue '${name}' has another name, or was removed`);
    timers += checkQueueState(store, queue);
  }
  ensure(
    store.timer.size === timers,
    `${store.timer.size} entries are in the timer, but ${timers} rows, sets and checks have one`,
  );
  checkLocks(store);
}

/**
 * Checks that the folder of an embedded broker holds what its memory holds: that a reopen would find every task, queue, lock and event
 * as it is, and that the bytes of the log are counted right. Reads the whole log, beside the open broker, and changes nothing. No
 * operation may run meanwhile. For tests: O(log). A broker that has no folder, or is closed, has nothing to check.
 *
 * @throws Error - naming the first thing that differs. TypeError `ERR_INVALID_ARG_TYPE` - not an embedded broker.
 */
export async function checkBrokerLog(broker: EmbeddedBroker): Promise<void> {
  requireInternals('broker', 'an EmbeddedBroker', INTERNALS, broker);
  const { store, journal } = broker[INTERNALS]();
  if (store === undefined || journal === undefined) return;
  // A record is readable when it is as durable as the options require.
  await Promise.all([journal.written(), journal.settled()]);
  await journal.alone(() => compareLog(store, journal));
}

async function compareLog(store: TaskStore, journal: Journal): Promise<void> {
  const damages: CorruptionEvent[] = [];
  const stored = store.blank();
  const loading = await replay(stored, journal.log, (event) => damages.push(event));
  loading.finish(leasesOf(store));
  try {
    ensure(damages.length === 0, `${damages.length} records are damaged: ${damages[0]?.reason ?? ''}`);
    const { bytes } = loading.live;
    const counted = journal.live.bytes;
    ensure(bytes === counted, `${bytes} bytes of the log are live, but ${counted} are counted`);
    compareFiles(store, journal);
    same('names of queues', new Set(stored.queues.keys()), new Set(store.queues.keys()));
    for (const queue of store.queues.values()) {
      const other = stored.queue(queue.name);
      compareQueues(other, queue, store.clock.wallNow());
      for (const row of queue.rows.values()) {
        const { id } = row.message;
        const otherRow = other.rows.get(id);
        ensure(otherRow !== undefined, `the log does not have task '${id}' of queue '${queue.name}'`);
        same(`task '${id}' of queue '${queue.name}'`, viewOf(stored, otherRow), viewOf(store, row));
      }
      ensure(other.rows.size === queue.rows.size, `the log has other tasks of queue '${queue.name}'`);
    }
    for (const [entryId, events] of store.enqueueEvents)
      same(`events of schedule entry '${entryId}'`, stored.enqueueEvents.of(entryId), events);
  } finally {
    stored.close();
  }
}

/** Compaction removes a file without reading it if no task is counted there. */
function compareFiles({ queues }: TaskStore, { log, live }: Journal): void {
  const used = new Set<number>();
  for (const { rows } of queues.values()) for (const row of rows.values()) used.add(journaled(row).segment);
  for (const { number, path } of log.segments) {
    const has = used.has(number) ? 'has' : 'does not have';
    ensure(live.isIn(number) === used.has(number), `${path} ${has} tasks, and is counted otherwise`);
  }
}

function same(what: string, inLog: unknown, inMemory: unknown): void {
  if (isDeepStrictEqual(inLog, inMemory)) return;
  ensure(false, `${what} is ${JSON.stringify(inLog)} in the log, and ${JSON.stringify(inMemory)} in memory`);
}

/** Old ticks are forgotten in memory first. */
function compareQueues(inLog: QueueState, inMemory: QueueState, wallNowMs: number): void {
  const { ticks, buckets = [], ...settings } = inMemory.settings;
  const { ticks: otherTicks, buckets: otherBuckets = [], ...otherSettings } = inLog.settings;
  same(`queue '${inMemory.name}'`, otherSettings, settings);
  const what = `buckets of queue '${inMemory.name}'`;
  same(what, notFull(otherBuckets, wallNowMs), notFull(buckets, wallNowMs));
  const kept = new Map(ticks);
  same(
    `ticks of queue '${inMemory.name}'`,
    otherTicks.filter(([entryKey]) => kept.has(entryKey)),
    ticks,
  );
}

/** Whole milliseconds: times that go from one clock to the other and back are not exact, nor is whether a bucket is full now. */
function notFull(buckets: readonly StoredBucket[], wallNowMs: number): unknown {
  const rounded = buckets.map(([name, fullAtMs]) => [name, Math.round(fullAtMs)] as const);
  return rounded.filter(([, fullAtMs]) => fullAtMs > wallNowMs).sort();
}

/** What of a row is stored. The times of leases and groups are on the monotonic clock here, and on the wall clock there. */
function viewOf({ locks }: TaskStore, row: TaskRow): unknown {
  const { message, serial, atMs, recoveries, progress } = row;
  const { number, segment, bytes } = journaled(row);
  const { state } = listOf(row);
  const isWallTime = state !== 'active' && state !== 'aggregating';
  const hasLock = locks.endOf(row) !== undefined;
  const { payload, ...rest } = message;
  // A `Buffer` is not the same as a `Uint8Array` with its bytes.
  const data = payload instanceof PayloadOnDisk ? payload.where : new Uint8Array(payload);
  const result = row.result && new Uint8Array(row.result);
  const time = isWallTime ? atMs : undefined;
  const stored = { number, segment, bytes };
  return { rest, data, state, serial, time, recoveries, result, progress, stored, hasLock };
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
    ensure(
      list.state === state && list.group === '' && !list.isHeld,
      `the list '${state}' is that of another state`,
    );
    check(list);
  }
  timers += checkPending(queue, check);
  for (const [group, list] of queue.groups) {
    ensure(
      list.group === group && list.state === 'aggregating' && !list.isHeld,
      `group '${group}' has the list of another group`,
    );
    ensure(list.size > 0, `group '${group}' has no tasks`);
    check(list);
  }
  for (const [id, { id: ownId, list, timer }] of queue.sets) {
    ensure(id === ownId && list.isHeld && list.state === 'aggregating', `set '${id}' has another id`);
    ensure(list.size > 0, `set '${id}' has no tasks`);
    ensure(isScheduled(store, timer), `set '${id}' has no entry in the timer`);
    timers++;
    check(list);
  }
  ensure(queue.rows.size === tasks, `${queue.rows.size} tasks have an id, but ${tasks} are in a list`);
  ensure(queue.days.size <= HISTORY_DAYS + 1, `${queue.days.size} days are kept`);
  ensure(queue.days.failedTotal <= queue.days.processedTotal, 'more runs failed than were processed');
  return timers;
}

/** @returns how many entries the keys have in the timer. */
function checkPending({ pending, lists }: QueueState, check: (list: TaskList) => void): number {
  const active = new Map<string, number>();
  for (const { key } of lists.active) active.set(key, (active.get(key) ?? 0) + 1);
  let size = 0;
  let inRing = 0;
  for (const tasks of pending.keys()) {
    const where = `key '${tasks.key}'`;
    if (tasks !== pending.withoutKey) check(tasks);
    for (const row of tasks) ensure(row.key === tasks.key, `${where} has task '${row.id}' of another one`);
    const running = active.get(tasks.key) ?? 0;
    ensure(tasks.active === running, `${where} has ${running} active tasks, but counts ${tasks.active}`);
    active.delete(tasks.key);
    const isRunnable = tasks.size > 0 && pending.keyHeldBy(tasks) === undefined;
    // A token may have come of which the timer has not heard yet.
    const isDue = isRunnable && tasks.timer !== NO_TIMER;
    ensure(tasks.isInRing === isRunnable || isDue, `${where} is ${tasks.isInRing ? '' : 'not '}in the ring`);
    if (tasks.isInRing) inRing++;
    size += tasks.size;
  }
  ensure(active.size === 0, `the active tasks of ${[...active.keys()].join(', ')} are not counted`);
  ensure(size === pending.size, `${pending.size} tasks are pending, but ${size} are in a list`);
  const ring = [...pending.lists()].filter(({ isInRing }) => isInRing).length;
  ensure(ring === inRing, `the ring has ${ring} keys, but ${inRing} are in it`);
  return pending.timers;
}

function checkList(store: TaskStore, queue: QueueState, list: TaskList): number {
  let count = 0;
  let timers = 0;
  let previous: TaskRow | undefined;
  for (let row = list.head; row !== undefined; row = row.next) {
    const where = `task '${row.message.id}' of queue '${queue.name}', ${list.state}`;
    ensure(++count <= list.size, `${where}: its list has size ${list.size}, and goes on`);
    ensure(row.list === list && list.queue === queue, `${where}: its own list is another one`);
    ensure(row.previous === previous, `${where}: its link back is wrong`);
    ensure(queue.rows.get(row.message.id) === row, `${where}: its id is that of another row`);
    ensure(row.message.queue === queue.name, `${where}: its message has queue '${row.message.queue}'`);
    ensure(list.group === '' || row.message.group === list.group, `${where}: it is in group '${list.group}'`);
    ensure(isOrdered(list, previous, row), `${where}: it arrived before the row in front of it`);
    if (checkWaiting(store, row, list, where)) timers++;
    previous = row;
  }
  if (list instanceof WaitingList) checkOrder(list);
  ensure(list.tail === previous, `the list '${list.state}' has the wrong tail`);
  ensure(count === list.size, `the list '${list.state}' has size ${list.size}, but ${count} rows`);
  return timers;
}

function checkOrder(list: WaitingList): void {
  let count = 0;
  let previous: TaskRow | undefined;
  for (const row of list.byTime) {
    const where = `task '${row.message.id}', ${list.state}`;
    ensure(row.list === list, `${where}: it is ordered by time here, and is in another list`);
    ensure(
      previous === undefined || isEarlier(previous, row),
      `${where}: its time is before that of the row in front of it`,
    );
    previous = row;
    count++;
  }
  ensure(count === list.size, `the list '${list.state}' has size ${list.size}, but ${count} rows by time`);
  ensure(
    list.byTime.slice(0, count + 1).length === count,
    `a page of '${list.state}' does not have all rows`,
  );
}

/** Groups and sets are in arrival order. */
function isOrdered(list: TaskList, previous: TaskRow | undefined, row: TaskRow): boolean {
  return list.state !== 'aggregating' || previous === undefined || previous.serial < row.serial;
}

/** @returns whether the row has an entry in the timer. */
function checkWaiting(store: TaskStore, row: TaskRow, { state }: TaskList, where: string): boolean {
  const isWaiting = row.timer !== NO_TIMER;
  ensure(!isWaiting || isScheduled(store, row.timer), `${where}: its timer entry does not exist`);
  if (state === 'pending' || state === 'aggregating') ensure(!isWaiting, `${where}: it has a timer entry`);
  // The entry of a lease that is over has fired.
  else if (state !== 'active') ensure(isWaiting, `${where}: it has no timer entry`);
  else
    ensure(isWaiting || row.atMs <= store.clock.now(), `${where}: its lease goes on without a timer entry`);
  return isWaiting;
}

function checkLocks({ locks, queues }: TaskStore): void {
  for (const [key, { owner }] of locks.entries()) {
    const { uniqueKey, queue, id } = owner.message;
    ensure(uniqueKey === key, `lock '${key}': its owner's key is '${uniqueKey}'`);
    // The lock of a removed queue is freed soon.
    if (owner.list?.queue.isRemoved === true) continue;
    ensure(queues.get(queue)?.rows.get(id) === owner, `lock '${key}': its owner '${id}' does not exist`);
    const state = owner.list?.state;
    ensure(
      state !== 'completed' && state !== 'archived',
      `lock '${key}': its owner '${id}' is ${state ?? 'in no list'}`,
    );
  }
}

function isScheduled({ timer }: TaskStore, id: number): boolean {
  return timer[TIMER_INTERNALS]().wheels.table.slotOf(id) !== NO_SLOT;
}
