import { describe, expect, test } from 'vitest';
import { DueQueue } from '../../src/timer/timer-task-list.ts';
import { TaskRunner } from '../../src/timer/task-runner.ts';
import { NO_SLOT, TimerTable } from '../../src/timer/timer-table.ts';
import { attach, runTask } from '../../src/timer/timer-task.ts';
import { Journal, TestTask } from './support/tasks.ts';

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

describe('a task runner', () => {
  test('runs what is due, in order, with its argument', () => {
    const { runner, table, add } = makeRunner();
    const journal = new Journal();
    for (const name of ['a', 'b', 'c']) add(journal.write, name);
    expect(runner.run(Infinity)).toBe(3);
    expect(journal.entries).toEqual(['a', 'b', 'c']);
    expect(table.size).toBe(0);
    expect(runner.run(Infinity)).toBe(0);
  });

  test('runs at most so many', () => {
    const { runner, due, add } = makeRunner();
    const journal = new Journal();
    for (let i = 0; i < 5; i++) add(journal.write, i);
    expect([runner.run(2), due.size, runner.run(2), runner.run(2)]).toEqual([2, 3, 2, 1]);
    expect(journal.entries).toEqual([0, 1, 2, 3, 4]);
  });

  test('leaves what falls due meanwhile', () => {
    const { runner, due, add } = makeRunner();
    const journal = new Journal();
    add(() => add(journal.write, 'later'));
    expect([runner.run(Infinity), due.size]).toEqual([1, 1]);
    expect(journal.entries).toEqual([]);
    expect(runner.run(Infinity)).toBe(1);
  });

  test('a task is detached, and its entry given back, before it runs', () => {
    const { runner, table, add } = makeRunner();
    const task = new TestTask(5, () => {
      expect([task.pending, task.isCancelled, table.size]).toEqual([false, false, 0]);
    });
    const slot = add(runTask, task);
    const id = table.idOf(slot);
    attach(task, { withdraw: () => undefined }, slot);
    runner.run(Infinity);
    expect([task.runs, table.slotOf(id)]).toEqual([1, NO_SLOT]);
    expect.assertions(2);
  });

  test('reports what is thrown with the task, and goes on', () => {
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

  test('a run inside a run takes over what is left', () => {
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
});
