import { Client, Inspector, Server } from 'escapement/tasks';
import { RedisBroker } from 'escapement/tasks/redis';
import { flakyBroker, ManualClock } from 'escapement/testing';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { seededRandom } from '../../../../src/tasks/broker/flaky-broker.ts';
import { describeBroker } from '../../../conformance/broker/describe-broker.ts';
import { stubborn } from '../../../conformance/broker/stubborn.ts';
import { freshDatabase } from '../../../redis/redis-case.ts';
import { enqueueSurely, startSurely } from '../../support/surely.ts';
import { redisSetup } from './setup.ts';

describe('with Redis behind a flaky network', () => {
  const TASKS = 100;
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
    const broker = flakyBroker(inner, { failRate: 0.15, loseReplyRate: 0.15, delayMs: 50, seed });
    const random = seededRandom(seed);
    vi.spyOn(Math, 'random').mockImplementation(seededRandom(-seed)); // of back-offs
    const client = new Client({ broker });
    const server = new Server({ broker, concurrency: 8, retryDelayMs: () => 1_000, maxRecoveries: 1_000 });
    const starting = startSurely(server, () => {
      if (random() < 0.2) throw new Error('now and then');
    });
    const enqueuing = Promise.all(Array.from({ length: TASKS }, (_, n) => enqueueSurely(client, String(n))));
    await passUntil(clock, Promise.all([starting, enqueuing]));
    await pass(clock, 5 * MINUTE_MS);
    broker.isFlaky = false;
    const inspector = new Inspector({ broker: inner });
    let completed = 0;
    for (let minute = 0; minute < 20 && completed < TASKS; minute++) {
      await pass(clock, MINUTE_MS);
      ({ completed } = await inspector.getQueueInfo('default'));
    }

    expect(broker.counts.failed).toBeGreaterThan(TASKS / 10);
    expect(broker.counts.repliesLost).toBeGreaterThan(TASKS / 10);
    expect(await inspector.getQueueInfo('default')).toMatchObject({ size: TASKS, completed: TASKS });
    await passUntil(clock, server.shutdown());
    // A shutdown waits for a second of virtual time, in which Redis may not have answered; its operations continue.
    await expect.poll(() => inspector.servers()).toEqual([]);
    await inner.close();
    await database.dispose();
  });
});

describe('the broker on Redis behind a flaky network', () => {
  describeBroker(stubborn(redisSetup));
});
