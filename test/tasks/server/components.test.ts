import { SystemTimer } from 'escapement';
import { ManualClock } from 'escapement/testing';
import { describe, expect, it, vi } from 'vitest';

import { Latch } from '../../../src/tasks/server/processor.ts';
import { Periodic } from '../../../src/tasks/periodic.ts';
import { RunTable } from '../../../src/tasks/server/run.ts';
import { settledWithin } from '../../../src/tasks/settled-within.ts';
import type { TaskRun } from '../../../src/tasks/server/run.ts';

const clock = new ManualClock();
const timer = new SystemTimer({ clock });

describe('a latch', () => {
  it('a latch keeps one wake-up that comes before the wait', async () => {
    const latch = new Latch(timer);
    latch.wake();
    latch.wake();
    await latch.wait();
    const done = vi.fn();
    void latch.wait(50).then(done);
    await clock.advanceAsync(49);
    expect(done).not.toHaveBeenCalled();
    await clock.advanceAsync(1);
    expect(done).toHaveBeenCalled();
  });

  it('a latch that is woken leaves no timer', async () => {
    const latch = new Latch(timer);
    const waited = latch.wait(1e6);
    expect(timer.size).toBe(1);
    latch.wake();
    await waited;
    expect(timer.size).toBe(0);
  });
});

describe('a periodic job', () => {
  it('a periodic job never runs twice at once, and once more after a trigger during a run', async () => {
    const ends: (() => void)[] = [];
    const job = (): Promise<void> => new Promise((resolve) => ends.push(resolve));
    const periodic = new Periodic({ intervalMs: 100, run: job, failed: () => undefined }, timer);
    periodic.start();
    await clock.advanceAsync(100);
    void periodic.trigger();
    void periodic.trigger();
    expect(ends).toHaveLength(1);
    ends[0]?.();
    await clock.advanceAsync(0);
    expect(ends).toHaveLength(2);
    ends[1]?.();
    await clock.advanceAsync(99);
    expect(ends).toHaveLength(2);
    await clock.advanceAsync(1);
    expect(ends).toHaveLength(3);
    const shutDown = vi.fn();
    void periodic.stop().then(shutDown);
    await clock.advanceAsync(1_000);
    expect(shutDown).not.toHaveBeenCalled();
    ends[2]?.();
    await clock.advanceAsync(1_000);
    expect(shutDown).toHaveBeenCalled();
    void periodic.trigger();
    expect([ends.length, timer.size]).toEqual([3, 0]);
  });
});

describe('settledWithin', () => {
  it.each([
    ['resolves', () => timer.sleep(10), true],
    ['rejects', () => timer.sleep(10).then(() => Promise.reject(new Error('x'))), true],
    ['takes too long', () => timer.sleep(500), false],
  ])('settledWithin returns whether a promise settles in time if it %s', async (_what, make, isSettled) => {
    const waited = settledWithin(timer, 100, make());
    await clock.advanceAsync(100);
    expect(await waited).toBe(isSettled);
    await clock.advanceAsync(500);
    expect(timer.size).toBe(0);
  });
});

describe('the table of runs', () => {
  it('slots of the table of runs are used again, and a run is removed only once', () => {
    const latch = { wake: vi.fn() };
    const table = new RunTable(2, latch);
    const [a, b, c] = [{ slot: -1 }, { slot: -1 }, { slot: -1 }] as unknown as [TaskRun, TaskRun, TaskRun];
    table.add(a);
    table.add(b);
    expect([table.capacityLeft, table.size]).toEqual([0, 2]);
    table.remove(a);
    table.remove(a);
    expect([table.capacityLeft, table.list(), latch.wake.mock.calls.length]).toEqual([1, [b], 1]);
    table.add(c);
    table.remove(a);
    expect([c.slot, table.list()]).toEqual([0, [c, b]]);
  });
});
