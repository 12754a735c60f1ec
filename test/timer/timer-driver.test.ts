import { expect, test } from 'vitest';
import { TaskRunner } from '../../src/timer/task-runner.ts';
import { TimerDriver } from '../../src/timer/timer-driver.ts';
import { NO_SLOT, TimerTable } from '../../src/timer/timer-table.ts';
import { DueQueue } from '../../src/timer/timer-task-list.ts';
import { attach, runTask } from '../../src/timer/timer-task.ts';
import { TimerWheels } from '../../src/timer/timer-wheels.ts';
import { HandClock } from './support/hand-clock.ts';
import { addTask, Journal, TestTask } from './support/tasks.ts';
import { handTimer } from './support/timers.ts';

const fail = (error: unknown): never => {
  throw error;
};

function makeDriver(autoStart = true, executor?: (run: () => void) => void) {
  const clock = new HandClock();
  const wheels = new TimerWheels(1, 8, 0, 'up');
  const runner = new TaskRunner(wheels, { onError: fail, executor });
  const options = { clock, autoStart, maxTasksPerTurn: Infinity };
  const driver = new TimerDriver(wheels, runner, options);
  const enter = (delayMs: number): number => driver.enter(() => undefined, undefined, delayMs);
  return { clock, wheels, runner, driver, enter };
}

test('the driver arms the wake-up for the earliest list after every change', () => {
  const { clock, driver, enter } = makeDriver();
  expect(driver.wakeup.deadlineMs).toBe(Infinity);
  const far = enter(6);
  const near = enter(3);
  expect(driver.wakeup.deadlineMs).toBe(3);
  driver.move(near, 7);
  expect(driver.wakeup.deadlineMs).toBe(6);
  driver.withdraw(far);
  expect(driver.wakeup.deadlineMs).toBe(7);
  driver.withdraw(near);
  expect([driver.wakeup.deadlineMs, clock.pendingWakeups, clock.mostArmed]).toEqual([Infinity, 0, 1]);
});

test('the driver does not move the wake-up for an entry that is later', () => {
  const { clock, driver, enter } = makeDriver();
  enter(3);
  const calls = clock.delaysMs.length;
  const later = enter(5);
  enter(7);
  driver.move(later, 6);
  driver.withdraw(later);
  expect(clock.delaysMs).toHaveLength(calls);
});

test('the driver reads the clock once per operation', () => {
  const { clock, driver, enter } = makeDriver();
  let reads = 0;
  const now = clock.now.bind(clock);
  clock.now = () => {
    reads++;
    return now();
  };
  const slot = enter(5);
  expect(reads).toBe(1);
  driver.move(slot, 3);
  expect(reads).toBe(2);
});

test('while tasks run the driver arms nothing, and once at the end of their turn', () => {
  const { clock, driver, enter } = makeDriver();
  driver.enter(
    () => {
      for (const delayMs of [5, 4, 3]) enter(delayMs);
      expect([clock.pendingWakeups, driver.isArming]).toEqual([0, false]);
    },
    undefined,
    0,
  );
  clock.fire();
  clock.delaysMs.shift();
  expect([clock.delaysMs, driver.wakeup.deadlineMs, driver.isArming]).toEqual([[3], 3, true]);
});

test('while the executor has a turn the driver arms the wake-up only for buckets', () => {
  const { driver, runner, enter } = makeDriver(true, () => undefined);
  enter(0);
  enter(5);
  expect(driver.wakeup.deadlineMs).toBe(0);
  driver.pump(Infinity);
  expect([driver.wakeup.deadlineMs, runner.isHandedOver, driver.isArming]).toEqual([5, true, false]);
});

test('without autoStart the driver arms a wake-up only while a call of advanceClock is pending', async () => {
  const { clock, driver, enter } = makeDriver(false);
  enter(5);
  expect(clock.pendingWakeups).toBe(0);
  const wait = driver.wait(3);
  expect(driver.wakeup.deadlineMs).toBe(3);
  clock.nowMs = 5;
  driver.pump(Infinity);
  expect([clock.pendingWakeups, await wait]).toEqual([0, true]);
});

test('a closed driver arms nothing, and resolves pending calls with false', async () => {
  const { clock, runner, driver, enter } = makeDriver();
  const slot = enter(5);
  const wait = driver.wait(100);
  driver.close();
  driver.withdraw(slot);
  expect([runner.isStopped, driver.isArming, clock.pendingWakeups, await wait]).toEqual([
    true,
    false,
    0,
    false,
  ]);
});

test('a timer keeps the process alive by default', () => {
  const { clock, timer } = handTimer();
  expect(timer.hasRef()).toBe(true);
  addTask(timer, 5);
  expect(clock.refs).toEqual([]);
});

test('ref and unref apply to the armed wake-up, and to every later one', () => {
  const { clock, timer } = handTimer();
  addTask(timer, 50);
  timer.unref();
  expect([timer.hasRef(), clock.refs]).toEqual([false, ['unref']]);
  addTask(timer, 5);
  expect(clock.refs).toEqual(['unref', 'unref']);
  timer.ref();
  expect([timer.hasRef(), clock.refs]).toEqual([true, ['unref', 'unref', 'ref']]);
  addTask(timer, 1);
  expect(clock.refs).toHaveLength(3);
});

test('unref applies to a wake-up that is armed again because it fired early', () => {
  const { clock, timer } = handTimer();
  timer.unref();
  addTask(timer, 50);
  clock.fire();
  expect(clock.refs).toEqual(['unref', 'unref']);
});

test('a caller that waits again when its wait resolves has a new deadline', async () => {
  const { clock, driver } = makeDriver(false);
  const again = driver.wait(10).then(() => driver.wait(20));
  clock.nowMs = 10;
  clock.fire();
  await Promise.resolve();
  expect(driver.wakeup.deadlineMs).toBe(30);
  driver.close();
  expect(await again).toBe(false);
});

function makeRunner() {
  const table = new TimerTable();
  const due = new DueQueue(table);
  const errors: unknown[][] = [];
  const runner = new TaskRunner(
    { table, due },
    { onError: (...args) => errors.push(args), executor: undefined },
  );
  const add = (callback: (argument: never) => void, argument?: unknown): number => {
    const slot = table.allocate(callback, argument);
    due.add(slot, 0);
    return slot;
  };
  return { table, due, runner, errors, add };
}

test('a runner runs due entries in order, with their arguments', () => {
  const { runner, table, add } = makeRunner();
  const journal = new Journal();
  for (const name of ['a', 'b', 'c']) add(journal.write, name);
  expect(runner.run(Infinity)).toBe(3);
  expect(journal.entries).toEqual(['a', 'b', 'c']);
  expect(table.size).toBe(0);
  expect(runner.run(Infinity)).toBe(0);
});

test('a runner runs at most as many entries as its limit', () => {
  const { runner, due, add } = makeRunner();
  const journal = new Journal();
  for (let i = 0; i < 5; i++) add(journal.write, i);
  expect([runner.run(2), due.size, runner.run(2), runner.run(2)]).toEqual([2, 3, 2, 1]);
  expect(journal.entries).toEqual([0, 1, 2, 3, 4]);
});

test('a runner leaves what falls due during its run', () => {
  const { runner, due, add } = makeRunner();
  const journal = new Journal();
  add(() => add(journal.write, 'later'));
  expect([runner.run(Infinity), due.size]).toEqual([1, 1]);
  expect(journal.entries).toEqual([]);
  expect(runner.run(Infinity)).toBe(1);
});

test('a task is detached and its entry released before it runs', () => {
  const { runner, table, add } = makeRunner();
  const task = new TestTask(5, () =>
    expect([task.pending, task.isCancelled, table.size]).toEqual([false, false, 0]),
  );
  const slot = add(runTask, task);
  const id = table.idOf(slot);
  attach(task, { withdraw: () => undefined }, slot);
  runner.run(Infinity);
  expect([task.runs, table.slotOf(id)]).toEqual([1, NO_SLOT]);
  expect.assertions(2);
});

test('a runner reports an error with its task, and goes on', () => {
  const { runner, errors, add } = makeRunner();
  const journal = new Journal();
  const boom = new Error('boom');
  const fail = (): never => {
    throw boom;
  };
  const task = new TestTask(5, fail);
  add(runTask, task);
  add(fail, 'argument');
  add(journal.write, 'next');
  expect(runner.run(Infinity)).toBe(3);
  expect(errors).toEqual([
    [boom, task],
    [boom, undefined],
  ]);
  expect(journal.entries).toEqual(['next']);
});

test('a run inside a run runs the rest', () => {
  const { runner, due, add } = makeRunner();
  const journal = new Journal();
  add(() => {
    due.lowerFence();
    journal.write(runner.run(Infinity));
  });
  add(journal.write, 'a');
  add(journal.write, 'b');
  expect(runner.run(Infinity)).toBe(1);
  expect(journal.entries).toEqual(['a', 'b', 2]);
  expect(due.isEmpty).toBe(true);
});
