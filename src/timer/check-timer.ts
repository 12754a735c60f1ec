import { INTERNALS, type TimerInternals } from './timer-internals.ts';
import type { SystemTimer } from './system-timer.ts';
import { isTaskCallback } from './async-context.ts';
import type { TimerTaskList } from './timer-table.ts';
import { entryIn, isTimerTask } from './timer-task.ts';
import type { TimerWheels } from './timer-wheels.ts';
import type { TimingWheel } from './timing-wheel.ts';

/**
 * Checks the whole structure of a timer: every link in both directions, every entry's list, bucket and
 * expiration, the clocks of all levels, the delay queue, the counters, the tasks' own view of where they wait,
 * and that one wake-up is armed for the earliest of it or none. For tests: O(tasks + slots).
 *
 * It may be called at any time, also from inside a task.
 *
 * @throws Error - naming the first thing that does not hold.
 */
export function checkTimer(timer: SystemTimer): void {
  const internals = timer[INTERNALS]();
  const { wheels } = internals;
  const linked = new Set<number>();
  let level: TimingWheel | undefined = wheels.first;
  for (let number = 1; level !== undefined; number++, level = level.overflowWheel) {
    checkClocks(level, number);
    checkWheel(level, number, internals, linked);
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
    `clock ${currentTimeMs} of level ${level} is no multiple of ${tickMs}`,
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
  ensure(expirationMs % tickMs === 0, `${where} expires at ${expirationMs}, no multiple of ${tickMs}`);
  ensure(
    (expirationMs / tickMs) % wheelSize === index,
    `${where} expires at ${expirationMs}, another bucket's time`,
  );
  // In ticks, because the end of the coarsest turn can lie where numbers are not exact any more.
  const ticksAhead = (expirationMs - currentTimeMs) / tickMs;
  // The bucket that the wheels stand in is being emptied, while they are behind.
  const isAhead = ticksAhead >= (isBehind ? 0 : 1) && ticksAhead < wheelSize;
  ensure(isAhead, `${where} expires at ${expirationMs}, outside the turn that starts at ${currentTimeMs}`);
  for (let slot = bucket.first; slot !== bucket.sentinel; slot = table.next(slot)) {
    const entryMs = table.expirationOf(slot);
    ensure(entryMs % first.tickMs === 0, `slot ${slot} expires at ${entryMs}, no multiple of the tick`);
    const belongs = entryMs >= expirationMs && entryMs < expirationMs + tickMs;
    ensure(belongs, `slot ${slot} expires at ${entryMs}, but is in ${where} for ${expirationMs}`);
  }
}

/** Walks the list forwards, compares every link with its opposite, and notes the entries. */
function checkList(list: TimerTaskList, where: string, internals: TimerInternals, linked: Set<number>): void {
  const { table, due } = internals.wheels;
  const { sentinel } = list;
  let length = 0;
  for (let prev = sentinel, slot = list.first; ; prev = slot, slot = table.next(slot)) {
    ensure(table.prev(slot) === prev, `${where}: slot ${slot} does not point back to ${prev}`);
    if (slot === sentinel) break;
    length++;
    ensure(table.sentinelOf(slot) === sentinel, `${where}: slot ${slot} says it is in another list`);
    if (slot === due.fenceSlot) continue;
    ensure(!linked.has(slot), `${where}: slot ${slot} is linked twice`);
    linked.add(slot);
    checkEntry(slot, internals);
  }
  ensure(table.count(sentinel) === length, `${where} counts ${table.count(sentinel)} and holds ${length}`);
}

/** An id must lead back to its entry, and a task must know where it waits. */
function checkEntry(slot: number, { wheels: { table }, driver }: TimerInternals): void {
  ensure(table.slotOf(table.idOf(slot)) === slot, `the id of slot ${slot} leads elsewhere`);
  if (!isTaskCallback(table.callbackOf(slot))) return;
  const task = table.argumentOf(slot);
  ensure(isTimerTask(task), `slot ${slot} runs a task and has none`);
  ensure(
    task.pending && entryIn(task, driver) === slot,
    `the task of slot ${slot} thinks it waits elsewhere`,
  );
}

/** A slot that holds no entry must hold no reference either: that would be a leak. */
function checkSlots({ table }: TimerWheels, linked: Set<number>): void {
  for (let slot = 1; slot < table.top; slot++) {
    if (linked.has(slot) || table.isLinked(slot)) continue;
    ensure(table.argumentOf(slot) === undefined, `free slot ${slot} still holds its argument`);
  }
}

function checkDelayQueue({ delayQueue, first }: TimerWheels): void {
  const { buckets } = delayQueue;
  const queued = new Set(buckets);
  ensure(queued.size === buckets.length, 'a bucket is in the delay queue twice');
  for (let wheel: TimingWheel | undefined = first; wheel !== undefined; wheel = wheel.overflowWheel) {
    for (const bucket of wheel.buckets) {
      if (bucket === undefined) continue;
      const what = `the bucket for ${bucket.expirationMs}`;
      ensure(bucket.isQueued === queued.has(bucket), `${what} is wrong about being in the delay queue`);
    }
  }
  for (const [i, { expirationMs }] of buckets.entries()) {
    const parent = buckets[(i - 1) >> 1] ?? buckets[0];
    const isInOrder = parent === undefined || parent.expirationMs <= expirationMs;
    ensure(isInOrder, `the delay queue is out of order at ${expirationMs}`);
  }
}

function checkWakeup({ wheels, driver: { armedForMs, isArming } }: TimerInternals): void {
  const earliestMs = wheels.earliest()?.expirationMs ?? Infinity;
  if (isArming)
    ensure(
      armedForMs === earliestMs,
      `the wake-up is armed for ${armedForMs}, the earliest list for ${earliestMs}`,
    );
}
