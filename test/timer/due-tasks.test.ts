import { ManualClock, type MetricsProvider, SystemTimer } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { expect, test } from 'vitest';
import { noopMetrics } from '../metrics/measured.ts';
import { uncaughtErrors } from '../uncaught-errors.ts';
import { settled } from '../workqueue/support/outcome.ts';
import { throwing } from './support/errors.ts';
import { addTask } from './support/tasks.ts';
import { handTimer, manualTimer } from './support/timers.ts';

test('tasks that are due at once request one delay of 0 from the clock, for all of them', () => {
  const { clock, timer } = handTimer({ nowMs: 3.5 });
  addTask(timer, 0);
  addTask(timer, -10);
  expect(clock.delaysMs).toEqual([0]);
});

test('ManualClock.advance(0) runs tasks that are due, and those that they add without a delay', () => {
  const { clock, timer, journal } = manualTimer();
  journal.add(timer, 0, 'a', () => journal.add(timer, 0, 'b'));
  clock.advance(0);
  expect(journal.entries).toEqual(['a', 'b']);
});

test('advanceClock resolves true for tasks that are due at once, and only once', async () => {
  const { timer } = manualTimer({ autoStart: false });
  const task = addTask(timer, 0);
  expect(await timer.advanceClock(0)).toBe(true);
  expect(task.runs).toBe(1);
  expect(await timer.advanceClock(0)).toBe(false);
});

test('a task that is added without a delay ends a pending advanceClock', async () => {
  const { clock, timer } = manualTimer({ autoStart: false });
  const wait = timer.advanceClock(1_000);
  const task = addTask(timer, 0);
  clock.advance(0);
  expect(await wait).toBe(true);
  expect(task.runs).toBe(1);
  expect(clock.now()).toBe(0);
});

test('poll runs everything that is due, beyond maxTasksPerTurn', () => {
  const { clock, timer, journal } = handTimer({ maxTasksPerTurn: 3 });
  for (let i = 0; i < 100; i++) timer.schedule(i % 2, journal.write, i);
  clock.nowMs = 1;
  expect(timer.poll()).toBe(100);
  expect(clock.pendingWakeups).toBe(0);
});

test('each turn of a mass expiry is a wake-up of its own, armed at once', () => {
  const { clock, timer, journal } = handTimer({ maxTasksPerTurn: 10 });
  for (let i = 0; i < 25; i++) timer.schedule(i < 20 ? 5 : 4, journal.write, i);
  const turns: number[] = [];
  clock.nowMs = 5;
  while (clock.pendingWakeups > 0) {
    clock.fire();
    turns.push(journal.entries.length);
    checkTimer(timer);
  }
  expect(turns).toEqual([10, 20, 25]);
  expect(clock.delaysMs.slice(-2)).toEqual([0, 0]);
  expect(clock.mostArmed).toBe(1);
  const first = [20, 21, 22, 23, 24];
  expect(journal.entries).toEqual([...first, ...Array.from({ length: 20 }, (_, i) => i)]);
});

test('a task that throws counts for maxTasksPerTurn', () => {
  const errors: unknown[] = [];
  const { clock, timer } = handTimer({ maxTasksPerTurn: 2, onError: (error) => errors.push(error) });
  for (let i = 0; i < 4; i++) timer.schedule(1, throwing(new Error(String(i))));
  clock.nowMs = 1;
  clock.fire();
  expect(errors.map(String)).toEqual(['Error: 0', 'Error: 1']);
  clock.fire();
  expect(errors).toHaveLength(4);
});

test('maxTasksPerTurn Infinity runs everything in one turn', () => {
  const { clock, timer, journal } = handTimer({ maxTasksPerTurn: Infinity });
  for (let i = 0; i < 20_000; i++) timer.schedule(1, journal.write, i);
  clock.nowMs = 1;
  clock.fire();
  expect(journal.entries).toHaveLength(20_000);
});

/** Calls `use` whenever something is counted. */
const counting = (use: (name: string) => void): MetricsProvider => ({
  ...noopMetrics,
  counter: (name) => ({ inc: () => use(name) }),
});

test('an error of a metrics provider stops nothing, and is an uncaught exception', async () => {
  const uncaught = uncaughtErrors();
  const mine = new Error('mine');
  const clock = new ManualClock();
  const ran: string[] = [];
  const fail = throwing(mine);
  const metrics = { ...counting(fail), observableGauge: () => ({ remove: fail }) };
  const timer = new SystemTimer({ clock, metrics, maxTasksPerTurn: 1 });
  for (const name of ['a', 'b', 'c']) timer.schedule(10, (each) => ran.push(each), name);
  timer.schedule(20, (each) => ran.push(each), 'd');
  clock.advance(10);
  expect(ran).toEqual(['a', 'b', 'c']);
  checkTimer(timer);
  clock.advance(9);
  timer.schedule(0, (each) => ran.push(each), 'e');
  expect(timer.poll()).toBe(1);
  clock.advance(1);
  expect(timer.close()).toEqual([]);
  await settled();
  expect([ran.join(''), new Set(uncaught)]).toEqual(['abced', new Set([mine])]);
});

test('a metrics provider may use the timer', () => {
  const clock = new ManualClock();
  const ran: string[] = [];
  const counted: string[] = [];
  const timer: SystemTimer = new SystemTimer({
    clock,
    metrics: counting((name) => {
      counted.push(name);
      checkTimer(timer);
      if (counted.length === 1) timer.schedule(0, (each) => ran.push(each), 'from metrics');
      if (counted.length === 2) expect(timer.poll()).toBe(1);
    }),
  });
  timer.schedule(10, (each) => ran.push(each), 'a');
  clock.advance(10);
  checkTimer(timer);
  expect(ran).toEqual(['a', 'from metrics']);
  expect(counted).toEqual(['timer_tasks_run_total', 'timer_wakeups_total', 'timer_tasks_run_total']);
});

test('a metrics provider that closes the timer leaves no wake-up armed', () => {
  const clock = new ManualClock();
  const timer: SystemTimer = new SystemTimer({ clock, metrics: counting(() => timer.close()) });
  for (const delayMs of [10, 20]) timer.schedule(delayMs, () => undefined);
  clock.advance(10);
  checkTimer(timer);
  expect([timer.size, clock.pendingWakeups]).toEqual([0, 0]);
});
