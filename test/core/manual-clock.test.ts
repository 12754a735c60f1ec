import { expect, it, vi } from 'vitest';
import { ManualClock, SystemTimer, TimerTask } from 'escapement';
import { ManualClock as FromTesting } from 'escapement/testing';
import { inOwnTurn } from '../../src/core/own-turn.ts';
import { throwing } from '../timer/support/errors.ts';

it('ManualClock is the same class from both subpaths', () => {
  expect(FromTesting).toBe(ManualClock);
});

it('a manual clock starts at 0, or at the given times', () => {
  expect([new ManualClock().now(), new ManualClock().wallNow()]).toEqual([0, 0]);
  const clock = new ManualClock({ nowMs: 12.5, wallMs: 1_700_000_000_000 });
  expect([clock.now(), clock.wallNow()]).toEqual([12.5, 1_700_000_000_000]);
  clock.advance(7.5);
  expect([clock.now(), clock.wallNow()]).toEqual([20, 1_700_000_000_007.5]);
});

it('advance fires the wake-ups that become due, each at its own time, in order', () => {
  const clock = new ManualClock({ nowMs: 100 });
  const fired: [string, number][] = [];
  const arm = (name: string, delayMs: number): void => {
    clock.setTimeout(() => fired.push([name, clock.now()]), delayMs);
  };
  arm('late', 50);
  arm('early', 10);
  arm('beyond', 50.5);
  arm('early too', 10);
  arm('now', 0);
  arm('past', -5);
  clock.advance(50);
  expect(fired).toEqual([
    ['now', 100],
    ['past', 100],
    ['early', 110],
    ['early too', 110],
    ['late', 150],
  ]);
  expect(clock.now()).toBe(150);
  expect(clock.pendingWakeups).toBe(1);
});

it('advance fires wake-ups that are armed meanwhile, if they become due', () => {
  const clock = new ManualClock();
  const firedAt: number[] = [];
  const again = (): void => {
    firedAt.push(clock.now());
    clock.setTimeout(again, 3);
  };
  clock.setTimeout(again, 3);
  clock.advance(10);
  expect(firedAt).toEqual([3, 6, 9]);
  expect(clock.pendingWakeups).toBe(1);
});

it('a manual clock never calls back synchronously, and never after cancel', () => {
  const clock = new ManualClock();
  const callback = vi.fn();
  const timeout = clock.setTimeout(callback, 0);
  timeout.ref();
  timeout.unref();
  expect(callback).not.toHaveBeenCalled();
  timeout.cancel();
  timeout.cancel();
  clock.advance(1);
  expect(callback).not.toHaveBeenCalled();
  expect(clock.pendingWakeups).toBe(0);
});

it('a manual clock does not go back when a callback advances it', () => {
  const clock = new ManualClock();
  clock.setTimeout(() => clock.advance(100), 5);
  const late = vi.fn(() => clock.now());
  clock.setTimeout(late, 50);
  clock.advance(10);
  expect(clock.now()).toBe(105);
  expect(late).toHaveReturnedWith(50 + 0);
});

it('a manual clock stops at a wake-up that throws, and can go on', () => {
  const clock = new ManualClock();
  clock.setTimeout(throwing(new Error('boom')), 5);
  const after = vi.fn();
  clock.setTimeout(after, 7);
  expect(() => clock.advance(10)).toThrow('boom');
  expect(clock.now()).toBe(5);
  clock.advance(5);
  expect(after).toHaveBeenCalledOnce();
});

it.each(['advance', 'advanceAsync'] as const)(
  '%s ends after at most 100 000 runs of a task that adds itself again without a delay, and the task can be cancelled',
  async (method) => {
    const clock = new ManualClock();
    const timer = new SystemTimer({ clock });
    let runs = 0;
    class Again extends TimerTask {
      override run(): void {
        runs++;
        timer.add(this);
      }
    }
    const task = new Again(0);
    timer.add(task);
    const stalled = { name: 'EscapementError', code: 'ERR_CLOCK_STALLED', op: 'ManualClock.advance' };
    await expect((async () => clock[method](1))()).rejects.toMatchObject(stalled);
    expect(runs).toBeGreaterThan(1);
    expect(runs).toBeLessThanOrEqual(100_000);
    const runsBefore = runs;
    expect([task.cancel(), task.pending, clock.now()]).toEqual([true, false, 0]);
    await clock[method](1);
    expect([runs, timer.size, clock.now()]).toEqual([runsBefore, 0, 1]);
  },
);

it.each([NaN, Infinity, -Infinity, -1, 2 ** 53])('ManualClock refuses to advance by %s', (ms) => {
  const clock = new ManualClock({ nowMs: 1 });
  const error = { name: 'RangeError', code: 'ERR_OUT_OF_RANGE' };
  expect(() => clock.advance(ms)).toThrow(expect.objectContaining(error));
  expect(clock.now()).toBe(1);
});

it('a manual clock validates its arguments', async () => {
  const clock = new ManualClock();
  expect(() => clock.setTimeout('x' as never, 1)).toThrow(TypeError);
  expect(() => clock.setTimeout(() => undefined, NaN)).toThrow(RangeError);
  expect(() => new ManualClock({ nowMs: -1 })).toThrow(/nowMs must be at least 0/);
  expect(() => new ManualClock({ nowMs: 2 ** 53 })).toThrow(/nowMs must be at most 9007199254740991 ms/);
  expect(() => new ManualClock({ wallMs: NaN })).toThrow(RangeError);
  await expect(clock.advanceAsync(-1)).rejects.toThrow(RangeError);
  expect(clock.pendingWakeups).toBe(0);
});

it('advanceAsync lets promise jobs settle before the first wake-up and after each', async () => {
  const clock = new ManualClock();
  const timer = new SystemTimer({ clock });
  const log: string[] = [];
  const worker = async (): Promise<void> => {
    await Promise.resolve();
    for (let i = 1; i <= 3; i++) {
      await timer.sleep(10);
      await Promise.resolve().then(() => Promise.resolve());
      log.push(`${i} at ${clock.now()}`);
    }
  };
  const done = worker();
  await clock.advanceAsync(30);
  await done;
  expect(log).toEqual(['1 at 10', '2 at 20', '3 at 30']);
});

it('advanceAsync lets work settle that takes many turns of the event loop, before time moves and before it resolves', async () => {
  const clock = new ManualClock();
  const log: string[] = [];
  const slow = async (name: string): Promise<void> => {
    for (let turn = 0; turn < 20; turn++) {
      for (let hop = 0; hop < 20; hop++) await Promise.resolve();
      await new Promise<void>(inOwnTurn);
    }
    log.push(`${name} at ${clock.now()}`);
  };
  const arm = (name: string, delayMs: number): void => {
    clock.setTimeout(
      () =>
        void slow(name).then(() => clock.setTimeout(() => log.push(`after ${name} at ${clock.now()}`), 20)),
      delayMs,
    );
  };
  arm('first', 10);
  arm('second', 11);
  arm('last', 80);
  await clock.advanceAsync(100);
  expect(log).toEqual([
    'first at 10',
    'second at 11',
    'after first at 30',
    'after second at 31',
    'last at 80',
    'after last at 100',
  ]);
});

it('advanceAsync settles although a test runner fakes all timers of the host', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'setImmediate', 'performance', 'Date'] });
  try {
    const clock = new ManualClock();
    const settled = vi.fn();
    clock.setTimeout(() => {
      inOwnTurn(() => inOwnTurn(settled));
    }, 1);
    await clock.advanceAsync(1);
    expect(settled).toHaveBeenCalledOnce();
  } finally {
    vi.useRealTimers();
  }
});

it('advanceAsync rejects if work is postponed from turn to turn without end', async () => {
  const clock = new ManualClock();
  let isOver = false;
  const again = (): void => {
    if (!isOver) inOwnTurn(again);
  };
  again();
  await expect(clock.advanceAsync(1)).rejects.toMatchObject({ code: 'ERR_CLOCK_STALLED' });
  isOver = true;
  await clock.advanceAsync(1);
  expect(clock.now()).toBe(1);
});
