import { AsyncLocalStorage } from 'node:async_hooks';
import { ManualClock, SystemTimer } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { TestTask } from './support/tasks.ts';

const store = new AsyncLocalStorage<string>();

function makeTimer(asyncContext: boolean, onError?: () => void) {
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock, asyncContext, ...(onError === undefined ? {} : { onError }) });
  const seen: (string | undefined)[] = [];
  const look = (): void => {
    seen.push(store.getStore());
  };
  return { clock, timer, seen, look };
}

describe('with asyncContext', () => {
  test('a task and a callback run in the context of the call that added them', () => {
    const { clock, timer, seen, look } = makeTimer(true);
    store.run('task', () => {
      timer.add(new TestTask(10, look));
    });
    store.run('callback', () => timer.schedule(20, look, undefined));
    timer.add(new TestTask(30, look));
    checkTimer(timer);
    store.run('the one who advances', () => {
      clock.advance(30);
    });
    expect(seen).toEqual(['task', 'callback', undefined]);
    expect(store.getStore()).toBeUndefined();
  });

  test('a task that is added again runs in the later context; one that is rescheduled in its first', () => {
    const { clock, timer, seen, look } = makeTimer(true);
    const task = new TestTask(10, look);
    store.run('first', () => {
      timer.add(task);
    });
    const id = store.run('scheduled', () => timer.schedule(10, look, undefined));
    store.run('second', () => {
      timer.add(task);
      timer.reschedule(id, 20);
    });
    clock.advance(20);
    expect(seen).toEqual(['second', 'scheduled']);
  });

  test('a task keeps nothing once it has run, and goes on in a timer without', () => {
    const { clock, timer, seen, look } = makeTimer(true);
    const plain = new SystemTimer({ clock });
    const task = new TestTask(10, look);
    store.run('first', () => {
      timer.add(task);
    });
    clock.advance(10);
    store.run('second', () => {
      timer.add(task);
      plain.add(task);
    });
    clock.advance(10);
    expect(seen).toEqual(['first', undefined]);
  });

  test('an error still goes to onError with its task, and close still returns the tasks', () => {
    const errors: unknown[] = [];
    const clock = new ManualClock();
    const timer = new SystemTimer({
      clock,
      asyncContext: true,
      onError: (error, task) => errors.push([(error as Error).message, task]),
    });
    const failing = new TestTask(5, () => {
      throw new Error('boom');
    });
    const waiting = new TestTask(50);
    timer.add(failing);
    timer.add(waiting);
    timer.schedule(60, () => undefined, undefined);
    clock.advance(5);
    expect(errors).toEqual([['boom', failing]]);
    checkTimer(timer);
    expect(timer.close()).toEqual([waiting]);
    expect(waiting.pending).toBe(false);
  });
});

test('without it they run in the context of the wake-up', () => {
  const { clock, timer, seen, look } = makeTimer(false);
  store.run('task', () => {
    timer.add(new TestTask(10, look));
  });
  clock.advance(10);
  expect(seen).toEqual([undefined]);
});
