import { describe, expect, test } from 'vitest';
import { TaskRunner } from '../../src/timer/task-runner.ts';
import { TimerDriver } from '../../src/timer/timer-driver.ts';
import { TimerWheels } from '../../src/timer/timer-wheels.ts';
import { HandClock } from './support/hand-clock.ts';

function makeUndrivenTimer() {
  const clock = new HandClock();
  const wheels = new TimerWheels(1, 8, 0, 'up');
  const runner = new TaskRunner(wheels, { onError: undefined, executor: undefined });
  const driver = new TimerDriver(wheels, runner, { clock, autoStart: false, maxTasksPerTurn: Infinity });
  return { clock, driver };
}

describe('the callers of advanceClock', () => {
  test('no wake-up is armed while no call is pending', () => {
    const { clock, driver } = makeUndrivenTimer();
    driver.enter(() => undefined, undefined, 5);
    driver.pump(Infinity);
    expect([clock.armed, driver.wakeup.deadlineMs]).toEqual([0, Infinity]);
  });

  test('every pending call resolves true when a bucket falls due', async () => {
    const { clock, driver } = makeUndrivenTimer();
    const answers = [driver.wait(50), driver.wait(20), driver.wait(Infinity)];
    expect(driver.wakeup.deadlineMs).toBe(20);
    driver.enter(() => undefined, undefined, 0);
    clock.fire();
    expect([clock.armed, driver.wakeup.deadlineMs]).toEqual([0, Infinity]);
    expect(await Promise.all(answers)).toEqual([true, true, true]);
  });

  test('a call whose timeout is over resolves false, and the others stay pending', async () => {
    const { clock, driver } = makeUndrivenTimer();
    const answers = [driver.wait(50), driver.wait(20), driver.wait(20.5)];
    clock.nowMs = 19.9;
    clock.fire();
    expect(driver.wakeup.deadlineMs).toBe(20);
    clock.nowMs = 20;
    clock.fire();
    expect(await answers[1]).toBe(false);
    expect(driver.wakeup.deadlineMs).toBe(20.5);
    clock.nowMs = 100;
    clock.fire();
    expect([await answers[0], await answers[2], clock.armed]).toEqual([false, false, 0]);
  });

  test('a caller that waits again when it is resolved has a new deadline', async () => {
    const { clock, driver } = makeUndrivenTimer();
    const again = driver.wait(10).then(() => driver.wait(20));
    clock.nowMs = 10;
    clock.fire();
    await Promise.resolve();
    expect(driver.wakeup.deadlineMs).toBe(30);
    driver.close();
    expect(await again).toBe(false);
  });
});
