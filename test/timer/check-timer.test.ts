import { ManualClock, SystemTimer } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { expect, test, vi } from 'vitest';
import type { TimerInternals } from '../../src/timer/system-timer.ts';
import type { TimerTaskList } from '../../src/timer/timer-task-list.ts';
import { detach } from '../../src/timer/timer-task.ts';
import { thrownBy } from './support/errors.ts';
import { addTask, TestTask } from './support/tasks.ts';
import { manualTimer } from './support/timers.ts';

const INTERNALS: symbol = Symbol.for('escapement.timer.internals');

interface Patient {
  readonly timer: SystemTimer;
  readonly clock: ManualClock;
  readonly wheels: TimerInternals['wheels'];
  readonly driver: TimerInternals['driver'];
  /** Holds two callbacks, is on the first level and the earliest. */
  readonly early: TimerTaskList;
  /** Holds a task. */
  readonly late: TimerTaskList;
  readonly task: TestTask;
}

/** A timer in which two callbacks wait at 5, a task at 7, one on level 2, and two were cancelled. */
function makePatient(): Patient {
  const { clock, timer } = manualTimer({ wheelSize: 8 });
  const task = new TestTask(7);
  const ids = [5, 5, 6, 6].map((delayMs) => timer.schedule(delayMs, () => undefined, 'argument'));
  timer.add(task);
  addTask(timer, 30);
  for (const id of ids.slice(2)) timer.cancel(id);
  const { wheels, driver } = (timer as unknown as Record<symbol, () => TimerInternals>)[INTERNALS]?.() ?? {};
  const early = wheels?.first.buckets[5];
  const late = wheels?.first.buckets[7];
  if (wheels === undefined || driver === undefined || early === undefined || late === undefined) {
    throw new Error('the internals have moved');
  }
  checkTimer(timer);
  return { timer, clock, wheels, driver, early, late, task };
}

/** Reads what a test writes to behind the back of `readonly`. */
type Writable<T> = { -readonly [K in keyof T]: T[K] };

const CORRUPTIONS: Readonly<Record<string, readonly [RegExp, (patient: Patient) => unknown]>> = {
  'an entry that is linked into two lists': [
    /another list|point back/,
    ({ wheels: { table }, early, late }) => table.append(late.sentinel, early.first),
  ],
  'an entry that is linked twice into one list': [
    /point back|linked twice|counts/,
    ({ wheels: { table }, early }) => table.append(early.sentinel, early.first),
  ],
  'a link that leads back to a neighbour that is gone': [
    /point back/,
    ({ wheels: { table }, early }) => {
      const [first, second] = [early.first, table.next(early.first)];
      table.unlink(second);
      table.append(early.sentinel, second);
      vi.spyOn(table, 'prev').mockImplementation((slot) => (slot === second ? second : early.sentinel));
      expect(first).not.toBe(second);
    },
  ],
  'a count that is wrong': [
    /counts 0 and holds 1/,
    ({ wheels: { table }, early }) => {
      const second = table.next(early.first);
      table.unlink(second);
      table.unlink(second);
    },
  ],
  'an entry that its list has lost': [
    /size is 4, but 3 entries are linked/,
    ({ wheels: { table }, early }) => table.unlink(early.first),
  ],
  'an entry that was never linked': [
    /size is 5, but 4 entries are linked/,
    ({ wheels: { table } }) => table.allocate(() => undefined, undefined),
  ],
  'an entry that was released while it is linked': [
    /another list|leads elsewhere|size/,
    ({ wheels: { table }, early }) => table.release(early.first),
  ],
  "a bucket's expiration that is not its place's": [
    /another bucket's time/,
    ({ early }) => (early.expirationMs = 6),
  ],
  "a bucket's expiration that is a turn too late": [
    /outside the turn/,
    ({ early }) => (early.expirationMs += 8),
  ],
  "a bucket's expiration that is no multiple of the tick": [
    /not a multiple of 1/,
    ({ early }) => (early.expirationMs = 5.5),
  ],
  "an entry's expiration that belongs in another bucket": [
    /slot \d+ expires at 6, but is in level 1, bucket 5/,
    ({ wheels: { table }, early }) => table.setExpiration(early.first, 6),
  ],
  "an entry's expiration that is no multiple of the tick": [
    /slot \d+ expires at 5.25, not a multiple of the tick/,
    ({ wheels: { table }, early }) => table.setExpiration(early.first, 5.25),
  ],
  'a bucket that is not in the delay queue': [/delay queue/, ({ early }) => (early.isQueued = false)],
  'a bucket with tasks that says it is in the delay queue and is not': [
    /delay queue/,
    ({ wheels: { delayQueue }, late }) =>
      (delayQueue.buckets as TimerTaskList[]).splice(delayQueue.buckets.indexOf(late), 1),
  ],
  'an empty bucket that says it is in the delay queue and is not, so that it would never come back': [
    /delay queue/,
    ({ wheels: { delayQueue } }) => {
      const empty = delayQueue.buckets.findIndex((bucket) => bucket.isEmpty);
      (delayQueue.buckets as TimerTaskList[]).splice(empty, 1);
    },
  ],
  'a bucket that is in the delay queue twice': [
    /delay queue/,
    ({ wheels: { delayQueue }, early }) => delayQueue.offer(early, early.expirationMs),
  ],
  'an empty bucket in the delay queue that does not know it': [
    /delay queue/,
    ({ wheels: { delayQueue } }) => {
      const empty = delayQueue.buckets.find((bucket) => bucket.isEmpty);
      if (empty !== undefined) empty.isQueued = false;
    },
  ],
  'a delay queue that does not start with the earliest': [
    /delay queue/,
    ({ wheels: { delayQueue } }) => (delayQueue.buckets as TimerTaskList[]).reverse(),
  ],
  'a delay queue that is out of order below its top': [
    /delay queue/,
    ({ wheels: { delayQueue } }) => {
      const heap = delayQueue.buckets as TimerTaskList[];
      const [, second, , fourth] = heap;
      if (second === undefined || fourth === undefined) throw new Error('the heap is too small');
      heap[1] = fourth;
      heap[3] = second;
      expect(fourth.expirationMs).toBeGreaterThan(second.expirationMs);
    },
  ],
  'a clock that has passed a bucket': [/outside the turn/, ({ wheels: { first } }) => first.advanceClock(6)],
  'clocks of two levels that do not agree': [
    /clocks of level 1 and 2 are/,
    ({ wheels: { first } }) => first.overflowWheel?.advanceClock(16),
  ],
  'a task that does not know that it waits': [/refers to another entry/, ({ task }) => detach(task)],
  'an entry for a task that has none': [
    /has the callback of tasks, and no task/,
    ({ wheels: { table }, late }) => {
      const slot = late.first;
      const read = table.argumentOf.bind(table);
      vi.spyOn(table, 'argumentOf').mockImplementation((asked) => (asked === slot ? {} : read(asked)));
    },
  ],
  'an id that leads elsewhere': [
    /the id of slot \d+ leads elsewhere/,
    ({ wheels: { table }, early }) => {
      const id = table.idOf(early.first);
      vi.spyOn(table, 'idOf').mockReturnValue(id);
    },
  ],
  'a free slot that still holds its argument': [
    /free slot \d+ still holds its argument/,
    ({ wheels: { table } }) => {
      const read = table.argumentOf.bind(table);
      vi.spyOn(table, 'argumentOf').mockImplementation((slot) =>
        table.sentinelOf(slot) > 0 ? read(slot) : 'leaked',
      );
    },
  ],
  'a wake-up for a bucket that has no tasks': [
    /the wake-up is armed for 5, the earliest list for 7/,
    ({ wheels: { table }, early }) => {
      table.discard(early.first);
      table.discard(early.first);
    },
  ],
  'a wake-up that was lost': [
    /the wake-up is armed for Infinity/,
    ({ driver }) =>
      vi
        .spyOn(driver.wakeup as Writable<typeof driver.wakeup>, 'deadlineMs', 'get')
        .mockReturnValue(Infinity),
  ],
};

test.each(Object.entries(CORRUPTIONS))('checkTimer finds %s', (_, [message, corrupt]) => {
  const patient = makePatient();
  corrupt(patient);
  const error = thrownBy(() => checkTimer(patient.timer)) as Error;
  expect(error.message).toMatch(message);
  expect(error.message).toMatch(/^checkTimer: /);
  vi.restoreAllMocks();
});

test('checkTimer accepts 150 000 buckets, more than a call has arguments', () => {
  const { timer } = manualTimer({ wheelSize: 2 ** 18 });
  for (let delayMs = 1; delayMs <= 150_000; delayMs++) timer.schedule(delayMs, () => undefined);
  checkTimer(timer);
  expect(timer.size).toBe(150_000);
});
