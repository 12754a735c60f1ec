import { ManualClock, SystemTimer, TimerTask } from 'escapement';
import { describe, expect, test } from 'vitest';
import { attach, detach, entryIn, isTimerTask, type TaskOwner } from '../../src/timer/timer-task.ts';
import { TestTask } from './support/tasks.ts';

class Owner implements TaskOwner {
  readonly withdrawn: number[] = [];

  withdraw(entry: number): void {
    this.withdrawn.push(entry);
  }
}

describe('a task', () => {
  test('keeps its delay', () => {
    for (const delayMs of [0, -5, 1.5, Number.MAX_VALUE]) expect(new TestTask(delayMs).delayMs).toBe(delayMs);
  });

  test('waits nowhere at first', () => {
    const task = new TestTask(5);
    expect([task.pending, task.isCancelled, task.cancel()]).toEqual([false, false, false]);
    expect(entryIn(task, new Owner())).toBeUndefined();
  });

  test('waits where it was attached, and only there', () => {
    const task = new TestTask(5);
    const [one, two] = [new Owner(), new Owner()];
    attach(task, one, 7);
    expect([task.pending, entryIn(task, one), entryIn(task, two)]).toEqual([true, 7, undefined]);
    attach(task, two, 9);
    expect(one.withdrawn).toEqual([7]);
    expect([entryIn(task, one), entryIn(task, two)]).toEqual([undefined, 9]);
  });

  test('cancel withdraws it once', () => {
    const task = new TestTask(5);
    const owner = new Owner();
    attach(task, owner, 7);
    expect([task.cancel(), task.cancel()]).toEqual([true, false]);
    expect(owner.withdrawn).toEqual([7]);
    expect([task.pending, task.isCancelled]).toEqual([false, true]);
    attach(task, owner, 8);
    expect([task.pending, task.isCancelled]).toEqual([true, false]);
  });

  test('detached it does not wait, and was not cancelled', () => {
    const task = new TestTask(5);
    const owner = new Owner();
    attach(task, owner, 7);
    detach(task);
    expect([task.pending, task.isCancelled, owner.withdrawn.length]).toEqual([false, false, 0]);
  });

  test('it is not pending any more when home hears of it', () => {
    const task = new TestTask(5);
    let wasPending: boolean | undefined;
    attach(task, { withdraw: () => (wasPending = task.pending) }, 7);
    task.cancel();
    expect(wasPending).toBe(false);
  });
});

describe('isTimerTask', () => {
  test('knows tasks, also of another loaded copy of the package', () => {
    const foreign = { _entry: -1, _entryOwner: undefined, delayMs: 5, run: () => undefined };
    expect([new TestTask(1), foreign].map(isTimerTask)).toEqual([true, true]);
    expect([undefined, null, 5, 'task', {}, () => undefined].map(isTimerTask)).toEqual(
      Array.from({ length: 6 }, () => false),
    );
  });
});

test('a subclass may use names like the ones a task uses for itself', () => {
  class Order extends TimerTask {
    readonly entry = 'my entry';
    readonly home = 'my home';
    readonly timer = 'my timer';
    runs = 0;
    override run(): void {
      this.runs++;
    }
  }
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock });
  const order = new Order(5);
  timer.add(order);
  timer.add(order);
  clock.advance(5);
  expect([order.runs, order.entry, order.home, order.timer]).toEqual([1, 'my entry', 'my home', 'my timer']);
});
