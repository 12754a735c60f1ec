import { checkTimer } from 'escapement/testing';
import { expect, test } from 'vitest';
import { Journal, TestTask } from './support/tasks.ts';
import { handTimer, manualTimer } from './support/timers.ts';

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

test('a task may close the timer with run: the others run inside that call', () => {
  const { clock, timer, journal } = manualTimer();
  journal.add(timer, 5, 'a', () => {
    timer.close({ pending: 'run' });
    journal.write('closed');
  });
  journal.add(timer, 5, 'b');
  journal.add(timer, 6, 'c');
  clock.advance(5);
  expect(journal.entries).toEqual(['a', 'b', 'c', 'closed']);
  expect([timer.size, clock.pendingWakeups]).toEqual([0, 0]);
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
