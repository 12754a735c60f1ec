import { inspect } from 'node:util';
import { type Broker, Client, EmbeddedBroker, MAINTENANCE_JOBS, Task } from 'escapement/tasks';
import { checkBroker, flakyBroker, type FlakyBrokerOptions, ManualClock } from 'escapement/testing';
import { afterEach, describe, expect, vi } from 'vitest';
import { seededRandom } from '../../src/tasks/broker/flaky-broker.ts';
import { settled, watch } from '../workqueue/support/outcome.ts';
import { openBench, START_MS, test } from './support/bench.ts';
import { FlakyWork } from './support/flaky-work.ts';
import { withMethods } from './support/with-methods.ts';

const UNAVAILABLE = { code: 'ERR_BROKER_UNAVAILABLE' };

describe('a flaky broker', () => {
  test('a flaky broker without rates lets every operation succeed', async ({ broker, clock }) => {
    const flaky = flakyBroker(broker);
    expect(flaky.clock).toBe(clock);
    expect(flaky.maintenance).toEqual([]);
    await new Client({ broker: flaky }).enqueue(new Task('a', 1, { taskId: 'a' }));
    expect(await flaky.tasks('default', 'pending', { page: 1, size: 5 })).toHaveLength(1);
    expect(flaky.counts).toEqual({ calls: 2, failed: 0, repliesLost: 0 });
  });

  test('an operation that fails has not happened', async ({ broker, inspector }) => {
    const client = new Client({ broker: flakyBroker(broker, { failRate: 1 }) });
    await expect(client.enqueue(new Task('a'))).rejects.toMatchObject(UNAVAILABLE);
    expect(await inspector.queues()).toEqual([]);
  });

  test('an operation whose reply is lost has happened, or was refused', async ({ broker, inspector }) => {
    const client = new Client({ broker: flakyBroker(broker, { loseReplyRate: 1 }) });
    const task = new Task('a', 1, { taskId: 'a' });
    await expect(client.enqueue(task)).rejects.toMatchObject(UNAVAILABLE);
    await expect(client.enqueue(task)).rejects.toMatchObject(UNAVAILABLE);
    expect(await inspector.getTaskInfo('default', 'a')).toMatchObject({ state: 'pending' });
  });

  test('a flaky broker can be switched off and on', async ({ broker }) => {
    const flaky = flakyBroker(broker, { failRate: 1 });
    flaky.isFlaky = false;
    await flaky.ping();
    flaky.isFlaky = true;
    await expect(flaky.ping()).rejects.toMatchObject(UNAVAILABLE);
  });

  test('single operations can have rates of their own', async ({ broker }) => {
    const flaky = flakyBroker(broker, {
      failRate: 1,
      operations: { ping: {}, queues: { loseReplyRate: 1 } },
    });
    await flaky.ping();
    await expect(flaky.queues()).rejects.toMatchObject({ ...UNAVAILABLE, op: 'FlakyBroker.queues' });
    await expect(flaky.servers()).rejects.toMatchObject(UNAVAILABLE);
    expect(flaky.counts).toEqual({ calls: 3, failed: 1, repliesLost: 1 });
  });

  test('failNext and loseNextReply work even if the flaky broker is switched off', async ({ broker }) => {
    const flaky = flakyBroker(broker);
    flaky.isFlaky = false;
    flaky.failNext('ping', 2);
    flaky.loseNextReply('ping');
    for (let n = 0; n < 3; n++) await expect(flaky.ping()).rejects.toMatchObject(UNAVAILABLE);
    await flaky.ping();
    expect(flaky.counts).toEqual({ calls: 4, failed: 2, repliesLost: 1 });
    expect(flaky.failNext.bind(flaky, 'close' as 'ping')).toThrow(TypeError);
    const received = 'times must be an integer of at least 0. Received Infinity';
    expect(flaky.failNext.bind(flaky, 'ping', Infinity)).toThrow(received);
  });

  test('operations are delayed on the clock of the broker', async () => {
    const clock = new ManualClock();
    const flaky = flakyBroker(await EmbeddedBroker.open({ clock }), { delayMs: 100, random: () => 0.5 });
    const pinged = watch(flaky.ping());
    await clock.advanceAsync(49);
    expect(pinged.state).toBe('pending');
    await clock.advanceAsync(1);
    await settled();
    expect(pinged.state).toBe('resolved');
  });

  test('a subscription whose reply is lost is ended', async ({ broker, client }) => {
    const flaky = flakyBroker(broker);
    const told: string[] = [];
    flaky.loseNextReply('subscribe');
    await expect(flaky.subscribe({ work: (queue) => told.push(queue) }, [])).rejects.toMatchObject(
      UNAVAILABLE,
    );
    await client.enqueue(new Task('a'));
    await settled();
    expect(told).toEqual([]);
  });

  test('a console shows the broker, the counts and no operation', async () => {
    const flaky = flakyBroker(await EmbeddedBroker.open({ clock: new ManualClock() }), { failRate: 1 });
    await flaky.ping().catch(() => undefined);
    const view = inspect(flaky, { breakLength: Infinity });
    expect(view).toMatch(/^FlakyNetwork {/);
    expect(view).toContain('isFlaky: true');
    expect(view).toContain("state: 'open'");
    expect(view).toContain('counts: { calls: 1, failed: 1, repliesLost: 0 }');
    expect(view).not.toContain('Function');
    await flaky.close();
  });

  test('rates of close are refused: it never fails', ({ broker }) => {
    expect(() => flakyBroker(broker, { operations: { close: { failRate: 1 } } as object })).toThrow(
      /close is not an option/,
    );
  });

  test('closing a flaky broker closes its broker, whatever its rates are', async ({ broker }) => {
    await flakyBroker(broker, { failRate: 1 }).close();
    await expect(broker.ping()).rejects.toMatchObject({ code: 'ERR_BROKER_CLOSED' });
  });

  test('the same operations fail again with the same seed', async () => {
    const fates = async (seed: number): Promise<string[]> => {
      const flaky = flakyBroker((await openBench()).broker, { failRate: 0.3, seed });
      const outcomes = await Promise.allSettled(Array.from({ length: 50 }, () => flaky.ping()));
      return outcomes.map(({ status }) => status);
    };
    expect(await fates(7)).toEqual(await fates(7));
    expect(await fates(7)).not.toEqual(await fates(8));
  });

  test('the random numbers are distributed evenly', () => {
    const random = seededRandom(3);
    const numbers = Array.from({ length: 10_000 }, random);
    expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true);
    for (const rate of [0.1, 0.5, 0.9]) {
      const share = numbers.filter((number) => number < rate).length / numbers.length;
      expect(Math.abs(share - rate)).toBeLessThan(0.02);
    }
  });

  test.for<[FlakyBrokerOptions | null, typeof Error]>([
    [null, TypeError],
    [{ failRate: 1.1 }, RangeError],
    [{ failRate: -1 }, RangeError],
    [{ failRate: 0.6, loseReplyRate: 0.6 }, RangeError],
    [{ delayMs: -1 }, RangeError],
    [{ delayMs: NaN }, RangeError],
    [{ operations: { ping: { failRate: 2 } } }, RangeError],
    [{ operations: { ping: 1 as never } }, TypeError],
    [{ random: 1 as never }, TypeError],
    [{ seed: 'a' as never }, TypeError],
  ])('flakyBroker rejects the options %j', ([options, error], { broker }) => {
    expect(() => flakyBroker(broker, options as FlakyBrokerOptions)).toThrow(error);
    expect(() => flakyBroker({} as Broker)).toThrow(TypeError);
  });
});

describe.each(['self-driven', 'that has to be driven'])('with a flaky broker %s', (kind) => {
  const MINUTE_MS = 60_000;

  afterEach(() => {
    vi.restoreAllMocks();
  });

  test.each([1, 2])('no task is lost with a flaky broker (seed %i)', async (seed) => {
    const clock = new ManualClock({ wallMs: START_MS });
    const inner = await EmbeddedBroker.open({ clock });
    const isSelfDriven = kind === 'self-driven';
    const driven = isSelfDriven ? inner : withMethods<Broker>(inner, { maintenance: MAINTENANCE_JOBS });
    const work = new FlakyWork(inner, seed, driven);
    const started = work.start();
    await clock.advanceAsync(MINUTE_MS);
    await started;
    await clock.advanceAsync(10 * MINUTE_MS);
    work.flaky.isFlaky = false;
    await clock.advanceAsync(10 * MINUTE_MS);
    await work.check();
    checkBroker(inner);
    const stopping = work.server.shutdown();
    await clock.advanceAsync(MINUTE_MS);
    await stopping;
    expect(await work.inspector.servers()).toEqual([]);
    await inner.close();
    expect(clock.pendingWakeups).toBe(0);
  });
});
