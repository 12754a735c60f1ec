import { getEventListeners } from 'node:events';
import { ManualClock, SystemTimer, TimerTask } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { expect, test } from 'vitest';
import { RecordingMetrics } from '../metrics/recording-metrics.ts';
import { addTask, TestTask } from '../timer/support/tasks.ts';
import { collect, heldBytes, isCollected } from './collect.ts';

const noop = (): void => undefined;

/** What a test process moves by on its own: 8 bytes per cycle, so that any object that is left exceeds it. */
const SLACK_BYTES = 1_000_000;

test.each(['tasks', 'callbacks', 'reschedules', 'moves', 'sleeps'])(
  'after 125 000 adds and cancels the heap is back where it was: %s',
  async (what) => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock });
    const other = new SystemTimer({ clock });
    const waiting = timer.schedule(1e9, noop);
    const moved = new TestTask(1e9);
    const cycle = (i: number): void => {
      const delayMs = (i * 7_919) % 30_000;
      if (what === 'tasks') {
        const task = addTask(timer, delayMs);
        task.cancel();
      } else if (what === 'callbacks') timer.cancel(timer.schedule(delayMs, noop, { i }));
      else if (what === 'reschedules') timer.reschedule(waiting, delayMs);
      else if (what === 'moves') (i % 2 === 0 ? timer : other).add(moved);
      else {
        const controller = new AbortController();
        timer.sleep(delayMs, undefined, { signal: controller.signal }).catch(noop);
        controller.abort();
      }
      clock.advance(0.01);
    };
    const cycles = what === 'sleeps' ? 20_000 : 125_000;
    // The host's queue of promise jobs grows to the most it ever held, and stays: that is not ours.
    for (let i = 0; i < (what === 'sleeps' ? cycles : cycles / 10); i++) cycle(i);
    const before = await heldBytes();
    for (let i = 0; i < cycles; i++) cycle(i);
    const grownBy = (await heldBytes()) - before;
    expect(grownBy).toBeLessThan(SLACK_BYTES);
    expect(timer.size + other.size).toBeLessThanOrEqual(2);
    checkTimer(timer);
  },
);

/** Something that is big enough to matter, and that the test can watch being collected. */
class Payload {
  readonly bytes = new Array<number>(100).fill(0);
}

type End = (timer: SystemTimer, clock: ManualClock) => void;

const ENDS: Record<string, End> = {
  'it ran': (_, clock) => clock.advance(50),
  'it was cancelled': noop,
  'the timer was closed': (timer) => timer.close(),
  'it ran in close': (timer) => timer.close({ pending: 'run' }),
};

const NEIGHBOURS = ['one callback', 'many callbacks', 'nothing'];

/** Adds a task, a callback and a closure that hold payloads, and makes an end of them. */
function addAndEnd(timer: SystemTimer, clock: ManualClock, name: string): WeakRef<Payload>[] {
  const [inTask, inArgument] = [new Payload(), new Payload()];
  const [inClosure, inError] = [new Payload(), new Payload()];
  const task = addTask(timer, 10, () => inTask.bytes.length);
  const ids = [
    timer.schedule(10, noop, inArgument as unknown as undefined),
    timer.schedule(10, () => inClosure.bytes.length),
    timer.schedule(10, () => {
      throw new Error(String(inError.bytes.length));
    }),
  ];
  if (name === 'it was cancelled') {
    task.cancel();
    for (const id of ids) timer.cancel(id);
  }
  ENDS[name]?.(timer, clock);
  return [inTask, inArgument, inClosure, inError].map((payload) => new WeakRef(payload));
}

test.each(Object.keys(ENDS).flatMap((name) => NEIGHBOURS.map((neighbours) => [name, neighbours] as const)))(
  'a task is held by nothing once %s, although %s still waits on the same page',
  async (name, neighbours) => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock, onError: noop });
    const tasks = Array.from({ length: 20 }, () => new TestTask(1e6));
    if (neighbours === 'one callback') for (const task of tasks) timer.add(task);
    if (neighbours === 'many callbacks') {
      for (let i = 0; i < 20; i++) timer.schedule(1e6, () => i);
    }
    expect(await isCollected(...addAndEnd(timer, clock, name))).toBe(true);
    expect(timer.size).toBe(neighbours === 'nothing' || name.includes('close') ? 0 : 20);
  },
);

test('a callback is held by nothing once it ran, although the page had run something before', async () => {
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock });
  timer.schedule(0, noop);
  clock.advance(0);
  const closures = [1, 2].map(() => {
    const payload = new Payload();
    timer.schedule(10, () => payload.bytes.length);
    return new WeakRef(payload);
  });
  clock.advance(20);
  expect(timer.size).toBe(0);
  timer.schedule(1e6, noop);
  expect(await isCollected(...closures)).toBe(true);
});

test('a callback is held by nothing once it ran, although its page was taken by others while a task ran', async () => {
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock });
  let payloads: WeakRef<Payload>[] = [];
  const addTwo = (): void => {
    payloads = [1, 2].map(() => {
      const payload = new Payload();
      timer.schedule(10, () => payload.bytes.length);
      return new WeakRef(payload);
    });
  };
  timer.schedule(0, addTwo);
  clock.advance(0);
  clock.advance(20);
  expect(timer.size).toBe(0);
  expect(await isCollected(...payloads)).toBe(true);
});

test('a task that was moved to another timer does not hold the first one', async () => {
  const clock = new ManualClock();
  const to = new SystemTimer({ clock });
  const task = new TestTask(10);
  const addAndMove = (): WeakRef<SystemTimer> => {
    const from = new SystemTimer({ clock });
    from.add(task);
    to.add(task);
    return new WeakRef(from);
  };
  expect(await isCollected(addAndMove())).toBe(true);
  expect(task.pending).toBe(true);
});

test('a sleep that is over holds neither its value nor a listener of its signal', async () => {
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock });
  const controller = new AbortController();
  const { signal } = controller;
  const sleepAll = async (): Promise<WeakRef<Payload>[]> => {
    const values = [new Payload(), new Payload()] as const;
    const sleep = timer.sleep(5, values[0], { signal });
    timer.sleep(1e6, values[1], { signal }).catch(noop);
    clock.advance(5);
    await sleep;
    return values.map((value) => new WeakRef(value));
  };
  const [slept, sleeping] = await sleepAll();
  await collect();
  expect(slept?.deref()).toBeUndefined();
  expect(sleeping?.deref()).toBeDefined();
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  timer.close();
  await collect();
  expect(sleeping?.deref()).toBeUndefined();
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

test.each(['drop', 'run'] as const)(
  'a timer is collectable once it is closed with %s, whatever waited',
  async (pending) => {
    const metrics = new RecordingMetrics();
    const clock = new ManualClock();
    const tasks: TimerTask[] = [];
    const addAndClose = (): WeakRef<SystemTimer> => {
      const timer = new SystemTimer({ clock, metrics });
      for (let i = 0; i < 10_000; i++) timer.schedule(i, noop);
      for (let i = 0; i < 10; i++) tasks.push(addTask(timer, i));
      void timer.sleep(5).catch(noop);
      void timer.advanceClock(1_000);
      timer.close({ pending });
      return new WeakRef(timer);
    };
    expect(await isCollected(addAndClose())).toBe(true);
    expect([metrics.readers.size, clock.pendingWakeups, tasks.length]).toEqual([0, 0, 10]);
  },
);

test('an idle timer that nothing refers to is collectable without close', async () => {
  const clock = new ManualClock();
  const useAndForget = (): WeakRef<SystemTimer> => {
    const timer = new SystemTimer({ clock });
    addTask(timer, 5);
    timer.cancel(timer.schedule(50, noop));
    clock.advance(10);
    return new WeakRef(timer);
  };
  expect(await isCollected(useAndForget())).toBe(true);
});

test('a timer is not collectable while something waits in it', async () => {
  const clock = new ManualClock();
  const task = new TestTask(5);
  const addAndForget = (): WeakRef<SystemTimer> => {
    const timer = new SystemTimer({ clock });
    timer.add(task);
    return new WeakRef(timer);
  };
  const timer = addAndForget();
  await collect();
  clock.advance(5);
  expect(task.runs).toBe(1);
  expect(await isCollected(timer)).toBe(true);
});
