import { requireInternals } from '../core/validate.ts';
import { INTERNALS, type SystemTimer, type TimerInternals } from './system-timer.ts';
import { entryIn, isTaskCallback, isTimerTask } from './timer-task.ts';
import type { TimerTaskList } from './timer-task-list.ts';
import type { TimerWheels } from './timer-wheels.ts';
import type { TimingWheel } from './timing-wheel.ts';

/**
 * Checks the whole structure of a timer: every link in both directions, every entry's list, bucket and
 * expiration, the clocks of all levels, the delay queue, the counters, the entries that tasks refer to,
 * and that one wake-up is armed for the earliest list, or none. For tests: O(tasks + slots).
 *
 * It may be called at any time, also from inside a task.
 *
 * @throws Error - for the first invariant that does not hold. TypeError `ERR_INVALID_ARG_TYPE` - not a timer.
 */
export function checkTimer(timer: SystemTimer): void {
  requireInternals('timer', 'a SystemTimer', INTERNALS, timer);
  const internals = timer[INTERNALS]();
  const { wheels } = internals;
  const linked = new Set<number>();
  for (const [i, level] of wheels.levels.entries()) {
    checkClocks(level, i + 1);
    checkWheel(level, i + 1, internals, linked);
  }
  checkList(wheels.due.list, 'due queue', internals, linked);
  ensure(
    linked.size === wheels.table.size,
    `size is ${wheels.table.size}, but ${linked.size} entries are linked`,
  );
  checkSlots(wheels, linked);
  checkDelayQueue(wheels);
  checkWakeup(internals);
}

function ensure(holds: boolean, claim: string): asserts holds {
  if (!holds) throw new Error(`checkTimer: ${claim}`);
}

function checkClocks(wheel: TimingWheel, level: number): void {
  const { currentTimeMs, tickMs, overflowWheel } = wheel;
  ensure(
    currentTimeMs % tickMs === 0,
    `clock ${currentTimeMs} of level ${level} is not a multiple of ${tickMs}`,
  );
  if (overflowWheel === undefined) return;
  const ahead = currentTimeMs - overflowWheel.currentTimeMs;
  ensure(
    overflowWheel.tickMs === wheel.intervalMs,
    `the tick of level ${level + 1} is not level ${level}'s interval`,
  );
  ensure(
    ahead >= 0 && ahead < overflowWheel.tickMs,
    `the clocks of level ${level} and ${level + 1} are ${ahead} apart`,
  );
}

function checkWheel(wheel: TimingWheel, level: number, internals: TimerInternals, linked: Set<number>): void {
  for (const [index, bucket] of wheel.buckets.entries()) {
    if (bucket === undefined) continue;
    const where = `level ${level}, bucket ${index}`;
    checkList(bucket, where, internals, linked);
    if (!bucket.isEmpty) checkBucket(bucket, index, wheel, internals.wheels, where);
  }
}

function checkBucket(
  bucket: TimerTaskList,
  index: number,
  wheel: TimingWheel,
  { table, first, isBehind }: TimerWheels,
  where: string,
): void {
  const { tickMs, wheelSize, currentTimeMs } = wheel;
  const { expirationMs } = bucket;
  ensure(bucket.isQueued, `${where} holds tasks and is not in the delay queue`);
  ensure(expirationMs % tickMs === 0, `${where} expires at ${expirationMs}, not a multiple of ${tickMs}`);
  ensure(
    (expirationMs / tickMs) % wheelSize === index,
    `${where} expires at ${expirationMs}, another bucket's time`,
  );
  // In ticks, because the end of the coarsest turn can be where numbers are no longer exact.
  const ticksAhead = (expirationMs - currentTimeMs) / tickMs;
  // While the wheels are behind, the bucket that they stand in is being emptied.
  const isAhead = ticksAhead >= (isBehind ? 0 : 1) && ticksAhead < wheelSize;
  ensure(isAhead, `${where} expires at ${expirationMs}, outside the turn that starts at ${currentTimeMs}`);
  for (let slot = bucket.first; slot !== bucket.sentinel; slot = table.next(slot)) {
    const entryMs = table.expirationOf(slot);
    ensure(entryMs % first.tickMs === 0, `slot ${slot} expires at ${entryMs}, not a multiple of the tick`);
    const belongs = entryMs >= expirationMs && entryMs < expirationMs + tickMs;
    ensure(belongs, `slot ${slot} expires at ${entryMs}, but is in ${where} for ${expirationMs}`);
  }
}

/** Follows a list forwards, compares every link with its opposite, and collects the entries. */
function checkList(list: TimerTaskList, where: string, internals: TimerInternals, linked: Set<number>): void {
  const { table, due } = internals.wheels;
  const { sentinel } = list;
  let length = 0;
  for (let prev = sentinel, slot = list.first; ; prev = slot, slot = table.next(slot)) {
    ensure(table.prev(slot) === prev, `${where}: slot ${slot} does not point back to ${prev}`);
    if (slot === sentinel) break;
    length++;
    ensure(table.sentinelOf(slot) === sentinel, `${where}: slot ${slot} is marked as in another list`);
    if (slot === due.fenceSlot) continue;
    ensure(!linked.has(slot), `${where}: slot ${slot} is linked twice`);
    linked.add(slot);
    checkEntry(slot, internals);
  }
  ensure(table.count(sentinel) === length, `${where} counts ${table.count(sentinel)} and holds ${length}`);
}

/** An id must lead back to its entry, and a task must refer to its entry and its driver. */
function checkEntry(slot: number, { wheels: { table }, driver }: TimerInternals): void {
  ensure(table.slotOf(table.idOf(slot)) === slot, `the id of slot ${slot} leads elsewhere`);
  if (!isTaskCallback(table.callbackOf(slot))) return;
  const task = table.argumentOf(slot);
  ensure(isTimerTask(task), `slot ${slot} has the callback of tasks, and no task`);
  ensure(task.pending && entryIn(task, driver) === slot, `the task of slot ${slot} refers to another entry`);
}

/** A slot that holds no entry must hold no reference: that would be a leak. */
function checkSlots({ table }: TimerWheels, linked: Set<number>): void {
  for (let slot = 1; slot < table.top; slot++) {
    if (linked.has(slot)) continue;
    ensure(table.argumentOf(slot) === undefined, `free slot ${slot} still holds its argument`);
  }
}

function checkDelayQueue({ delayQueue, levels }: TimerWheels): void {
  const { buckets } = delayQueue;
  const queued = new Set(buckets);
  ensure(queued.size === buckets.length, 'a bucket is in the delay queue twice');
  for (const wheel of levels) {
    for (const bucket of wheel.buckets) {
      if (bucket === undefined) continue;
      const what = `the bucket for ${bucket.expirationMs}`;
      ensure(bucket.isQueued === queued.has(bucket), `the delay queue and isQueued disagree about ${what}`);
    }
  }
  for (const [i, { expirationMs }] of buckets.entries()) {
    const parent = buckets[(i - 1) >> 1];
    const isInOrder = parent === undefined || parent.expirationMs <= expirationMs;
    ensure(isInOrder, `the delay queue is out of order at ${expirationMs}`);
  }
}

function checkWakeup({ wheels, driver: { wakeup, isArming } }: TimerInternals): void {
  const earliestMs = wheels.earliest()?.expirationMs ?? Infinity;
  if (isArming)
    ensure(
      wakeup.deadlineMs === earliestMs,
      `the wake-up is armed for ${wakeup.deadlineMs}, the earliest list for ${earliestMs}`,
    );
}
