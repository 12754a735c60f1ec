import { ManualClock, SystemTimer } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, test, vi } from 'vitest';
import { HandClock } from './support/hand-clock.ts';
import { throwing } from './support/errors.ts';
import { addTask, TestTask } from './support/tasks.ts';
import { handTimer, manualTimer } from './support/timers.ts';

const boom = new Error('no room');

/** A timer whose executor keeps its turns in `runs` until the test runs them. */
function laterTimer(options: { autoStart?: boolean } = {}) {
  const runs: (() => void)[] = [];
  const opened = handTimer({ ...options, executor: (run) => runs.push(run) });
  return { runs, runNext: () => runs.shift()?.(), ...opened };
}

test('an executor is not called while nothing is due', () => {
  let asked = 0;
  const { clock, timer } = manualTimer({
    executor: (run) => {
      asked++;
      run();
    },
  });
  addTask(timer, 1_000);
  timer.poll();
  clock.advance(999);
  expect(asked).toBe(0);
  clock.advance(1);
  expect(asked).toBe(1);
});

test('due tasks stay pending until the executor runs its turn, and count in size', () => {
  const { clock, timer, journal, runs, runNext } = laterTimer();
  journal.add(timer, 5, 'a');
  journal.add(timer, 5, 'b');
  clock.nowMs = 5;
  expect(timer.poll()).toBe(0);
  expect([timer.size, runs.length, journal.entries.length]).toEqual([2, 1, 0]);
  expect(clock.pendingWakeups).toBe(0);
  runNext();
  expect(journal.entries).toEqual(['a', 'b']);
  expect([timer.size, clock.pendingWakeups]).toEqual([0, 0]);
});

test('what an executor has taken on does not count as falling due again', async () => {
  const { timer, runs } = laterTimer({ autoStart: false });
  addTask(timer, 0);
  expect(await timer.advanceClock(0)).toBe(true);
  expect(await timer.advanceClock(0)).toBe(false);
  expect(runs).toHaveLength(1);
});

test.each<[how: string, executor: () => unknown]>([
  ['throws', throwing(boom)],
  ['rejects', () => Promise.resolve().then(() => Promise.reject(boom))],
])('tasks run although the executor %s, and its error goes to onError', async (_, executor) => {
  const errors: unknown[] = [];
  const onError = (...args: unknown[]): unknown => errors.push(args);
  const { clock, timer } = manualTimer({ executor, onError });
  const task = addTask(timer, 1);
  await clock.advanceAsync(1);
  expect([task.runs, errors]).toEqual([1, [[boom, undefined]]]);
  timer.add(task);
  await clock.advanceAsync(1);
  expect(task.runs).toBe(2);
});

test.each<[how: string, executor: (run: () => void) => unknown]>([
  [
    'throws',
    (run) => {
      run();
      throw boom;
    },
  ],
  [
    'rejects',
    async (run) => {
      run();
      await Promise.resolve();
      throw boom;
    },
  ],
])('tasks do not run twice when the executor %s after it has run them', async (_, executor) => {
  const errors: unknown[] = [];
  const { clock, timer } = manualTimer({ executor, onError: (error) => errors.push(error) });
  const task = addTask(timer, 1, (self) => self.runs === 1 && timer.add(self));
  await clock.advanceAsync(1);
  expect([task.runs, timer.size, errors]).toEqual([1, 1, [boom]]);
});

test('a second run of a turn, much later, runs no task twice and loses none', () => {
  const { clock, timer, journal, runs, runNext } = laterTimer();
  journal.add(timer, 1, 'a');
  clock.runTo(1);
  const [stale] = runs;
  runNext();
  journal.add(timer, 1, 'b');
  stale?.();
  expect(journal.entries).toEqual(['a']);
  clock.runTo(2);
  stale?.();
  runNext();
  stale?.();
  expect(journal.entries).toEqual(['a', 'b']);
  expect([timer.size, clock.pendingWakeups]).toEqual([0, 0]);
  checkTimer(timer);
});

test('a turn that the executor runs inside a task is nested and runs nothing', () => {
  const { clock, timer, journal, runs, runNext } = laterTimer();
  journal.add(timer, 1, 'a', () => {
    run?.();
    journal.write('after run');
  });
  journal.add(timer, 1, 'b');
  clock.runTo(1);
  const [run] = runs;
  runNext();
  expect(journal.entries).toEqual(['a', 'after run', 'b']);
});

test('an executor may close the timer', () => {
  const clock = new HandClock();
  const task = new TestTask(1);
  const timer: SystemTimer = new SystemTimer({
    clock,
    executor: (run) => {
      timer.close();
      run();
    },
  });
  timer.add(task);
  clock.runTo(1);
  expect([task.runs, timer.size, clock.pendingWakeups]).toEqual([0, 0, 0]);
});

test('an executor may poll the timer', () => {
  const clock = new HandClock();
  const task = new TestTask(1);
  const timer: SystemTimer = new SystemTimer({
    clock,
    executor: (run) => {
      expect(timer.poll()).toBe(0);
      run();
    },
  });
  timer.add(task);
  clock.runTo(1);
  expect(task.runs).toBe(1);
});

const store = new AsyncLocalStorage<string>();

function makeTimer(asyncContext: boolean) {
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock, asyncContext });
  const seen: (string | undefined)[] = [];
  const look = (): unknown => seen.push(store.getStore());
  return { clock, timer, seen, look };
}

test('a task and a callback run in the async context of the call that added them', () => {
  const { clock, timer, seen, look } = makeTimer(true);
  store.run('task', () => timer.add(new TestTask(10, look)));
  store.run('callback', () => timer.schedule(20, look));
  store.run('deadline', () => timer.scheduleAt(25, look));
  addTask(timer, 30, look);
  checkTimer(timer);
  store.run('the one who advances', () => clock.advance(30));
  expect(seen).toEqual(['task', 'callback', 'deadline', undefined]);
  expect(store.getStore()).toBeUndefined();
});

test('a task that is added again runs in the later context, and a rescheduled callback in its first', () => {
  const { clock, timer, seen, look } = makeTimer(true);
  const task = new TestTask(10, look);
  store.run('first', () => timer.add(task));
  const id = store.run('scheduled', () => timer.schedule(10, look));
  store.run('second', () => {
    timer.add(task);
    timer.reschedule(id, 20);
  });
  clock.advance(20);
  expect(seen).toEqual(['second', 'scheduled']);
});

test('a pending task that is added again with a wrong clock runs in the context of its first add', () => {
  const { clock, timer, seen, look } = makeTimer(true);
  const task = new TestTask(10, look);
  store.run('first', () => timer.add(task));
  const now = vi.spyOn(clock, 'now').mockReturnValue(Number.NaN);
  expect(() => {
    store.run('second', () => timer.add(task));
  }).toThrow(expect.objectContaining({ code: 'ERR_CLOCK_INVALID' }));
  now.mockRestore();
  clock.advance(10);
  expect(seen).toEqual(['first']);
});

test('a task keeps no context once it has run, and works in a timer without asyncContext', () => {
  const { clock, timer, seen, look } = makeTimer(true);
  const plain = new SystemTimer({ clock });
  const task = new TestTask(10, look);
  store.run('first', () => timer.add(task));
  clock.advance(10);
  store.run('second', () => {
    timer.add(task);
    plain.add(task);
  });
  clock.advance(10);
  expect(seen).toEqual(['first', undefined]);
});

test('with asyncContext an error goes to onError with its task, and close returns the tasks', () => {
  const errors: unknown[] = [];
  const { clock, timer } = manualTimer({
    asyncContext: true,
    onError: (...args) => errors.push(args),
  });
  const failing = new TestTask(5, throwing(boom));
  const waiting = new TestTask(50);
  timer.add(failing);
  timer.add(waiting);
  timer.schedule(60, () => undefined);
  clock.advance(5);
  expect(errors).toEqual([[boom, failing]]);
  checkTimer(timer);
  expect(timer.close()).toEqual([waiting]);
  expect(waiting.pending).toBe(false);
});

test('without asyncContext tasks run in the context of the wake-up', () => {
  const { clock, timer, seen, look } = makeTimer(false);
  store.run('task', () => timer.add(new TestTask(10, look)));
  clock.advance(10);
  expect(seen).toEqual([undefined]);
});
