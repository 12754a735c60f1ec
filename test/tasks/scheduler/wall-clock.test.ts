import { Task } from 'escapement/tasks';
import { describe, expect, it } from 'vitest';
import { HOUR_MS, openWorld, START_MS } from './scheduler-world.ts';

describe('a wall clock that is set', () => {
  it('a wall clock that is set forward is noticed within a minute, and the last skipped tick is enqueued', async () => {
    await using world = await openWorld();
    const { scheduler, lines } = world.scheduler();
    scheduler.register('@hourly', new Task('t'));
    await scheduler.start();
    await world.clock.advance(30_000);
    world.clock.shiftWall(5 * HOUR_MS);
    await world.clock.advance(HOUR_MS);
    expect(lines).toEqual(['05:01 enqueued 05:00', '06:00 enqueued 06:00']);
  });

  it('a wall clock that is set back enqueues no tick twice, and ticks go on when it has caught up', async () => {
    await using world = await openWorld();
    const { scheduler, lines } = world.scheduler();
    scheduler.register('@hourly', new Task('t'));
    await scheduler.start();
    await world.clock.advance(2.5 * HOUR_MS);
    world.clock.shiftWall(-2 * HOUR_MS);
    await world.clock.advance(3 * HOUR_MS);
    expect(lines).toEqual(['01:00 enqueued 01:00', '02:00 enqueued 02:00', '03:00 enqueued 03:00']);
  });

  it('a wall clock that is a day ahead for two ticks stops neither this scheduler nor others', async () => {
    await using world = await openWorld();
    const told = [world.scheduler(), world.scheduler({ backfill: true })];
    for (const { scheduler } of told) {
      scheduler.register('@hourly', new Task('t'));
      await scheduler.start();
    }
    await world.clock.advance(0.5 * HOUR_MS);
    world.clock.shiftWall(24 * HOUR_MS);
    await world.clock.advance(2 * HOUR_MS);
    world.clock.shiftWall(-24 * HOUR_MS);
    const before = told.map(({ infos }) => infos.length);
    await world.clock.advance(3 * HOUR_MS);
    const since = told
      .flatMap(({ ticks }, i) => ticks.slice(before[i]))
      .map(({ at }) => at.getTime() - START_MS);
    expect(since.sort()).toEqual([3 * HOUR_MS, 4 * HOUR_MS, 5 * HOUR_MS]);
  });

  it('a wall clock that is set back before another scheduler starts enqueues no tick twice', async () => {
    await using world = await openWorld();
    const first = world.scheduler();
    first.scheduler.register('@hourly', new Task('t'));
    await first.scheduler.start();
    await world.clock.advance(2.5 * HOUR_MS);
    await first.scheduler.shutdown();
    world.clock.shiftWall(-2 * HOUR_MS);
    const second = world.scheduler();
    second.scheduler.register('@hourly', new Task('t'));
    await second.scheduler.start();
    await world.clock.advance(3 * HOUR_MS);
    expect(second.lines).toEqual(['01:00 elsewhere 01:00', '02:00 elsewhere 02:00', '03:00 enqueued 03:00']);
  });
});
