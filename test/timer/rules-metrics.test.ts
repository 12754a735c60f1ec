import { describe, expect, test, vi } from 'vitest';
import { ManualClock, SystemTimer, type MetricsProvider } from 'escapement';
import { checkTimer } from 'escapement/testing';
import { noopMetrics } from '../metrics/measured.ts';

const reported = vi.hoisted(() => [] as unknown[]);
vi.mock('../../src/core/report-uncaught.ts', () => ({
  reportUncaught: (error: unknown) => reported.push(error),
}));

/** Calls `use` whenever something is counted. */
const counting = (use: (name: string) => void): MetricsProvider => ({
  ...noopMetrics,
  counter: (name) => ({
    inc: () => {
      use(name);
    },
  }),
});

describe('a provider of metrics that', () => {
  test('throws stops nothing; what it throws is an uncaught exception', () => {
    reported.length = 0;
    const mine = new Error('mine');
    const clock = new ManualClock();
    const ran: string[] = [];
    const metrics = {
      ...counting(() => {
        throw mine;
      }),
      observableGauge: () => ({
        remove: () => {
          throw mine;
        },
      }),
    };
    const timer = new SystemTimer({ clock, metrics, maxTasksPerTurn: 1 });
    for (const name of ['a', 'b', 'c']) timer.schedule(10, (each) => ran.push(each), name);
    timer.schedule(20, (each) => ran.push(each), 'd');
    clock.advance(10);
    expect(ran).toEqual(['a', 'b', 'c']);
    checkTimer(timer);
    clock.advance(9);
    timer.schedule(0, (each) => ran.push(each), 'e');
    expect(timer.poll()).toBe(1);
    clock.advance(1);
    expect(timer.close()).toEqual([]);
    expect([ran.join(''), new Set(reported)]).toEqual(['abced', new Set([mine])]);
  });

  test('uses the timer finds it in order', () => {
    const clock = new ManualClock();
    const ran: string[] = [];
    const counted: string[] = [];
    const timer: SystemTimer = new SystemTimer({
      clock,
      metrics: counting((name) => {
        counted.push(name);
        checkTimer(timer);
        if (counted.length === 1) timer.schedule(0, (each) => ran.push(each), 'from metrics');
        if (counted.length === 2) expect(timer.poll()).toBe(1);
      }),
    });
    timer.schedule(10, (each) => ran.push(each), 'a');
    clock.advance(10);
    checkTimer(timer);
    expect(ran).toEqual(['a', 'from metrics']);
    expect(counted).toEqual(['timer_tasks_run_total', 'timer_wakeups_total', 'timer_tasks_run_total']);
  });

  test('closes the timer while it is counted leaves nothing armed', () => {
    const clock = new ManualClock();
    const timer: SystemTimer = new SystemTimer({
      clock,
      metrics: counting(() => {
        timer.close();
      }),
    });
    for (const delayMs of [10, 20]) timer.schedule(delayMs, () => undefined, undefined);
    clock.advance(10);
    checkTimer(timer);
    expect([timer.size, clock.pendingWakeups]).toEqual([0, 0]);
  });
});
