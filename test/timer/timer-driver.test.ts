import { SystemTimer } from 'escapement';
import { describe, expect, test } from 'vitest';
import { TaskRunner } from '../../src/timer/task-runner.ts';
import { TimerDriver } from '../../src/timer/timer-driver.ts';
import { TimerWheels } from '../../src/timer/timer-wheels.ts';
import { HandClock } from './support/hand-clock.ts';
import { TestTask } from './support/tasks.ts';

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

describe('the driver', () => {
  test('is armed for the earliest list, whatever enters, moves or leaves', () => {
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
    expect([driver.wakeup.deadlineMs, clock.armed, clock.mostArmed]).toEqual([Infinity, 0, 1]);
  });

  test('leaves the wake-up alone when what comes or goes is later', () => {
    const { clock, driver, enter } = makeDriver();
    enter(3);
    const calls = clock.delaysMs.length;
    const later = enter(5);
    enter(7);
    driver.move(later, 6);
    driver.withdraw(later);
    expect(clock.delaysMs).toHaveLength(calls);
  });

  test('reads the clock once per operation', () => {
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

  test('paused, it looks once at the end', () => {
    const { clock, driver, enter } = makeDriver();
    driver.enter(
      () => {
        for (const delayMs of [5, 4, 3]) enter(delayMs);
        expect([clock.armed, driver.isArming]).toEqual([0, false]);
      },
      undefined,
      0,
    );
    clock.fire();
    clock.delaysMs.shift();
    expect([clock.delaysMs, driver.wakeup.deadlineMs, driver.isArming]).toEqual([[3], 3, true]);
  });

  test('while an executor has what is due, only buckets wake it', () => {
    const { driver, runner, enter } = makeDriver(true, () => undefined);
    enter(0);
    enter(5);
    expect(driver.wakeup.deadlineMs).toBe(0);
    driver.pump(Infinity);
    expect([driver.wakeup.deadlineMs, runner.isHandedOver, driver.isArming]).toEqual([5, true, false]);
  });

  test('without autoStart it is armed only while somebody waits', async () => {
    const { clock, driver, enter } = makeDriver(false);
    enter(5);
    expect(clock.armed).toBe(0);
    const wait = driver.wait(3);
    expect(driver.wakeup.deadlineMs).toBe(3);
    clock.nowMs = 5;
    driver.pump(Infinity);
    expect([clock.armed, await wait]).toEqual([0, true]);
  });

  test('closed, it wakes nobody and answers who waits', async () => {
    const { clock, runner, driver, enter } = makeDriver();
    const slot = enter(5);
    const wait = driver.wait(100);
    driver.close();
    driver.withdraw(slot);
    expect([runner.isStopped, driver.isArming, clock.armed, await wait]).toEqual([true, false, 0, false]);
  });
});

describe('ref and unref', () => {
  test('a timer holds the process by default', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    expect(timer.hasRef()).toBe(true);
    timer.add(new TestTask(5));
    expect(clock.refs).toEqual([]);
  });

  test('they reach the armed wake-up, and every later one', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    timer.add(new TestTask(50));
    timer.unref();
    expect([timer.hasRef(), clock.refs]).toEqual([false, ['unref']]);
    timer.add(new TestTask(5));
    expect(clock.refs).toEqual(['unref', 'unref']);
    timer.ref();
    expect([timer.hasRef(), clock.refs]).toEqual([true, ['unref', 'unref', 'ref']]);
    timer.add(new TestTask(1));
    expect(clock.refs).toHaveLength(3);
  });

  test('also one that is armed again because it came early', () => {
    const clock = new HandClock();
    const timer = new SystemTimer({ clock });
    timer.unref();
    timer.add(new TestTask(50));
    clock.fire();
    expect(clock.refs).toEqual(['unref', 'unref']);
  });
});
