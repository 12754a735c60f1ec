import { ManualClock, SystemTimer, type Clock, type ClockTimeout } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { CountingClock } from './support/counting-clock.ts';
import { HandClock } from './support/hand-clock.ts';
import { Journal, TestTask } from './support/tasks.ts';

const YEAR_MS = 365.25 * 86_400_000;

describe('delays of any finite length work', () => {
  test.each([2 ** 31 - 1, 2 ** 31, 2 ** 31 + 0.5, 2 ** 32, 10 * YEAR_MS])(
    'a task %d ms away runs then, and not before',
    (delayMs) => {
      const clock = new CountingClock(12_345);
      const timer = new SystemTimer({ clock });
      const task = new TestTask(delayMs);
      timer.add(task);
      clock.advance(Math.ceil(delayMs) - 1);
      expect(task.runs).toBe(0);
      clock.advance(1);
      expect(task.runs).toBe(1);
      expect(clock.mostArmed).toBe(1);
    },
  );

  test.each([Number.MAX_SAFE_INTEGER, 2 ** 53, 1e30, Number.MAX_VALUE])(
    'a task %d ms away waits, can be moved, and can be cancelled',
    (delayMs) => {
      const clock = new HandClock(1_000.5);
      for (const options of [{}, { tickMs: 7, wheelSize: 2 }, { rounding: 'down' as const }]) {
        const timer = new SystemTimer({ clock, ...options });
        const task = new TestTask(delayMs);
        timer.add(task);
        const id = timer.schedule(delayMs, () => undefined, undefined);
        checkTimer(timer);
        clock.nowMs += 100 * YEAR_MS;
        expect(timer.poll()).toBe(0);
        expect(timer.reschedule(id, 50)).toBe(true);
        checkTimer(timer);
        clock.nowMs += 60;
        expect(timer.poll()).toBe(1);
        expect([task.cancel(), timer.size, clock.armed]).toEqual([true, 0, 0]);
      }
    },
  );

  test.each([-1, -(2 ** 40), -Number.MAX_VALUE])('a task %d ms away is due at once', (delayMs) => {
    const timer = new SystemTimer({ clock: new ManualClock({ nowMs: 5 }) });
    timer.add(new TestTask(delayMs));
    expect(timer.nextExpirationMs()).toBe(5);
    expect(timer.poll()).toBe(1);
  });

  test('with a host that fires at once what is longer than 2^31 - 1', () => {
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
    const task = new TestTask(YEAR_MS);
    timer.add(task);
    manual.advance(YEAR_MS);
    expect(task.runs).toBe(1);
    expect(wakeups).toBeLessThan(40);
  });
});

describe('a late or early host wake-up is harmless', () => {
  test('an early one runs nothing and is armed again for the rest', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    const task = new TestTask(10);
    timer.add(task);
    for (const nowMs of [0, 3, 9.999]) {
      clock.nowMs = nowMs;
      clock.fire();
      expect([task.runs, clock.armed, clock.armedForMs]).toEqual([0, 1, 10]);
      checkTimer(timer);
    }
    clock.nowMs = 10;
    clock.fire();
    expect([task.runs, clock.armed]).toEqual([1, 0]);
  });

  test('a late one catches up with everything in one turn, in order', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    const journal = new Journal();
    const delays = [5_000, 1, 64, 4_096, 65, 300];
    for (const delayMs of delays) journal.add(timer, delayMs);
    clock.nowMs = 1e6;
    clock.fire();
    expect(journal.entries).toEqual([1, 64, 65, 300, 4_096, 5_000]);
    expect(clock.armed).toBe(0);
    checkTimer(timer);
  });

  test('between a moment and its late wake-up the timer can be used as always', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock, wheelSize: 2 });
    const journal = new Journal();
    const a = journal.add(timer, 5, 'a');
    journal.add(timer, 6, 'b');
    clock.nowMs = 8;
    journal.add(timer, 1, 'c');
    timer.add(a);
    expect([clock.armed, clock.mostArmed]).toEqual([1, 1]);
    clock.nowMs = 20;
    clock.fire();
    expect(journal.entries).toEqual(['b', 'c', 'a']);
    expect(clock.armed).toBe(0);
  });

  test('one that comes after everything was cancelled runs nothing', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    const task = new TestTask(5);
    timer.add(task);
    task.cancel();
    clock.nowMs = 5;
    clock.fireCancelled();
    expect([task.runs, clock.armed]).toEqual([0, 0]);
  });

  test('one that a broken clock delivers although it was cancelled does not leave two armed', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    const journal = new Journal();
    journal.add(timer, 20);
    journal.add(timer, 10);
    clock.nowMs = 4;
    clock.fireCancelled();
    expect([clock.armed, clock.mostArmed, clock.armedForMs]).toEqual([1, 1, 10]);
    clock.nowMs = 10;
    clock.fire();
    clock.fireCancelled();
    expect(journal.entries).toEqual([10]);
    expect([clock.armed, clock.mostArmed, clock.armedForMs]).toEqual([1, 1, 20]);
  });

  test('a clock that stands still does not make the timer spin', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    timer.add(new TestTask(10));
    clock.fire();
    clock.fire();
    expect(clock.delaysMs).toEqual([10, 10, 10]);
  });
});

describe('a clock that throws', () => {
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

  test.each(['now', 'setTimeout'] as const)('in %s adds nothing, and the next add works', (method) => {
    const clock = new FailingClock();
    const timer = new SystemTimer({ clock });
    const [task, next] = [new TestTask(5), new TestTask(7)];
    for (const action of [
      () => {
        timer.add(task);
      },
      () => timer.schedule(5, () => undefined, undefined),
    ]) {
      clock.failing = method;
      expect(action).toThrow(`${method} failed`);
      expect([timer.size, clock.armed, task.pending]).toEqual([0, 0, false]);
      checkTimer(timer);
    }
    timer.add(next);
    expect([timer.size, clock.armed, clock.armedForMs]).toEqual([1, 1, 7]);
    clock.runTo(10);
    expect([task.runs, next.runs]).toEqual([0, 1]);
  });

  test('in setTimeout when a task moves leaves it waiting, and the next change arms for it', () => {
    const clock = new FailingClock();
    const timer = new SystemTimer({ clock });
    const task = new TestTask(5);
    timer.add(new TestTask(50));
    timer.add(task);
    const id = timer.schedule(20, () => undefined, undefined);
    clock.failing = 'setTimeout';
    expect(() => timer.reschedule(id, 3)).toThrow('setTimeout failed');
    expect([timer.size, clock.armed]).toEqual([3, 0]);
    timer.add(new TestTask(40));
    expect([timer.size, clock.armed, clock.armedForMs]).toEqual([4, 1, 3]);
    checkTimer(timer);
  });
});
