import { afterEach, describe, expect, test, vi } from 'vitest';
import { Client, EmbeddedBroker, Inspector, Server, MAINTENANCE_JOBS, type Broker } from 'escapement/tasks';
import { checkBroker, flakyBroker, ManualClock, type FlakyBroker } from 'escapement/testing';
import { seededRandom } from '../../src/tasks/broker/flaky-broker.ts';
import { START_MS } from './support/bench.ts';
import { enqueueSurely, startSurely } from './support/surely.ts';

const TASKS = 100;
const MINUTE_MS = 60_000;

/** A broker that nobody drives: as one on another machine. */
function notSelfDriven(broker: Broker): Broker {
  return new Proxy(broker, {
    get: (target, name) => {
      if (name === 'maintenance') return MAINTENANCE_JOBS;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe.each(['self-driven', 'that has to be driven'])('with a flaky broker %s', (kind) => {
  test.each([1, 2, 3, 4, 5])('no task is lost with a flaky broker (seed %i)', async (seed) => {
    const clock = new ManualClock({ wallMs: START_MS });
    const inner = await EmbeddedBroker.open({ clock });
    const rates = { failRate: 0.15, loseReplyRate: 0.15, delayMs: 50, seed };
    const broker: FlakyBroker = flakyBroker(kind === 'self-driven' ? inner : notSelfDriven(inner), rates);
    const random = seededRandom(seed);
    vi.spyOn(Math, 'random').mockImplementation(seededRandom(-seed)); // of back-offs
    const client = new Client({ broker });
    const server = new Server({ broker, concurrency: 8, retryDelayMs: () => 1_000, maxRecoveries: 1_000 });
    const starting = startSurely(server, () => {
      if (random() < 0.2) throw new Error('now and then');
    });
    const enqueuing = Promise.all(Array.from({ length: TASKS }, (_, n) => enqueueSurely(client, String(n))));
    await clock.advanceAsync(MINUTE_MS);
    await Promise.all([starting, enqueuing]);
    await clock.advanceAsync(10 * MINUTE_MS);
    broker.isFlaky = false;
    await clock.advanceAsync(10 * MINUTE_MS);

    const inspector = new Inspector({ broker: inner });
    expect(broker.counts.failed).toBeGreaterThan(TASKS / 10);
    expect(broker.counts.repliesLost).toBeGreaterThan(TASKS / 10);
    expect(await inspector.getQueueInfo('default')).toMatchObject({ size: TASKS, completed: TASKS });
    checkBroker(inner);
    const stopping = server.shutdown();
    await clock.advanceAsync(MINUTE_MS);
    await stopping;
    expect(await inspector.servers()).toEqual([]);
    await inner.close();
    expect(clock.pendingWakeups).toBe(0);
  });
});
