import { EmbeddedBroker, Scheduler, Task, type TaskInfo } from 'escapement/tasks';
import { ManualClock } from 'escapement';
import { describe, expect } from 'vitest';
import { DAY_MS, it, MINUTE_MS, type Told } from './scheduler-world.ts';

function enqueuedBy(...told: readonly Told[]): string[] {
  return told.flatMap(({ lines }) => lines.filter((line) => line.includes('enqueued'))).sort();
}

describe('two schedulers on one broker', () => {
  it('no tick is late when one scheduler stops or starts', async ({ world }) => {
    const first = world.scheduler();
    const second = world.scheduler();
    for (const { scheduler } of [first, second]) {
      scheduler.register('@every 1m', new Task('t'));
      await scheduler.start();
    }
    await world.clock.advanceAsync(2.5 * MINUTE_MS);
    await first.scheduler.shutdown();
    await world.clock.advanceAsync(2 * MINUTE_MS);
    const third = world.scheduler();
    third.scheduler.register('@every 1m', new Task('t'));
    await third.scheduler.start();
    await world.clock.advanceAsync(2 * MINUTE_MS);
    expect(enqueuedBy(first, second, third)).toEqual(
      [1, 2, 3, 4, 5, 6].map((minute) => `00:0${minute} enqueued 00:0${minute}`),
    );
  });

  it('two schedulers enqueue every tick of a month exactly once', async () => {
    // November 2026, in which New York puts its clocks back, on the 1st.
    const clock = new ManualClock({ wallMs: Date.parse('2026-11-01T00:00:00Z') });
    await using broker = await EmbeddedBroker.open({ clock });
    const counts = new Map<string, number>();
    const ids = new Set<string>();
    const schedules: Readonly<Record<string, number>> = {
      '*/5 * * * *': 30 * 24 * 12 - 1, // but for the tick it is started at
      '@every 1h30m': 30 * 16 - 1,
      '@hourly': 30 * 24 - 1,
      '@daily': 29,
      '@weekly': 4, // the 8th, 15th, 22nd, 29th
      '@monthly': 0,
      '0 9 * * mon-fri': 21,
      '0 0 13 * fri': 4, // the 6th, 13th (a Friday), 20th, 27th
      '30 12 31 * *': 0,
      'TZ=America/New_York 30 1 * * *': 30, // its first one is there twice
      'TZ=America/New_York 30 * * * *': 30 * 24,
      'CRON_TZ=Pacific/Auckland 0 0 1 * *': 1,
    };
    const schedulers = [new Scheduler({ broker }), new Scheduler({ broker })];
    for (const scheduler of schedulers) {
      for (const spec of Object.keys(schedules)) scheduler.register(spec, new Task(spec));
      scheduler.on('enqueued', ({ id, type }: TaskInfo) => {
        counts.set(type, (counts.get(type) ?? 0) + 1);
        ids.add(id);
      });
      await scheduler.start();
    }
    await clock.advanceAsync(30 * DAY_MS - 1);
    for (const scheduler of schedulers) await scheduler.shutdown();
    expect(Object.fromEntries(Object.keys(schedules).map((spec) => [spec, counts.get(spec) ?? 0]))).toEqual(
      schedules,
    );
    const total = Object.values(schedules).reduce((sum, count) => sum + count);
    expect(ids.size).toBe(total);
    expect((await broker.queueStats('default')).counts.pending).toBe(total);
    expect(clock.pendingWakeups).toBe(0);
  });
});
