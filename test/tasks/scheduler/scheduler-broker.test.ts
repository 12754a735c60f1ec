import { EscapementError } from 'escapement';
import { Task, type Broker } from 'escapement/tasks';
import { describe, expect, vi } from 'vitest';
import { withMethods } from '../support/with-methods.ts';
import { DAY_MS, down, HOUR_MS, it, MINUTE_MS, START_MS } from './scheduler-world.ts';

describe('a broker that fails', () => {
  it('a failing broker is called again with longer and longer waits', async ({ world }) => {
    const tries: number[] = [];
    const enqueueTick: Broker['enqueueTick'] = (task, tick) => {
      tries.push(world.clock.wallNow() - START_MS - HOUR_MS);
      return tries.length < 5 ? Promise.reject(down) : world.broker.enqueueTick(task, tick);
    };
    const calls: string[] = [];
    const { lines } = await world.startHourly({
      broker: withMethods(world.broker, { enqueueTick }),
      preEnqueue: () => calls.push('pre'),
      postEnqueue: () => calls.push('post'),
    });
    await world.clock.advanceAsync(HOUR_MS + MINUTE_MS);
    expect(tries).toEqual([0, 250, 750, 1_750, 3_750]);
    expect(lines).toEqual(['01:00:03.750 enqueued 01:00']);
    expect(calls).toEqual(['pre', 'post']);
  });

  it('a tick is given up and reported when the next tick is due', async ({ world }) => {
    const { lines } = await world.startHourly({ broker: world.downUntil(2.5 * HOUR_MS) });
    await world.clock.advanceAsync(3 * HOUR_MS + MINUTE_MS);
    expect(lines[0]).toBe('02:00 failed 01:00');
    expect(lines[1]).toMatch(/^02:30:\S* enqueued 02:00$/);
    expect(lines[2]).toBe('03:00 enqueued 03:00');
    expect(lines).toHaveLength(3);
  });

  it('a failing broker loses no tick with backfill', async ({ world }) => {
    const broker = world.downUntil(3.5 * HOUR_MS);
    const { lines, ticks } = await world.startHourly({ broker, backfill: true });
    await world.clock.advanceAsync(4 * HOUR_MS);
    expect(lines.slice(0, 2)).toEqual(['02:00 failed 01:00', '03:00 failed 01:00']);
    expect(ticks.map(({ at }) => (at.getTime() - START_MS) / HOUR_MS)).toEqual([1, 2, 3, 4]);
  });

  it('a broker that refuses a tick is not called again', async ({ world }) => {
    const enqueueTick = vi.fn().mockRejectedValue(new EscapementError('ERR_BROKER_CLOSED', 'closed'));
    const broker = withMethods(world.broker, { enqueueTick });
    const { lines } = await world.startHourly({ broker, backfill: true });
    await world.clock.advanceAsync(2 * HOUR_MS);
    expect(enqueueTick).toHaveBeenCalledTimes(2);
    expect(lines).toEqual(['01:00 failed 01:00', '02:00 failed 02:00']);
  });

  it('a failing broker does not delay a shutdown', async ({ world }) => {
    const broker = withMethods(world.broker, { enqueueTick: () => Promise.reject(new Error('down')) });
    const { scheduler, lines } = await world.startHourly({ broker });
    await world.clock.advanceAsync(HOUR_MS);
    await scheduler.shutdown();
    expect(lines).toEqual(['01:00 failed 01:00']);
    expect(world.clock.pendingWakeups).toBe(0);
  });

  it('many entries that wait for a failing broker cause no warning of the process', async ({ world }) => {
    const { scheduler } = world.scheduler({ broker: world.downUntil(DAY_MS) });
    for (let i = 0; i < 20; i++) scheduler.register('@hourly', new Task('t', i));
    const warnings: Error[] = [];
    const hear = (warning: Error): unknown => warnings.push(warning);
    process.on('warning', hear);
    await scheduler.start();
    await world.clock.advanceAsync(HOUR_MS);
    process.off('warning', hear);
    expect(warnings).toEqual([]);
  });

  it('a failing broker is not called again for an entry that was unregistered', async ({ world }) => {
    const enqueueTick = vi.fn().mockRejectedValue(down);
    const {
      entryId: id,
      scheduler,
      lines,
    } = await world.startHourly({ broker: withMethods(world.broker, { enqueueTick }) });
    await world.clock.advanceAsync(HOUR_MS);
    scheduler.unregister(id);
    await world.clock.advanceAsync(HOUR_MS);
    expect(enqueueTick).toHaveBeenCalledTimes(1);
    expect(lines).toEqual(['01:00:00.250 failed 01:00']);
  });

  it('ticks are enqueued although the history and the entries cannot be written', async ({ world }) => {
    const broker = withMethods(world.broker, {
      recordEnqueueEvent: () => Promise.reject(down),
      announceScheduler: () => Promise.reject(down),
      withdrawScheduler: () => Promise.reject(down),
    });
    const { scheduler, lines } = await world.startHourly({ broker });
    await world.clock.advanceAsync(HOUR_MS);
    await scheduler.shutdown();
    expect(lines).toEqual(['01:00 enqueued 01:00']);
  });
});

it('the heartbeat lists the entries every interval, and at once after a change', async ({ world }) => {
  const beats: string[] = [];
  const broker = withMethods(world.broker, {
    maintenance: ['announceScheduler'],
    announceScheduler: (_id, read, ttlMs) => {
      beats.push(`${world.clock.wallNow() - START_MS} ${read().length} ${ttlMs}`);
      return Promise.resolve();
    },
    withdrawScheduler: () => {
      beats.push('withdrawn');
      return Promise.resolve();
    },
  });
  const { scheduler } = world.scheduler({ broker, heartbeatIntervalMs: 7_000 });
  await scheduler.start();
  await world.clock.advanceAsync(15_000);
  scheduler.register('@hourly', new Task('t'));
  scheduler.register('@daily', new Task('t'));
  await world.clock.advanceAsync(8_000);
  await scheduler.shutdown();
  expect(beats).toEqual([
    '0 0 14000',
    '7000 0 14000',
    '14000 0 14000',
    '15000 2 14000',
    '22000 2 14000',
    'withdrawn',
  ]);
  expect(world.clock.pendingWakeups).toBe(0);
});

it('an entry that is registered during a heartbeat is listed right after it', async ({ world }) => {
  const beats: string[] = [];
  const broker = withMethods(world.broker, {
    maintenance: ['announceScheduler'],
    announceScheduler: (_id, read) => {
      beats.push(`${world.clock.wallNow() - START_MS} ${read().length}`);
      return new Promise((resolve) => void world.clock.setTimeout(resolve, 100));
    },
  });
  const { scheduler } = world.scheduler({ broker });
  const starting = scheduler.start();
  await world.clock.advanceAsync(50);
  scheduler.register('@hourly', new Task('t'));
  scheduler.register('@daily', new Task('t'));
  await world.clock.advanceAsync(1_000);
  await starting;
  expect(beats).toEqual(['0 0', '100 2']);
});

it('a pending heartbeat ends before the entries are withdrawn', async ({ world }) => {
  const calls: string[] = [];
  let arrive = (): void => undefined;
  const broker = withMethods(world.broker, {
    announceScheduler: async () => {
      await new Promise<void>((resolve) => (arrive = resolve));
      calls.push('announced');
    },
    withdrawScheduler: () => {
      calls.push('withdrawn');
      return Promise.resolve();
    },
  });
  const { scheduler } = world.scheduler({ broker });
  const starting = scheduler.start();
  await world.clock.advanceAsync(1);
  const closing = scheduler.shutdown();
  await world.clock.advanceAsync(1);
  arrive();
  await Promise.all([starting, closing]);
  expect(calls).toEqual(['announced', 'withdrawn']);
});

it('the heartbeat runs once if the broker keeps the entries, and again if that was unavailable', async ({
  world,
}) => {
  let failures: Error[] = [];
  let calls = 0;
  const announceScheduler: Broker['announceScheduler'] = (...args) => {
    calls++;
    const error = failures.shift();
    return error === undefined ? world.broker.announceScheduler(...args) : Promise.reject(error);
  };
  const start = async (failingWith: Error[]): Promise<number> => {
    calls = 0;
    failures = failingWith;
    const { scheduler } = world.scheduler({ broker: withMethods(world.broker, { announceScheduler }) });
    await scheduler.start();
    await world.clock.advanceAsync(HOUR_MS);
    expect(world.clock.pendingWakeups).toBe(0);
    return calls;
  };
  expect(await start([])).toBe(1);
  expect(await start([down, down])).toBe(3);
  expect(await start([new Error('refused')])).toBe(1);
});
