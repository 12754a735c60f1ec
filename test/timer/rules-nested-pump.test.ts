import { EscapementError, ManualClock, SystemTimer } from 'escapement';
import { describe, expect, test } from 'vitest';
import { thrownBy } from './support/errors.ts';
import { HandClock } from './support/hand-clock.ts';
import { Journal, TestTask } from './support/tasks.ts';

describe('a nested poll() runs nothing and returns 0', () => {
  test('whatever is due', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    const journal = new Journal();
    journal.add(timer, 5, 'a', () => {
      journal.add(timer, 0, 'c');
      clock.nowMs = 10;
      expect(timer.poll()).toBe(0);
      expect(journal.entries).toEqual(['a']);
      expect(timer.size).toBe(3);
    });
    journal.add(timer, 5, 'b');
    journal.add(timer, 9, 'd');
    clock.nowMs = 5;
    expect(timer.poll()).toBe(2);
    expect(timer.poll()).toBe(2);
    expect(journal.entries).toEqual(['a', 'b', 'c', 'd']);
  });

  test('nor does a nested advanceClock(0)', async () => {
    const timer = new SystemTimer({ clock: new ManualClock(), autoStart: false });
    const answers: Promise<boolean>[] = [];
    timer.add(new TestTask(0, () => answers.push(timer.advanceClock(0))));
    timer.add(new TestTask(0));
    expect(timer.poll()).toBe(2);
    expect(await Promise.all(answers)).toEqual([false]);
  });

  test('nor one in an error handler', () => {
    let nested: number | undefined;
    const timer: SystemTimer = new SystemTimer({
      clock: new ManualClock(),
      onError: () => {
        nested = timer.poll();
      },
    });
    const journal = new Journal();
    journal.add(timer, 0, 'a', () => {
      throw new Error('boom');
    });
    journal.add(timer, 0, 'b');
    expect(timer.poll()).toBe(2);
    expect(nested).toBe(0);
  });

  test('poll of another timer is not nested', () => {
    const clock = new HandClock();
    const [outer, inner] = [new SystemTimer({ clock }), new SystemTimer({ clock })];
    const journal = new Journal();
    journal.add(inner, 1, 'inner', () => {
      expect(outer.poll()).toBe(0);
    });
    journal.add(outer, 1, 'a', () => {
      expect(inner.poll()).toBe(1);
    });
    journal.add(outer, 1, 'b');
    clock.nowMs = 1;
    expect(outer.poll()).toBe(2);
    expect(journal.entries).toEqual(['a', 'inner', 'b']);
  });
});

describe('a task made due during a pump runs in a later one', () => {
  test('so a task that re-adds itself with delay 0 runs once a poll', () => {
    const timer = new SystemTimer({ clock: new ManualClock() });
    const task = new TestTask(0, (self) => {
      timer.add(self);
    });
    timer.add(task);
    expect([timer.poll(), timer.poll(), timer.poll()]).toEqual([1, 1, 1]);
    expect(timer.size).toBe(1);
  });

  test('and once a turn of the host', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    const endless = new TestTask(0, (self) => {
      timer.add(self);
    });
    const journal = new Journal();
    timer.add(endless);
    journal.add(timer, 0, 'other');
    for (let turn = 1; turn <= 5; turn++) {
      clock.fire();
      expect(endless.runs).toBe(turn);
      expect(clock.armed).toBe(1);
    }
    expect(journal.entries).toEqual(['other']);
  });

  test('and under ManualClock it ends with an error that says so', () => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock });
    const task = new TestTask(0, (self) => {
      timer.add(self);
    });
    timer.add(task);
    const error = thrownBy(() => {
      clock.advance(0);
    });
    expect(error).toBeInstanceOf(EscapementError);
    expect(error).toHaveProperty('code', 'ERR_CLOCK_STALLED');
    expect(task.runs).toBeLessThanOrEqual(100_000);
    expect(task.cancel()).toBe(true);
  });

  test('also when time passes during the pump', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    const journal = new Journal();
    journal.add(timer, 1, 'slow', () => {
      clock.nowMs = 100;
    });
    journal.add(timer, 1, 'second');
    journal.add(timer, 50, 'later');
    clock.nowMs = 1;
    expect(timer.poll()).toBe(2);
    expect(clock.armedForMs).toBe(100);
    expect(timer.poll()).toBe(1);
    expect(journal.entries).toEqual(['slow', 'second', 'later']);
  });

  test('also when it is scheduled, rescheduled or re-added by the task before it', () => {
    const timer = new SystemTimer({ clock: new ManualClock() });
    const journal = new Journal();
    journal.add(timer, 0, 'a', () => {
      timer.add(b);
      timer.reschedule(c, -1);
      timer.schedule(0, journal.write, 'd');
    });
    const b = journal.add(timer, 0, 'b');
    const c = timer.schedule(0, journal.write, 'c');
    expect(timer.poll()).toBe(1);
    expect(timer.poll()).toBe(3);
    expect(journal.entries).toEqual(['a', 'b', 'c', 'd']);
  });
});
