import { ManualClock, SystemTimer, type Clock, type ClockTimeout } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { CountingClock } from './support/counting-clock.ts';
import { HandClock } from './support/hand-clock.ts';
import { Journal, TestTask } from './support/tasks.ts';

const YEAR_MS = 365.25 * 86_400_000;

describe('one wake-up is armed at most, and only for a bucket that holds tasks', () => {
  test('however many tasks wait, on however many levels', () => {
    const clock = new CountingClock();
    const timer = new SystemTimer({ clock, wheelSize: 3 });
    const tasks = Array.from({ length: 300 }, (_, i) => new TestTask((i * 37) % 1_000));
    for (const task of tasks) {
      timer.add(task);
      expect(clock.armed).toBe(1);
    }
    for (let i = 0; i < tasks.length; i += 3) tasks[i]?.cancel();
    while (timer.size > 0) {
      expect(clock.armed).toBe(1);
      clock.advance(7);
      checkTimer(timer);
    }
    expect(clock.armed).toBe(0);
    expect(clock.mostArmed).toBe(1);
  });

  test('not while nobody drives the timer', async () => {
    const clock = new CountingClock();
    const timer = new SystemTimer({ clock, autoStart: false });
    const task = new TestTask(5);
    timer.add(task);
    timer.schedule(0, () => undefined, undefined);
    clock.advance(100);
    expect([clock.mostArmed, task.runs]).toEqual([0, 0]);
    const waiting = new SystemTimer({ clock, autoStart: false });
    waiting.add(new TestTask(5));
    const wait = waiting.advanceClock(50);
    expect(clock.armed).toBe(1);
    clock.advance(5);
    expect(await wait).toBe(true);
    expect([clock.armed, clock.mostArmed]).toEqual([0, 1]);
  });

  test('not a second one while a task runs and adds others', () => {
    const clock = new CountingClock();
    const timer = new SystemTimer({ clock });
    timer.add(
      new TestTask(5, () => {
        for (let i = 10; i > 0; i--) timer.add(new TestTask(i));
      }),
    );
    clock.advance(50);
    expect([clock.mostArmed, clock.armed, timer.size]).toEqual([1, 0, 0]);
  });
});

describe('when that bucket empties, the wake-up is moved or disarmed at once', () => {
  test('by cancelling its task', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    const [first, second] = [new TestTask(10), new TestTask(40)];
    timer.add(first);
    timer.add(second);
    first.cancel();
    expect(clock.armedForMs).toBe(40);
    second.cancel();
    expect([clock.armed, clock.mostArmed]).toEqual([0, 1]);
    checkTimer(timer);
  });

  test('by cancelling its callback, but not before the last one', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    const ids = [10, 10, 40].map((delayMs) => timer.schedule(delayMs, () => undefined, undefined));
    const armed = ids.map((id) => {
      timer.cancel(id);
      return clock.armedForMs;
    });
    expect(armed).toEqual([10, 40, undefined]);
  });

  test('by rescheduling, to later and to earlier', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    const id = timer.schedule(10, () => undefined, undefined);
    timer.schedule(40, () => undefined, undefined);
    timer.reschedule(id, 90);
    expect(clock.armedForMs).toBe(40);
    timer.reschedule(id, 20);
    expect(clock.armedForMs).toBe(20);
    timer.reschedule(id, 0);
    expect(clock.armedForMs).toBe(0);
    timer.reschedule(id, 30);
    expect(clock.armedForMs).toBe(30);
    expect(clock.mostArmed).toBe(1);
  });

  test('by adding its task again', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    const task = new TestTask(10);
    timer.add(task);
    clock.nowMs = 5;
    timer.add(task);
    expect([clock.armedForMs, clock.armed, timer.size]).toEqual([15, 1, 1]);
  });

  test('by adding its task to another timer', () => {
    const clocks = [new HandClock(), new HandClock()] as const;
    const [from, to] = [new SystemTimer({ clock: clocks[0] }), new SystemTimer({ clock: clocks[1] })];
    const task = new TestTask(10);
    from.add(task);
    to.add(task);
    expect(clocks.map((clock) => clock.armed)).toEqual([0, 1]);
  });

  test('by aborting its sleep', async () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    const controller = new AbortController();
    const sleep = timer.sleep(10, undefined, { signal: controller.signal });
    controller.abort(new Error('enough'));
    expect(clock.armed).toBe(0);
    await expect(sleep).rejects.toThrow('enough');
  });

  test('by closing the timer', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    timer.add(new TestTask(10));
    timer.close();
    expect(clock.armed).toBe(0);
  });

  test('also when the host is late and an insertion has moved its tasks to a finer wheel', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock, wheelSize: 4 });
    const id = timer.schedule(30, () => undefined, undefined);
    expect(clock.armedForMs).toBe(16);
    clock.nowMs = 17;
    timer.schedule(100, () => undefined, undefined);
    expect(clock.armedForMs).toBe(timer.nextExpirationMs());
    timer.cancel(id);
    expect(clock.armedForMs).toBe(timer.nextExpirationMs());
    checkTimer(timer);
  });

  test('also when the host is late and an insertion has made its tasks due', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock, wheelSize: 4 });
    const ids = [timer.schedule(6, () => undefined, undefined)];
    clock.nowMs = 7;
    ids.push(timer.schedule(0, () => undefined, undefined));
    for (const id of ids) timer.cancel(id);
    expect([timer.size, clock.armed]).toEqual([0, 0]);
    checkTimer(timer);
  });

  test('also when the host is late and the task comes back to the bucket it left, a turn later', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock, wheelSize: 64 });
    const id = timer.schedule(10, () => undefined, undefined);
    clock.nowMs = 12;
    timer.reschedule(id, 62);
    expect(clock.armedForMs).toBe(74);
    checkTimer(timer);
  });
});

describe('an idle timer, or one whose tasks were all cancelled, wakes nobody', () => {
  test('a new one arms nothing', () => {
    const clock = new CountingClock();
    const timer = new SystemTimer({ clock });
    clock.advance(1e9);
    expect([clock.mostArmed, clock.delivered, timer.poll()]).toEqual([0, 0, 0]);
  });

  test('ten thousand cancelled tasks arm nothing', () => {
    const clock = new CountingClock();
    const timer = new SystemTimer({ clock });
    const tasks = Array.from({ length: 10_000 }, (_, i) => new TestTask((i * 7_919) % 100_000));
    for (const task of tasks) timer.add(task);
    for (const task of tasks) task.cancel();
    expect([clock.armed, timer.nextExpirationMs(), timer.size]).toEqual([0, undefined, 0]);
    clock.advance(1e6);
    expect(clock.delivered).toBe(0);
    checkTimer(timer);
  });

  test('after its last task it goes back to sleep', () => {
    const clock = new CountingClock();
    const timer = new SystemTimer({ clock });
    timer.add(new TestTask(5));
    clock.advance(5);
    const { delivered } = clock;
    clock.advance(1e9);
    expect([clock.delivered, clock.armed]).toEqual([delivered, 0]);
  });

  test('one task an hour away costs one wake-up a level at most', () => {
    const clock = new CountingClock();
    const timer = new SystemTimer({ clock });
    timer.add(new TestTask(3_600_000));
    const levels = timer.inspect().levels.length;
    clock.advance(3_599_000);
    expect(clock.delivered).toBeLessThan(levels);
    clock.advance(1_000);
    expect(clock.delivered).toBeLessThanOrEqual(levels);
    expect(timer.size).toBe(0);
  });
});

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
