import { ManualClock, SystemTimer, type TimerId, TimerTask } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { expect, test } from 'vitest';
import { INTERNALS } from '../../src/timer/system-timer.ts';
import { isTimerTask } from '../../src/timer/timer-task.ts';
import { HandClock } from './support/hand-clock.ts';
import { addTask, TestTask } from './support/tasks.ts';
import { handTimer, manualTimer } from './support/timers.ts';

/** Numbers that schedule never returned to anybody. */
const FOREIGN = [
  ...[0, -0, -1, 1.5, 0.5, NaN, Infinity, -Infinity, 2 ** 53, 2 ** 53 - 1, -(2 ** 53), 2 ** 26, 2 ** 27],
  ...[2 ** 31, 2 ** 32, Number.MAX_VALUE, Number.MIN_VALUE, 1e300, -1e300],
  ...Array.from({ length: 100 }, (_, i) => i + 1),
  // One below each of the first slots, in every unit an id might be counted in.
  ...[26, 27, 31, 32, 52].flatMap((bits) => Array.from({ length: 40 }, (_, i) => i - 2 ** bits)),
];

/** Neither operation finds anything under any of these numbers, and neither changes anything. */
function expectForeign(timer: SystemTimer, numbers: readonly number[] = FOREIGN): void {
  const before = [timer.inspect(), timer.size, timer.nextExpirationMs()];
  for (const number of numbers) {
    expect([number, timer.cancel(number as TimerId)]).toEqual([number, false]);
    expect([number, timer.reschedule(number as TimerId, 5)]).toEqual([number, false]);
  }
  expect([timer.inspect(), timer.size, timer.nextExpirationMs()]).toEqual(before);
  checkTimer(timer);
}

test('a number that is not an id finds nothing in a new timer', () =>
  expectForeign(new SystemTimer({ clock: new ManualClock() })));

test('a number that is not an id finds nothing in a timer with pending tasks and callbacks', () => {
  const { timer } = manualTimer();
  for (let i = 0; i < 50; i++) {
    addTask(timer, i * 7);
    timer.schedule(i * 7, () => undefined);
  }
  expectForeign(timer);
});

test('a number that is not an id finds nothing in a timer that has run tasks', () => {
  const { clock, timer } = handTimer();
  for (let i = 0; i < 20; i++) timer.schedule(i, () => undefined);
  clock.nowMs = 10;
  timer.poll();
  expectForeign(timer);
});

test('a number near a valid id finds nothing', () => {
  const { timer } = manualTimer();
  const id = timer.schedule(5, () => undefined);
  const near = [0.5, -0.5, 1, -1, 2 ** 26, -(2 ** 26), 2 ** 53].map((distance) => id + distance);
  expectForeign(timer, [0 - id, ...near]);
  expect(timer.cancel(id)).toBe(true);
});

test('an id of another timer finds nothing although both timers use the same slots', () => {
  const clock = new ManualClock();
  const [one, two] = [new SystemTimer({ clock }), new SystemTimer({ clock })];
  const ids = Array.from({ length: 100 }, () => one.schedule(5, () => undefined));
  for (let i = 0; i < 100; i++) two.schedule(5, () => undefined);
  expectForeign(two, ids);
  expect(ids.every((id) => one.cancel(id))).toBe(true);
});

test.each(['ran', 'cancelled', 'ran in close'])('an id of a callback that %s is stale', (end) => {
  const { clock, timer, journal } = handTimer();
  const ids = [3, 1, 2].map((delayMs) => timer.schedule(delayMs, journal.write, delayMs));
  clock.nowMs = 5;
  if (end === 'ran') timer.poll();
  if (end === 'cancelled') for (const id of ids) timer.cancel(id);
  if (end === 'ran in close') timer.close({ pending: 'run' });
  expect(journal.entries).toHaveLength(end === 'cancelled' ? 0 : 3);
  expectForeign(timer, ids);
});

test('a stale id does not cancel the task in its slot', () => {
  const { timer } = manualTimer();
  const id = timer.schedule(5, () => undefined);
  timer.cancel(id);
  const task = addTask(timer, 5);
  expectForeign(timer, [id]);
  expect(task.pending).toBe(true);
});

test('every id is a positive safe integer and is given once', () => {
  const { timer } = manualTimer();
  const seen = new Set<number>();
  for (let i = 0; i < 5_000; i++) {
    const id = timer.schedule(1, () => undefined);
    expect(Number.isSafeInteger(id) && id > 0 && !seen.has(id)).toBe(true);
    seen.add(id);
    if (i % 3 === 0) timer.cancel(id);
  }
});

test.each([false, true])(
  'a frozen task is refused with asyncContext %s, and leaves nothing in the timer',
  (asyncContext) => {
    const { clock, timer } = manualTimer({ asyncContext });
    const frozen = new TestTask(5);
    Object.freeze(frozen);
    expect(() => timer.add(frozen)).toThrow(
      expect.objectContaining({ name: 'TypeError', code: 'ERR_INVALID_ARG_VALUE' }),
    );
    expect([timer.size, clock.pendingWakeups]).toEqual([0, 0]);
    checkTimer(timer);
  },
);

test('isTimerTask accepts tasks of another loaded copy of the package', () => {
  const foreign = { _entry: -1, _entryOwner: undefined, delayMs: 5, run: () => undefined };
  expect([new TestTask(1), foreign].map(isTimerTask)).toEqual([true, true]);
  expect([undefined, null, 5, 'task', {}, () => undefined].map(isTimerTask)).toEqual(
    Array.from({ length: 6 }, () => false),
  );
});

test('a subclass may have fields named `entry`, `home` and `timer`', () => {
  class Order extends TimerTask {
    readonly entry = 'my entry';
    readonly home = 'my home';
    readonly timer = 'my timer';
    runs = 0;
    override run(): void {
      this.runs++;
    }
  }
  const { clock, timer } = manualTimer();
  const order = new Order(5);
  timer.add(order);
  timer.add(order);
  clock.advance(5);
  expect([order.runs, order.entry, order.home, order.timer]).toEqual([1, 'my entry', 'my home', 'my timer']);
});

/** The start of a bucket of the third wheel, which spans 4 096 ms. */
const COARSE_MS = 8_192;

interface Opened {
  readonly clock: HandClock;
  readonly timer: SystemTimer;
  readonly ran: string[];
  readonly at: (name: string, deadlineMs: number) => ReturnType<SystemTimer['schedule']>;
}

/** A timer that moves a few entries a turn, with nine in one coarse bucket. */
function open(movesPerTurn = 2, maxTasksPerTurn = 10_000): Opened & { readonly ids: readonly number[] } {
  const { clock, timer } = handTimer({ maxTasksPerTurn });
  timer[INTERNALS]().wheels.movesPerTurn = movesPerTurn;
  const ran: string[] = [];
  const at: Opened['at'] = (name, deadlineMs) =>
    timer.schedule(deadlineMs - clock.nowMs, (each) => ran.push(each), name);
  const ids = ['e', 'c', 'a', 'd', 'b', 'f', 'i', 'h', 'g'].map((name) =>
    at(name, COARSE_MS + 100 * (name.charCodeAt(0) - 'a'.charCodeAt(0))),
  );
  return { clock, timer, ran, at, ids };
}

/** Fires wake-ups until none is due. @returns how many. */
function fireAll(clock: HandClock, timer: SystemTimer): number {
  let turns = 0;
  while ((timer.nextExpirationMs() ?? Infinity) <= clock.nowMs) {
    clock.fire();
    checkTimer(timer);
    turns++;
  }
  return turns;
}

test('70 000 entries of one bucket move to a finer wheel in several turns, and none runs early', () => {
  const { clock, timer } = handTimer();
  let ran = 0;
  for (let i = 0; i < 70_000; i++) timer.schedule(COARSE_MS + 1_000 + (i % 1_000), () => ran++);
  clock.nowMs = COARSE_MS;
  expect([fireAll(clock, timer), ran]).toEqual([2, 0]);
  clock.nowMs = COARSE_MS + 2_000;
  while (timer.size > 0) clock.fire();
  expect(ran).toBe(70_000);
});

test('70 000 entries that expire together move in several turns, although maxTasksPerTurn is higher', () => {
  const { clock, timer } = handTimer({ maxTasksPerTurn: 1_000_000 });
  const runs: number[] = [];
  let ran = 0;
  for (let i = 0; i < 70_000; i++) timer.schedule(10, () => ran++);
  clock.nowMs = 10;
  while (timer.size > 0) {
    clock.fire();
    runs.push(ran);
  }
  expect(runs).toEqual([65_536, 70_000]);
});

test('without a limit for tasks there is no limit for moves', () => {
  const { clock, timer } = open(2, Infinity);
  clock.nowMs = COARSE_MS;
  expect(fireAll(clock, timer)).toBe(1);
});

test('poll and advanceClock move all entries of a bucket', async () => {
  for (const drive of [(timer: SystemTimer) => timer.poll(), (timer: SystemTimer) => timer.advanceClock(0)]) {
    const { clock, timer, ran } = open();
    clock.nowMs = COARSE_MS;
    clock.fire();
    clock.nowMs = COARSE_MS + 1_000;
    await drive(timer);
    expect([ran.join(''), timer.size]).toEqual(['abcdefghi', 0]);
  }
});

function openHalf(): ReturnType<typeof open> {
  const opened = open();
  opened.clock.nowMs = COARSE_MS;
  opened.clock.fire();
  checkTimer(opened.timer);
  return opened;
}

test('while a bucket is half empty the next turn is armed, and the snapshot is consistent', () => {
  const { clock, timer, ran } = openHalf();
  expect([timer.nextExpirationMs(), clock.pendingWakeups, ran]).toEqual([COARSE_MS, 1, []]);
  const { levels, dueNow, size, delayQueue } = timer.inspect();
  const sizes = levels.map(({ buckets }) => buckets.reduce((sum, bucket) => sum + bucket.size, 0));
  expect([sizes, dueNow, size]).toEqual([[0, 2, 7], 0, 9]);
  expect(delayQueue).toHaveLength(3);
});

test('a task without a delay that is added while a bucket is half empty runs behind what is overdue, first in, first out', () => {
  const { clock, timer, ran, at } = openHalf();
  clock.nowMs = COARSE_MS + 850;
  for (const name of ['x', 'y', 'z']) at(name, clock.nowMs);
  checkTimer(timer);
  fireAll(clock, timer);
  expect(ran.join('')).toBe('abcdefghixyz');
});

test('cancelling the rest of a half-empty bucket disarms the wake-up, or arms it for the next bucket', () => {
  const { clock, timer, ids } = openHalf();
  for (const id of ids.slice(2)) timer.cancel(id as Parameters<SystemTimer['cancel']>[0]);
  checkTimer(timer);
  expect(timer.nextExpirationMs()).toBeGreaterThan(COARSE_MS);
  for (const id of ids) timer.cancel(id as Parameters<SystemTimer['cancel']>[0]);
  expect([timer.size, clock.pendingWakeups]).toEqual([0, 0]);
  checkTimer(timer);
});

test('a timer that is full refuses what is added, changes nothing, and takes as many tasks as it lets go', async () => {
  const { clock, timer } = manualTimer();
  timer[INTERNALS]().wheels.table.entriesEnd = 100;
  const ids: TimerId[] = [];
  const fill = (): void => {
    for (;;) ids.push(timer.schedule(1_000, () => undefined));
  };
  expect(fill).toThrow(expect.objectContaining({ name: 'EscapementError', code: 'ERR_TIMER_FULL' }));
  const before = timer.inspect();
  const task = new TestTask(1, () => undefined);
  const full = { code: 'ERR_TIMER_FULL' };
  expect(() => timer.add(task)).toThrow(expect.objectContaining(full));
  expect(() => timer.scheduleAt(5, () => undefined)).toThrow(expect.objectContaining(full));
  await expect(timer.sleep(5)).rejects.toMatchObject(full);
  expect([timer.inspect(), timer.size, task.pending]).toEqual([before, ids.length, false]);
  checkTimer(timer);
  expect(timer.reschedule(ids[1] as TimerId, 1_000_000)).toBe(true); // its bucket needs a slot
  expect(timer.cancel(ids[0] as TimerId)).toBe(true);
  timer.add(task);
  clock.advance(1);
  expect(task.pending).toBe(false);
  checkTimer(timer);
});
