import { type Clock, EscapementError } from 'escapement';
import { type BackfillOptions, type Broker, Task } from 'escapement/tasks';
import fc from 'fast-check';
import { describe, expect, vi } from 'vitest';
import { parseCronSpec } from '../../../src/tasks/scheduler/cron-spec.ts';
import { newestTicks } from '../../../src/tasks/scheduler/scheduled-entry.ts';
import { withMethods } from '../support/with-methods.ts';
import {
  DAY_MS,
  down,
  HOUR_MS,
  it,
  MINUTE_MS,
  openWorld,
  START_MS,
  taskValidatedBy,
  valid,
  type World,
} from './scheduler-world.ts';
import { testProperty } from '../../runs.ts';

/** A scheduler runs for 90 minutes, and none for 5 hours. @returns the events of the next one at its start. */
async function afterAGap(
  world: World,
  backfill: BackfillOptions | boolean,
  broker?: Broker,
): Promise<string[]> {
  const before = await world.startHourly();
  await world.clock.advanceAsync(1.5 * HOUR_MS);
  await before.scheduler.shutdown();
  await world.clock.advanceAsync(5 * HOUR_MS);
  const after = await world.startHourly({ backfill, ...(broker !== undefined && { broker }) });
  await world.clock.advanceAsync(HOUR_MS);
  return after.lines;
}

describe('missed ticks', () => {
  it('missed ticks are skipped without backfill', async ({ world }) => {
    expect(await afterAGap(world, false)).toEqual(['07:00 enqueued 07:00']);
  });

  it('missed ticks are enqueued at the start with backfill, oldest first', async ({ world }) => {
    expect(await afterAGap(world, true)).toEqual([
      '06:30 enqueued 02:00',
      '06:30 enqueued 03:00',
      '06:30 enqueued 04:00',
      '06:30 enqueued 05:00',
      '06:30 enqueued 06:00',
      '07:00 enqueued 07:00',
    ]);
  });

  it('backfill enqueues the newest ticks within maxTicks and maxAgeMs', async ({ world }) => {
    const two = ['06:30 enqueued 05:00', '06:30 enqueued 06:00', '07:00 enqueued 07:00'];
    expect(await afterAGap(world, { maxTicks: 2 })).toEqual(two);
    const other = await openWorld();
    expect(await afterAGap(other, { maxAgeMs: 1.5 * HOUR_MS + 1 })).toEqual(two);
    const third = await openWorld();
    expect(await afterAGap(third, { maxAgeMs: 0 })).toEqual(['07:00 enqueued 07:00']);
  });

  it('one of two schedulers enqueues the missed ticks', async ({ world }) => {
    const before = await world.startHourly();
    await world.clock.advanceAsync(HOUR_MS);
    await before.scheduler.shutdown();
    await world.clock.advanceAsync(3.5 * HOUR_MS);
    const both = [world.scheduler({ backfill: true }), world.scheduler({ backfill: true })];
    for (const { scheduler } of both) scheduler.register('@hourly', new Task('t'));
    await Promise.all(both.map(({ scheduler }) => scheduler.start()));
    await world.clock.advanceAsync(1);
    expect(
      both.flatMap(({ ticks }) => ticks.map(({ at }) => (at.getTime() - START_MS) / HOUR_MS)).sort(),
    ).toEqual([2, 3, 4]);
  });

  it('an entry can have its own backfill', async ({ world }) => {
    const register = (options: { backfill: boolean }): ReturnType<World['scheduler']> => {
      const told = world.scheduler(options);
      told.scheduler.register('@hourly', new Task('yes'), { backfill: true });
      told.scheduler.register('@hourly', new Task('no'), { backfill: false });
      told.scheduler.register('@hourly', new Task('default'));
      return told;
    };
    const before = register({ backfill: false });
    await before.scheduler.start();
    await world.clock.advanceAsync(HOUR_MS);
    await before.scheduler.shutdown();
    await world.clock.advanceAsync(1.5 * HOUR_MS);
    const after = register({ backfill: true });
    await after.scheduler.start();
    await world.clock.advanceAsync(1);
    expect(after.infos.map(({ type }) => type).sort()).toEqual(['default', 'yes']);
  });

  it('ticks that a suspended process missed are enqueued with backfill', async ({ world }) => {
    const { lines } = await world.startHourly({ backfill: { maxTicks: 3 } });
    await world.clock.advanceAsync(HOUR_MS);
    world.clock.aheadMs += 10 * HOUR_MS;
    await world.clock.advanceAsync(HOUR_MS);
    expect(lines).toEqual([
      '01:00 enqueued 01:00',
      '11:01 enqueued 09:00',
      '11:01 enqueued 10:00',
      '11:01 enqueued 11:00',
      '12:00 enqueued 12:00',
    ]);
  });

  it('a process that was suspended for a day skips 86 400 ticks in one wake-up', async ({ world }) => {
    const { scheduler, ticks } = world.scheduler();
    scheduler.register('@every 1s', new Task('t'));
    await scheduler.start();
    await world.clock.advanceAsync(500);
    world.clock.aheadMs += DAY_MS;
    const setTimeout = vi.spyOn(world.clock, 'setTimeout');
    await world.clock.advanceAsync(500);
    expect(ticks.map(({ at }) => at.getTime())).toEqual([START_MS + DAY_MS + 1_000]);
    expect(scheduler.entries()).toMatchObject([{ nextEnqueueAt: new Date(START_MS + DAY_MS + 2_000) }]);
    expect(setTimeout.mock.calls.length).toBeLessThan(10);
  });

  it('missed ticks that other schedulers have enqueued are not enqueued again', async ({ world }) => {
    const awake = world.scheduler();
    let lagMs = 0;
    const lagging: Clock = {
      now: () => world.clock.now(),
      wallNow: () => world.clock.wallNow() - lagMs,
      setTimeout: (callback, delayMs) => world.clock.setTimeout(callback, delayMs),
    };
    const asleep = world.scheduler({ backfill: true, broker: withMethods(world.broker, { clock: lagging }) });
    for (const { scheduler } of [awake, asleep]) {
      scheduler.register('*/15 * * * *', new Task('t'));
      await scheduler.start();
    }
    lagMs = 75 * MINUTE_MS;
    await world.clock.advanceAsync(75 * MINUTE_MS - 1);
    lagMs = 0;
    await world.clock.advanceAsync(15 * MINUTE_MS);
    expect(asleep.lines).toEqual([]);
    expect(asleep.scheduler.entries()).toMatchObject([
      { prevEnqueueAt: new Date(START_MS + 75 * MINUTE_MS) },
    ]);
    expect(awake.lines).toHaveLength(5);
  });

  it('a payload is validated at each tick, and a refused tick is not a missed tick', async ({ world }) => {
    let isGood = true;
    const { scheduler, lines } = world.scheduler({ backfill: true });
    const task = taskValidatedBy((value) => (isGood ? valid(value) : { issues: [{ message: 'no good' }] }));
    scheduler.register('@hourly', task);
    await scheduler.start();
    await world.clock.advanceAsync(HOUR_MS);
    isGood = false;
    await world.clock.advanceAsync(HOUR_MS);
    isGood = true;
    world.clock.aheadMs += 2 * HOUR_MS;
    await world.clock.advanceAsync(MINUTE_MS);
    expect(lines).toEqual([
      '01:00 enqueued 01:00',
      '02:00 failed 02:00',
      '04:01 enqueued 03:00',
      '04:01 enqueued 04:00',
    ]);
  });

  it('missed ticks wait for a failing broker and keep their order', async ({ world }) => {
    const lines = await afterAGap(world, { maxTicks: 4 }, world.downUntil(8.25 * HOUR_MS, false));
    expect(lines).toEqual([]);
    await world.clock.advanceAsync(HOUR_MS);
    expect(lines.map((line) => line.slice(-'enqueued 05:00'.length))).toEqual([
      'enqueued 05:00',
      'enqueued 06:00',
      'enqueued 07:00',
      'enqueued 08:00',
    ]);
  });

  it('missed ticks are skipped if the broker refuses to return the last tick', async ({ world }) => {
    const lastTickMs = (): Promise<never> => Promise.reject(new EscapementError('ERR_QUEUE_NOT_FOUND', 'no'));
    expect(await afterAGap(world, true, withMethods(world.broker, { lastTickMs }))).toEqual([
      '07:00 enqueued 07:00',
    ]);
  });
});

describe('the newest ticks of a span', () => {
  const SPECS = [
    '* * * * *',
    '@every 7s',
    '@daily',
    '0 9 * * mon-fri',
    '*/10 0 1 1 *',
    '0 0 29 2 *',
    '0 0 30 2 *',
  ];

  const span = fc.tuple(fc.constantFrom(...SPECS), fc.nat(3 * DAY_MS), fc.integer({ min: 1, max: 50 }));
  const from = Date.parse('2027-12-31T00:00:00Z');
  testProperty(
    'newestTicks returns the last ticks of a span',
    fc.property(span, fc.nat(3 * DAY_MS), ([text, lengthMs, count], offsetMs) => {
      const spec = parseCronSpec(text);
      const afterMs = from + offsetMs;
      const all: number[] = [];
      for (let at = spec.next(afterMs); at !== undefined && at <= afterMs + lengthMs; at = spec.next(at))
        all.push(at);
      expect(newestTicks(spec, afterMs, afterMs + lengthMs, count)).toEqual(all.slice(-count));
    }),
    50,
  );

  it('newestTicks finds ticks however long ago they were', () => {
    const spec = parseCronSpec('*/10 0 1 1 *');
    const newest = newestTicks(spec, from, from + 300 * DAY_MS, 3).map((at) => new Date(at).toISOString());
    expect(newest.map((at) => at.slice(0, 16))).toEqual([
      '2028-01-01T00:30',
      '2028-01-01T00:40',
      '2028-01-01T00:50',
    ]);
  });

  it('newestTicks of many years cost no more than those of a day', () => {
    let asked = 0;
    const spec = parseCronSpec('@every 1s');
    const counting = { ...spec, next: (afterMs: number) => (asked++, spec.next(afterMs)) };
    expect(newestTicks(counting, 0, START_MS, 10)).toHaveLength(10);
    expect(asked).toBeLessThan(100);
  });
});

describe('a wall clock that is set', () => {
  it('a wall clock that is set forward has its last skipped tick within a minute', async ({ world }) => {
    const { lines } = await world.startHourly();
    await world.clock.advanceAsync(30_000);
    world.clock.aheadMs += 5 * HOUR_MS;
    await world.clock.advanceAsync(HOUR_MS);
    expect(lines).toEqual(['05:01 enqueued 05:00', '06:00 enqueued 06:00']);
  });

  it('a wall clock that is set back enqueues no tick twice, and ticks go on later', async ({ world }) => {
    const { lines } = await world.startHourly();
    await world.clock.advanceAsync(2.5 * HOUR_MS);
    world.clock.aheadMs -= 2 * HOUR_MS;
    await world.clock.advanceAsync(3 * HOUR_MS);
    expect(lines).toEqual(['01:00 enqueued 01:00', '02:00 enqueued 02:00', '03:00 enqueued 03:00']);
  });

  it('a wall clock that is a day ahead for two ticks stops no scheduler', async ({ world }) => {
    const told = [world.scheduler(), world.scheduler({ backfill: true })];
    for (const { scheduler } of told) {
      scheduler.register('@hourly', new Task('t'));
      await scheduler.start();
    }
    await world.clock.advanceAsync(0.5 * HOUR_MS);
    world.clock.aheadMs += 24 * HOUR_MS;
    await world.clock.advanceAsync(2 * HOUR_MS);
    world.clock.aheadMs -= 24 * HOUR_MS;
    const before = told.map(({ infos }) => infos.length);
    await world.clock.advanceAsync(3 * HOUR_MS);
    const since = told
      .flatMap(({ ticks }, i) => ticks.slice(before[i]))
      .map(({ at }) => at.getTime() - START_MS);
    expect(since.sort()).toEqual([3 * HOUR_MS, 4 * HOUR_MS, 5 * HOUR_MS]);
  });

  it.for([false, true])(
    'a wall clock that is a day ahead for seconds while the broker fails stops no scheduler: backfill %s',
    async (backfill, { world }) => {
      let isDown = true;
      const enqueueTick: Broker['enqueueTick'] = (task, tick) =>
        isDown ? Promise.reject(down) : world.broker.enqueueTick(task, tick);
      const broker = withMethods(world.broker, { enqueueTick });
      const { ticks } = await world.startHourly({ broker, backfill });
      await world.clock.advanceAsync(3.5 * HOUR_MS - 1_000);
      world.clock.aheadMs += DAY_MS;
      await world.clock.advanceAsync(2_000); // the clock is read each minute, and the broker called each half minute
      world.clock.aheadMs -= DAY_MS;
      isDown = false;
      await world.clock.advanceAsync(2 * HOUR_MS);
      const hours = ticks.map(({ at }) => (at.getTime() - START_MS) / HOUR_MS);
      expect(hours).toEqual(backfill ? [1, 2, 3, 4, 5] : [3, 4, 5]);
    },
  );

  it('a wall clock that is set back makes no other scheduler enqueue a tick twice', async ({ world }) => {
    const first = await world.startHourly();
    await world.clock.advanceAsync(2.5 * HOUR_MS);
    await first.scheduler.shutdown();
    world.clock.aheadMs -= 2 * HOUR_MS;
    const second = await world.startHourly();
    await world.clock.advanceAsync(3 * HOUR_MS);
    expect(second.lines).toEqual(['01:00 elsewhere 01:00', '02:00 elsewhere 02:00', '03:00 enqueued 03:00']);
  });
});
