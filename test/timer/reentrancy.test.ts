import { EscapementError, ManualClock, SystemTimer } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { thrownBy } from './support/errors.ts';
import { HandClock } from './support/hand-clock.ts';
import { addTask, Journal, TestTask } from './support/tasks.ts';
import { handTimer, manualTimer } from './support/timers.ts';

describe('user code may add, cancel, reschedule, poll or close from inside a task', () => {
  test('a task that is added inside a task waits for its own delay', () => {
    const { clock, timer, journal } = manualTimer();
    journal.add(timer, 5, 'a', () => {
      journal.add(timer, 5, 'b');
      timer.schedule(3, journal.write, 'c');
      checkTimer(timer);
    });
    clock.advance(7);
    expect(journal.entries).toEqual(['a']);
    clock.advance(1);
    expect(journal.entries).toEqual(['a', 'c']);
    clock.advance(2);
    expect(journal.entries).toEqual(['a', 'c', 'b']);
  });

  test('a task may add itself again', () => {
    const { clock, timer } = manualTimer();
    const task = new TestTask(10, (self) => {
      if (self.runs < 3) timer.add(self);
    });
    timer.add(task);
    clock.advance(29);
    expect(task.runs).toBe(2);
    clock.advance(1_000);
    expect(task.runs).toBe(3);
  });

  test('a task may cancel later tasks of its batch', () => {
    const { clock, timer, journal } = manualTimer();
    const results: boolean[] = [];
    journal.add(timer, 5, 'a', () => {
      results.push(victim.cancel(), victim.cancel(), timer.cancel(id), timer.cancel(id));
      expect(timer.size).toBe(1);
      checkTimer(timer);
    });
    const victim = journal.add(timer, 5, 'victim');
    const id = timer.schedule(5, journal.write, 'callback');
    journal.add(timer, 5, 'b');
    clock.advance(5);
    expect(results).toEqual([true, false, true, false]);
    expect(journal.entries).toEqual(['a', 'b']);
    expect(victim.isCancelled).toBe(true);
  });

  test('the last task of a batch may cancel a task of the next bucket, which is due already', () => {
    const { clock, timer, journal } = handTimer();
    journal.add(timer, 5, 'a', () => next.cancel());
    const next = journal.add(timer, 6, 'next');
    clock.nowMs = 100;
    expect(timer.poll()).toBe(1);
    expect(timer.size).toBe(0);
    expect(clock.pendingWakeups).toBe(0);
  });

  test('a running task is not pending, so it cannot be cancelled', () => {
    const { timer } = manualTimer();
    const task = new TestTask(0, (self) => {
      expect(self.cancel()).toBe(false);
      expect([self.pending, self.isCancelled]).toEqual([false, false]);
    });
    timer.add(task);
    timer.poll();
    expect.assertions(2);
  });

  test('a task that has added itself again may cancel that', () => {
    const { clock, timer } = manualTimer();
    const task = new TestTask(1, (self) => {
      timer.add(self);
      expect(self.cancel()).toBe(true);
    });
    timer.add(task);
    clock.advance(10);
    expect([task.runs, task.isCancelled, timer.size]).toEqual([1, true, 0]);
  });

  test('a task may reschedule a later task of its batch', () => {
    const { clock, timer, journal } = manualTimer();
    journal.add(timer, 5, 'a', () => {
      expect(timer.reschedule(id, 10)).toBe(true);
      timer.add(moved);
    });
    const id = timer.schedule(5, journal.write, 'callback');
    const moved = journal.add(timer, 5, 'moved');
    clock.advance(5);
    expect(journal.take()).toEqual(['a']);
    clock.advance(5);
    expect(journal.take()).toEqual(['moved']);
    clock.advance(5);
    expect(journal.take()).toEqual(['callback']);
  });

  test('a task may reschedule a later bucket to now, which runs in a later pump', () => {
    const { clock, timer, journal } = handTimer();
    const id = timer.schedule(50, journal.write, 'callback');
    journal.add(timer, 5, 'a', () => timer.reschedule(id, 0));
    clock.nowMs = 5;
    expect(timer.poll()).toBe(1);
    expect(timer.poll()).toBe(1);
    expect(journal.entries).toEqual(['a', 'callback']);
  });

  test('a task may be moved to another timer, and from there into the running one', () => {
    const clock = new HandClock();
    const [one, two] = [new SystemTimer({ clock }), new SystemTimer({ clock })];
    const journal = new Journal();
    journal.add(one, 5, 'a', () => {
      two.add(away);
      one.add(here);
      checkTimer(one);
      checkTimer(two);
    });
    const away = journal.add(one, 5, 'away');
    const here = journal.add(two, 5, 'here');
    clock.nowMs = 5;
    expect([one.poll(), two.poll()]).toEqual([1, 0]);
    clock.nowMs = 10;
    expect([two.poll(), one.poll()]).toEqual([1, 1]);
    expect(journal.entries).toEqual(['a', 'away', 'here']);
  });

  test('a task may close the timer: nothing else runs, and the timer is sound', () => {
    const { clock, timer, journal } = manualTimer();
    journal.add(timer, 5, 'a', () => {
      expect(timer.close()).toEqual([b, c]);
      expect(timer.size).toBe(0);
      checkTimer(timer);
    });
    const b = journal.add(timer, 5, 'b');
    const c = journal.add(timer, 6, 'c');
    clock.advance(100);
    expect(journal.entries).toEqual(['a']);
    expect(clock.pendingWakeups).toBe(0);
    checkTimer(timer);
  });

  test('a task may close the timer with "run": the rest runs inside it, each once', () => {
    const { clock, timer, journal } = manualTimer();
    journal.add(timer, 5, 'a', () => {
      journal.add(timer, 0, 'c');
      expect(timer.close({ pending: 'run' })).toHaveLength(3);
      journal.write('closed');
    });
    journal.add(timer, 5, 'b');
    journal.add(timer, 1_000, 'd');
    clock.advance(5_000);
    expect(journal.entries).toEqual(['a', 'b', 'c', 'd', 'closed']);
    expect(timer.size).toBe(0);
    checkTimer(timer);
  });

  test('a task that has closed the timer cannot add, and that error goes to onError', () => {
    const errors: unknown[] = [];
    const { clock, timer } = manualTimer({ onError: (error) => errors.push(error) });
    timer.add(
      new TestTask(1, (self) => {
        timer.close();
        timer.add(self);
      }),
    );
    clock.advance(1);
    expect(errors).toEqual([expect.objectContaining({ code: 'ERR_TIMER_CLOSED' })]);
  });

  test('a task may throw after any of these calls', () => {
    const clock = new ManualClock();
    const errors: unknown[] = [];
    const timer = new SystemTimer({ clock, onError: (error) => errors.push(String(error)) });
    const journal = new Journal();
    journal.add(timer, 5, 'a', () => {
      victim.cancel();
      journal.add(timer, 0, 'added');
      throw new Error('a');
    });
    const victim = journal.add(timer, 5, 'victim');
    journal.add(timer, 5, 'b', () => {
      timer.close({ pending: 'run' });
      throw new Error('b');
    });
    journal.add(timer, 50, 'last');
    clock.advance(5);
    expect(journal.entries).toEqual(['a', 'b', 'added', 'last']);
    expect(errors).toEqual(['Error: a', 'Error: b']);
    checkTimer(timer);
  });

  test('a wake-up that fires inside a task does no harm', () => {
    const { clock, timer, journal } = manualTimer();
    journal.add(timer, 5, 'a', () => {
      clock.advance(10);
      expect(journal.entries).toEqual(['a']);
      checkTimer(timer);
    });
    journal.add(timer, 5, 'b');
    journal.add(timer, 8, 'c');
    journal.add(timer, 100, 'd');
    clock.advance(5);
    expect(clock.now()).toBe(15);
    expect(journal.entries).toEqual(['a', 'b']);
    clock.advance(0);
    expect(journal.entries).toEqual(['a', 'b', 'c']);
    expect(clock.pendingWakeups).toBe(1);
    clock.advance(100);
    expect(journal.entries).toEqual(['a', 'b', 'c', 'd']);
  });
});

describe('a nested poll() runs nothing and returns 0', () => {
  test('a nested poll() runs nothing and returns 0, whatever is due', () => {
    const { clock, timer, journal } = handTimer();
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

  test('a nested advanceClock(0) runs nothing', async () => {
    const { timer } = manualTimer({ autoStart: false });
    const answers: Promise<boolean>[] = [];
    addTask(timer, 0, () => answers.push(timer.advanceClock(0)));
    addTask(timer, 0);
    expect(timer.poll()).toBe(2);
    expect(await Promise.all(answers)).toEqual([false]);
  });

  test('a poll in an error handler runs nothing', () => {
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

  test('a poll of another timer inside a task is not nested', () => {
    const clock = new HandClock();
    const [outer, inner] = [new SystemTimer({ clock }), new SystemTimer({ clock })];
    const journal = new Journal();
    journal.add(inner, 1, 'inner', () => expect(outer.poll()).toBe(0));
    journal.add(outer, 1, 'a', () => expect(inner.poll()).toBe(1));
    journal.add(outer, 1, 'b');
    clock.nowMs = 1;
    expect(outer.poll()).toBe(2);
    expect(journal.entries).toEqual(['a', 'inner', 'b']);
  });
});

describe('a task made due during a pump runs in a later one', () => {
  test('a task that adds itself again with delay 0 runs once for each poll', () => {
    const { timer } = manualTimer();
    addTask(timer, 0, (self) => timer.add(self));
    expect([timer.poll(), timer.poll(), timer.poll()]).toEqual([1, 1, 1]);
    expect(timer.size).toBe(1);
  });

  test('a task that adds itself again with delay 0 runs once for each turn of the host', () => {
    const { clock, timer } = handTimer();
    const endless = new TestTask(0, (self) => timer.add(self));
    const journal = new Journal();
    timer.add(endless);
    journal.add(timer, 0, 'other');
    for (let turn = 1; turn <= 5; turn++) {
      clock.fire();
      expect(endless.runs).toBe(turn);
      expect(clock.pendingWakeups).toBe(1);
    }
    expect(journal.entries).toEqual(['other']);
  });

  test('a task that adds itself again with delay 0 stops ManualClock with an error', () => {
    const { clock, timer } = manualTimer();
    const task = addTask(timer, 0, (self) => timer.add(self));
    const error = thrownBy(() => clock.advance(0));
    expect(error).toBeInstanceOf(EscapementError);
    expect(error).toHaveProperty('code', 'ERR_CLOCK_STALLED');
    expect(task.runs).toBeLessThanOrEqual(100_000);
    expect(task.cancel()).toBe(true);
  });

  test('a task that falls due during a pump, because time passes, runs in a later one', () => {
    const { clock, timer, journal } = handTimer();
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

  test('a task that the task before it makes due runs in a later pump', () => {
    const { timer, journal } = manualTimer();
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
