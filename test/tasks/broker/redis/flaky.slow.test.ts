import { RedisBroker } from 'escapement/tasks/redis';
import { ManualClock } from 'escapement/testing';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { freshDatabase } from '../../../redis/redis-case.ts';
import { FlakyWork } from '../../support/flaky-work.ts';

describe('with Redis behind a flaky network', () => {
  const START_MS = 1_795_262_400_000;
  const SECOND_MS = 1_000;
  const MINUTE_MS = 60_000;

  afterEach(() => {
    vi.restoreAllMocks();
  });

  /** Lets time pass, a second in a few turns of the host: Redis answers meanwhile, in its own time. */
  async function pass(clock: ManualClock, ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += SECOND_MS) {
      await clock.advanceAsync(SECOND_MS);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  /** Until it is settled. */
  async function passUntil(clock: ManualClock, promise: Promise<unknown>): Promise<void> {
    const progress = { isSettled: false };
    const settle = (): void => {
      progress.isSettled = true;
    };
    promise.then(settle, settle);
    while (!progress.isSettled) await pass(clock, SECOND_MS);
    await promise;
  }

  test.each([1, 2, 3])('no task is lost on Redis behind a flaky network (seed %i)', async (seed) => {
    const clock = new ManualClock({ wallMs: START_MS });
    const database = await freshDatabase();
    const inner = new RedisBroker({ url: database.url, clock });
    const work = new FlakyWork(inner, seed);
    await passUntil(clock, work.start());
    await pass(clock, 5 * MINUTE_MS);
    work.flaky.isFlaky = false;
    for (let minute = 0; minute < 200 && !(await work.isDone()); minute++) await pass(clock, MINUTE_MS);
    await work.check();
    await passUntil(clock, work.server.shutdown());
    // A shutdown waits for a second of virtual time, in which Redis may not have answered; its operations continue.
    await expect.poll(() => work.inspector.servers()).toEqual([]);
    await inner.close();
    await database.dispose();
  });
});
