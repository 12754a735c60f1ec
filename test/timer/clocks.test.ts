import { type Clock, type ClockTimeout, ManualClock, SystemTimer } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { CountingClock } from './support/counting-clock.ts';
import { throwing, thrownBy } from './support/errors.ts';
import { HandClock } from './support/hand-clock.ts';
import { addTask, TestTask } from './support/tasks.ts';
import { handTimer, manualTimer } from './support/timers.ts';

const YEAR_MS = 365.25 * 86_400_000;

test.each([2 ** 31 - 1, 2 ** 31, 2 ** 31 + 0.5, 2 ** 32, 10 * YEAR_MS])(
  'a task with a delay of %d ms runs then, and not before',
  (delayMs) => {
    const clock = new CountingClock({ nowMs: 12_345 });
    const timer = new SystemTimer({ clock });
    const task = addTask(timer, delayMs);
    clock.advance(Math.ceil(delayMs) - 1);
    expect(task.runs).toBe(0);
    clock.advance(1);
    expect(task.runs).toBe(1);
    expect(clock.mostArmed).toBe(1);
  },
);

test.each([Number.MAX_SAFE_INTEGER, 2 ** 53, 1e30, Number.MAX_VALUE])(
  'a task with a delay of %d ms is pending, can be moved, and can be cancelled',
  (delayMs) => {
    const clock = new HandClock(1_000.5);
    for (const options of [{}, { tickMs: 7, wheelSize: 2 }, { rounding: 'down' as const }]) {
      const timer = new SystemTimer({ clock, ...options });
      const task = addTask(timer, delayMs);
      const id = timer.schedule(delayMs, () => undefined);
      checkTimer(timer);
      clock.nowMs += 100 * YEAR_MS;
      expect(timer.poll()).toBe(0);
      expect(timer.reschedule(id, 50)).toBe(true);
      checkTimer(timer);
      clock.nowMs += 60;
      expect(timer.poll()).toBe(1);
      expect([task.cancel(), timer.size, clock.pendingWakeups]).toEqual([true, 0, 0]);
    }
  },
);

test.each([-1, -(2 ** 40), -Number.MAX_VALUE])('a task with a delay of %d ms is due at once', (delayMs) => {
  const { timer } = manualTimer({ nowMs: 5 });
  addTask(timer, delayMs);
  expect(timer.nextExpirationMs()).toBe(5);
  expect(timer.poll()).toBe(1);
});

test('a delay of more than 2^31 - 1 ms works with a host that fires such a timeout at once', () => {
  let wakeups = 0;
  const manual = new ManualClock();
  const overflowing: Clock = {
    now: () => manual.now(),
    wallNow: () => manual.wallNow(),
    setTimeout: (callback, delayMs): ClockTimeout => {
      wakeups++;
      return manual.setTimeout(callback, delayMs > 2 ** 31 - 1 ? 1 : delayMs);
    },
  };
  const timer = new SystemTimer({ clock: overflowing });
  const task = addTask(timer, YEAR_MS);
  manual.advance(YEAR_MS);
  expect(task.runs).toBe(1);
  expect(wakeups).toBeLessThan(40);
});

test('an early wake-up runs nothing and is armed again for the rest', () => {
  const { clock, timer } = handTimer();
  const task = addTask(timer, 10);
  for (const nowMs of [0, 3, 9.999]) {
    clock.nowMs = nowMs;
    clock.fire();
    expect([task.runs, clock.pendingWakeups, clock.armedForMs]).toEqual([0, 1, 10]);
    checkTimer(timer);
  }
  clock.nowMs = 10;
  clock.fire();
  expect([task.runs, clock.pendingWakeups]).toEqual([1, 0]);
});

test('a timer works as always between an expiration and its late wake-up', () => {
  const { clock, timer, journal } = handTimer({ wheelSize: 2 });
  const a = journal.add(timer, 5, 'a');
  journal.add(timer, 6, 'b');
  clock.nowMs = 8;
  journal.add(timer, 1, 'c');
  timer.add(a);
  expect([clock.pendingWakeups, clock.mostArmed]).toEqual([1, 1]);
  clock.nowMs = 20;
  clock.fire();
  expect(journal.entries).toEqual(['b', 'c', 'a']);
  expect(clock.pendingWakeups).toBe(0);
});

test('a cancelled wake-up that a broken clock delivers arms no second one, and none for an empty timer', () => {
  const { clock, timer, journal } = handTimer();
  const last = journal.add(timer, 20);
  journal.add(timer, 10);
  clock.nowMs = 4;
  clock.fireCancelled();
  expect([clock.pendingWakeups, clock.mostArmed, clock.armedForMs]).toEqual([1, 1, 10]);
  clock.nowMs = 10;
  clock.fire();
  clock.fireCancelled();
  expect(journal.entries).toEqual([10]);
  expect([clock.pendingWakeups, clock.mostArmed, clock.armedForMs]).toEqual([1, 1, 20]);
  last.cancel();
  clock.fireCancelled();
  expect([clock.pendingWakeups, journal.entries]).toEqual([0, [10]]);
});

test('a clock that stands still does not make the timer spin', () => {
  const { clock, timer } = handTimer();
  addTask(timer, 10);
  clock.fire();
  clock.fire();
  expect(clock.delaysMs).toEqual([10, 10, 10]);
});

/** A clock whose next call of a method fails. */
class FailingClock extends HandClock {
  failing: 'now' | 'setTimeout' | undefined;

  override now(): number {
    this.#mayFail('now');
    return super.now();
  }

  override setTimeout(callback: () => void, delayMs: number): ClockTimeout {
    this.#mayFail('setTimeout');
    return super.setTimeout(callback, delayMs);
  }

  #mayFail(method: 'now' | 'setTimeout'): void {
    if (this.failing !== method) return;
    this.failing = undefined;
    throw new Error(`${method} failed`);
  }
}

test.each(['now', 'setTimeout'] as const)(
  'a clock that throws in %s adds nothing, and the next add works',
  (method) => {
    const clock = new FailingClock();
    const timer = new SystemTimer({ clock });
    const [task, next] = [new TestTask(5), new TestTask(7)];
    for (const action of [() => timer.add(task), () => timer.schedule(5, () => undefined)]) {
      clock.failing = method;
      expect(action).toThrow(`${method} failed`);
      expect([timer.size, clock.pendingWakeups, task.pending]).toEqual([0, 0, false]);
      checkTimer(timer);
    }
    timer.add(next);
    expect([timer.size, clock.pendingWakeups, clock.armedForMs]).toEqual([1, 1, 7]);
    clock.runTo(10);
    expect([task.runs, next.runs]).toEqual([0, 1]);
  },
);

test('a clock that throws in setTimeout leaves a moved task pending, and the next change arms the wake-up for it', () => {
  const clock = new FailingClock();
  const timer = new SystemTimer({ clock });
  addTask(timer, 50);
  addTask(timer, 5);
  const id = timer.schedule(20, () => undefined);
  clock.failing = 'setTimeout';
  expect(() => timer.reschedule(id, 3)).toThrow('setTimeout failed');
  expect([timer.size, clock.pendingWakeups]).toEqual([3, 0]);
  addTask(timer, 40);
  expect([timer.size, clock.pendingWakeups, clock.armedForMs]).toEqual([4, 1, 3]);
  checkTimer(timer);
});

test('a task that is moved from a timer whose clock throws is in the other timer, and its cancel cancels no other task', () => {
  const clock = new FailingClock();
  const timer = new SystemTimer({ clock });
  const other = handTimer().timer;
  const task = addTask(timer, 5);
  const rest = addTask(timer, 20);
  clock.failing = 'setTimeout';
  expect(() => other.add(task)).toThrow('setTimeout failed');
  expect([timer.size, other.size, task.pending]).toEqual([1, 1, true]);
  const next = addTask(timer, 30); // in the slot that the task has left
  expect([task.cancel(), next.pending, timer.size, other.size]).toEqual([true, true, 2, 0]);
  checkTimer(timer);
  checkTimer(other);
  clock.runTo(30);
  expect([task.runs, rest.runs, next.runs]).toEqual([0, 1, 1]);
});

/** Virtual time that is wrong while the test wants it to be; its wake-ups come all the same. */
class WrongClock extends ManualClock {
  wrong: { readonly now: () => unknown } | undefined;

  override now(): number {
    return this.wrong === undefined ? super.now() : (this.wrong.now() as number);
  }
}

const INVALID = { name: 'EscapementError', code: 'ERR_CLOCK_INVALID' };
const broken = new Error('no clock');
const WRONG: readonly (readonly [string, () => unknown])[] = [
  ...[NaN, Infinity, -Infinity, -1, 2 ** 53, undefined, null, '5', 5n].map(
    (value) => [`returns ${String(value)} (${typeof value})`, () => value] as const,
  ),
  ['throws', throwing(broken)],
];

function open(options: { autoStart?: boolean } = {}) {
  const clock = new WrongClock({ nowMs: 1_000 });
  const errors: unknown[] = [];
  const timer = new SystemTimer({ ...options, clock, onError: (error) => errors.push(error) });
  return { clock, timer, ran: [] as string[], errors };
}

describe.each(WRONG)('a clock that %s', (_, now) => {
  const isExpected = (error: unknown): void => {
    if (error !== broken) expect(error).toMatchObject(INVALID);
  };

  test('every call that reads an invalid clock throws and changes nothing; then the timer goes on', async () => {
    const { clock, timer, ran } = open({ autoStart: false });
    const add = (name: string): unknown => timer.schedule(10, (each) => ran.push(each), name);
    add('a');
    const id = timer.schedule(20, (each) => ran.push(each), 'b');
    clock.wrong = { now };
    const calls = [
      () => timer.poll(),
      () => add('c'),
      () => timer.reschedule(id, 5),
      () => timer.inspect(),
      () => new SystemTimer({ clock }),
    ];
    for (const call of calls) isExpected(thrownBy(call));
    isExpected(await timer.advanceClock(5).catch((error: unknown) => error));
    checkTimer(timer);
    expect([timer.size, timer.nextExpirationMs(), ran]).toEqual([2, 1_010, []]);
    clock.wrong = undefined;
    clock.advance(20);
    expect(timer.poll()).toBe(2);
    expect(ran).toEqual(['a', 'b']);
  });

  test('an invalid clock at a wake-up is one error; nothing runs, and what is due runs soon after the clock is valid', () => {
    const { clock, timer, ran, errors } = open();
    timer.schedule(10, (each) => ran.push(each), 'a');
    clock.wrong = { now };
    clock.advance(10_000);
    expect([ran, errors.length, clock.pendingWakeups]).toEqual([[], 1, 1]);
    isExpected(errors[0]);
    checkTimer(timer);
    clock.wrong = undefined;
    clock.advance(1_000);
    expect([ran, errors.length, clock.pendingWakeups]).toEqual([['a'], 1, 0]);
    checkTimer(timer);
  });

  test('an error of an invalid clock inside a task does not stop the other tasks', () => {
    const { clock, timer, ran, errors } = open();
    timer.schedule(10, () => (clock.wrong = { now }));
    timer.schedule(10, (each) => ran.push(each), 'a');
    timer.schedule(20, (each) => ran.push(each), 'b');
    clock.advance(15);
    expect([ran, errors.length]).toEqual([['a'], 1]);
    clock.wrong = undefined;
    clock.advance(1_000);
    expect(ran).toEqual(['a', 'b']);
    checkTimer(timer);
  });

  test('cancel does not read an invalid clock, and a timer without pending tasks arms nothing', () => {
    const { clock, timer, errors } = open();
    const first = timer.schedule(10, () => undefined);
    const second = timer.schedule(20, () => undefined);
    clock.wrong = { now };
    expect([timer.cancel(first), errors.length]).toEqual([true, 1]);
    expect([timer.cancel(second), clock.pendingWakeups]).toEqual([true, 0]);
    checkTimer(timer);
  });

  test('a task that is added when the clock is valid again moves the wake-up to the earliest bucket', () => {
    const { clock, timer, ran } = open();
    timer.schedule(10, (each) => ran.push(each), 'a');
    timer.schedule(100, (each) => ran.push(each), 'b');
    clock.wrong = { now };
    clock.advance(10);
    clock.wrong = undefined;
    timer.schedule(5, (each) => ran.push(each), 'c');
    checkTimer(timer);
    clock.advance(90);
    expect(ran).toEqual(['a', 'c', 'b']);
  });
});

test('a pending advanceClock resolves when an invalid clock is valid again', async () => {
  const { clock, timer, errors } = open({ autoStart: false });
  const fellDue = timer.advanceClock(10);
  clock.wrong = { now: () => NaN };
  clock.advance(10);
  expect(errors).toMatchObject([INVALID]);
  clock.wrong = undefined;
  clock.advance(1_000);
  expect(await fellDue).toBe(false);
});
