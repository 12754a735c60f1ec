import { DelayingQueue, ManualClock, RateLimitingQueue, WorkQueue, type MetricsProvider } from 'escapement';
import { describe, expect, test } from 'vitest';
import { runProgram } from '../run-program.ts';
import { thrownBy } from '../timer/support/errors.ts';
import { settled } from './support/outcome.ts';
import { RecordingMetrics } from '../metrics/recording-metrics.ts';
import { takeNow } from './support/take.ts';
import { Workbench } from './support/workbench.ts';

const DEPTH = 'workqueue_depth';
const ADDS = 'workqueue_adds_total';
const RETRIES = 'workqueue_retries_total';
const LATENCY = 'workqueue_queue_duration_seconds';
const WORK = 'workqueue_work_duration_seconds';
const UNFINISHED = 'workqueue_unfinished_work_seconds';
const LONGEST = 'workqueue_longest_running_processor_seconds';

function make(): { metrics: RecordingMetrics; clock: ManualClock; queue: DelayingQueue<string> } {
  const metrics = new RecordingMetrics();
  const clock = new ManualClock({ nowMs: 5_000 });
  return { metrics, clock, queue: new DelayingQueue<string>({ name: 'pods', metrics, clock }) };
}

describe('metrics', () => {
  test("are Kubernetes', labelled with the name of the queue", () => {
    const { metrics } = make();
    expect([...metrics.counts.keys()].sort()).toEqual([ADDS, RETRIES]);
    expect([...metrics.readers.keys()].sort()).toEqual([DEPTH, LONGEST, UNFINISHED]);
    expect([...metrics.observed.keys()].sort()).toEqual([LATENCY, WORK]);
    expect(metrics.labels).toEqual(Array(7).fill({ name: 'pods' }));
    for (const help of metrics.helps.values()) expect(help).toMatch(/^[A-Z].+\.$/);
  });

  test('both histograms have ten buckets, 1e-8 to 10 seconds', () => {
    const { metrics } = make();
    const buckets = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10];
    expect([...metrics.buckets.values()]).toEqual([buckets, buckets]);
  });

  test('there is no timer behind them', async () => {
    const { queue, clock } = make();
    queue.add('a');
    await takeNow(queue);
    expect(clock.pendingWakeups).toBe(0);
    queue.done('a');
    queue.shutDown();
    expect(clock.pendingWakeups).toBe(0);
  });

  test('a queue without a provider measures nothing, and asks no clock', async () => {
    const clock = {
      now: () => expect.fail('asked'),
      wallNow: () => 0,
      setTimeout: () => expect.fail('armed'),
    };
    const queue = new WorkQueue<string>({ clock });
    queue.add('a');
    queue.done(await takeNow(queue));
    queue.shutDown();
  });
});

describe('adds', () => {
  test('count what was accepted: once each, and once more when added again while held', async () => {
    const { queue, metrics } = make();
    queue.add('a');
    queue.add('a');
    queue.add('b');
    expect(metrics.counts.get(ADDS)).toBe(2);
    await takeNow(queue);
    queue.add('a');
    queue.add('a');
    expect(metrics.counts.get(ADDS)).toBe(3);
    queue.done('a'); // queued again: that was counted
    expect(metrics.counts.get(ADDS)).toBe(3);
    queue.shutDown();
    queue.add('c');
    expect(metrics.counts.get(ADDS)).toBe(3);
  });

  test('delayed ones count when their time comes', () => {
    const { queue, metrics, clock } = make();
    queue.addAfter('a', 10);
    expect(metrics.counts.get(ADDS)).toBe(0);
    clock.advance(10);
    expect(metrics.counts.get(ADDS)).toBe(1);
  });

  test('what is refused by a full queue does not count', () => {
    const metrics = new RecordingMetrics();
    const queue = new WorkQueue<string>({ metrics, maxSize: 1, clock: new ManualClock() });
    queue.add('a');
    thrownBy(() => {
      queue.add('b');
    });
    expect([metrics.counts.get(ADDS), metrics.read(DEPTH)]).toEqual([1, 1]);
  });
});

describe('retries', () => {
  test('are calls of addAfter and addRateLimited before the shutdown, whatever the delay', () => {
    const metrics = new RecordingMetrics();
    const limiter = { when: () => 5, forget: () => undefined, numRequeues: () => 0 };
    const queue = new RateLimitingQueue<string>(limiter, { metrics, clock: new ManualClock() });
    queue.addAfter('a', 10);
    queue.addAfter('a', 20); // earliest wins, and it is a call all the same
    queue.addAfter('b', 0);
    queue.addRateLimited('c');
    queue.add('d');
    expect(metrics.counts.get(RETRIES)).toBe(4);
    queue.shutDown();
    queue.addAfter('e', 10);
    queue.addRateLimited('e');
    expect(metrics.counts.get(RETRIES)).toBe(4);
  });
});

describe('depth', () => {
  test('is what waits to be processed: re-adds of held items included, delayed items not', async () => {
    const { queue, metrics } = make();
    const expectDepth = (depth: number, length: number): void => {
      expect([metrics.read(DEPTH), queue.length]).toEqual([depth, length]);
    };
    expectDepth(0, 0);
    for (const item of 'ab') queue.add(item);
    queue.addAfter('c', 10);
    expectDepth(2, 2);
    await takeNow(queue);
    expectDepth(1, 1);
    queue.add('a');
    expectDepth(2, 1);
    queue.done('a');
    expectDepth(2, 2);
    queue.shutDown();
    await takeNow(queue);
    await takeNow(queue);
    expectDepth(0, 0);
  });

  test('it is never negative, and adds minus hand-outs', async () => {
    const { queue, metrics } = make();
    for (let i = 0; i < 100; i++) {
      queue.add(`${i % 7}`);
      if (i % 3 === 0) queue.done(await takeNow(queue));
      expect(metrics.read(DEPTH)).toBe(
        (metrics.counts.get(ADDS) ?? 0) - (metrics.observed.get(LATENCY)?.length ?? 0),
      );
    }
  });
});

describe('queue duration, in seconds', () => {
  test('from the accepted add, the first of several, to the hand-out', async () => {
    const { queue, metrics, clock } = make();
    queue.add('a');
    clock.advance(1_000);
    queue.add('a');
    queue.add('b');
    clock.advance(500);
    await takeNow(queue);
    await takeNow(queue);
    const waiting = queue.get();
    queue.add('c');
    await waiting;
    expect(metrics.observed.get(LATENCY)).toEqual([1.5, 0.5, 0]);
  });

  test('of a re-add while held it starts at that add, and includes the rest of the processing', async () => {
    const { queue, metrics, clock } = make();
    queue.add('a');
    await takeNow(queue);
    clock.advance(100);
    queue.add('a');
    clock.advance(200);
    queue.done('a');
    clock.advance(30);
    await takeNow(queue);
    expect(metrics.observed.get(LATENCY)).toEqual([0, 0.23]);
  });

  test('of a delayed item it starts when its time comes', async () => {
    const { queue, metrics, clock } = make();
    queue.addAfter('a', 1_000);
    clock.advance(1_200);
    await takeNow(queue);
    expect(metrics.observed.get(LATENCY)).toEqual([0.2]);
  });
});

describe('work duration, in seconds', () => {
  test('from the hand-out to done, by whoever', async () => {
    const { queue, metrics, clock } = make();
    for (const item of 'ab') queue.add(item);
    await takeNow(queue);
    clock.advance(250);
    const { value: lease } = await queue.leases().next();
    clock.advance(250);
    queue.done('a');
    lease?.done();
    lease?.done();
    expect(metrics.observed.get(WORK)).toEqual([0.5, 0.25]);
  });

  test('not of what was not held', () => {
    const { queue, metrics } = make();
    queue.add('a');
    thrownBy(() => {
      queue.done('a');
    });
    expect(metrics.observed.get(WORK)).toEqual([]);
  });
});

describe('unfinished work and the longest running processor, in seconds', () => {
  test('are the sum and the maximum over what is held, worked out when they are read', async () => {
    const { queue, metrics, clock } = make();
    const gauges = (): unknown => [metrics.read(UNFINISHED), metrics.read(LONGEST)];
    expect(gauges()).toEqual([0, 0]);
    for (const item of 'ab') queue.add(item);
    expect(gauges()).toEqual([0, 0]);
    await takeNow(queue);
    clock.advance(1_000);
    await takeNow(queue);
    clock.advance(500);
    expect(gauges()).toEqual([2, 1.5]);
    clock.advance(500); // two are stuck: a slope of two
    expect(gauges()).toEqual([3, 2]);
    queue.done('a');
    expect(gauges()).toEqual([1, 1]);
    queue.add('a');
    await takeNow(queue);
    clock.advance(1_000);
    expect(gauges()).toEqual([3, 2]); // b is held longest
    for (const item of 'ab') queue.done(item);
    expect(gauges()).toEqual([0, 0]);
  });

  test('go on while a queue that was shut down is still worked on, and then go', async () => {
    const { queue, metrics, clock } = make();
    queue.add('a');
    await takeNow(queue);
    queue.shutDown();
    clock.advance(1_000);
    expect([metrics.read(UNFINISHED), metrics.read(LONGEST), metrics.read(DEPTH)]).toEqual([1, 1, 0]);
    queue.done('a');
    expect(metrics.readers.size).toBe(0);
  });

  test.each(['shutDown', 'shutDownWithDrain'] as const)(
    'go at once with %s of an idle queue',
    async (how) => {
      const { queue, metrics } = make();
      await queue[how]();
      expect(metrics.readers.size).toBe(0);
      await queue[how]();
    },
  );
});

test('an interrupted item was not worked on: it waits again', async () => {
  const { queue, metrics, clock } = make();
  const bench = new Workbench<string>();
  const controller = new AbortController();
  const run = queue.run(bench.worker, controller);
  queue.add('a');
  await settled();
  bench.interruptible('a');
  clock.advance(1_000);
  controller.abort();
  await run;
  expect([metrics.counts.get(ADDS), metrics.read(DEPTH), metrics.read(UNFINISHED)]).toEqual([1, 1, 0]);
  clock.advance(300);
  await takeNow(queue);
  expect([metrics.observed.get(WORK), metrics.observed.get(LATENCY)]).toEqual([[], [0, 0.3]]);
});

test('if it was added again meanwhile, it waits since then', async () => {
  const { queue, metrics, clock } = make();
  const bench = new Workbench<string>();
  const controller = new AbortController();
  const run = queue.run(bench.worker, controller);
  queue.add('a');
  await settled();
  bench.interruptible('a');
  queue.add('a');
  clock.advance(1_000);
  controller.abort();
  await run;
  await takeNow(queue);
  expect([metrics.counts.get(ADDS), metrics.observed.get(LATENCY)]).toEqual([2, [0, 1]]);
});

test('a provider that throws when the queue is made leaves no gauge behind', () => {
  const metrics = new RecordingMetrics();
  const mine = new Error('mine');
  const failing: MetricsProvider = {
    counter: metrics.counter.bind(metrics),
    gauge: metrics.gauge.bind(metrics),
    histogram: metrics.histogram.bind(metrics),
    observableGauge: (name, ...rest) => {
      if (name === LONGEST) throw mine;
      return metrics.observableGauge(name, ...rest);
    },
  };
  expect(thrownBy(() => new WorkQueue({ metrics: failing }))).toBe(mine);
  expect(metrics.readers.size).toBe(0);
});

test('a provider that throws later stops nothing: its errors are the host’s', () => {
  const { stdout, stderr, status } = runProgram(`
    import { DelayingQueue } from 'escapement';
    import { checkQueue } from 'escapement/testing';
    process.on('uncaughtException', (error) => console.log('uncaught', error.message));
    const fail = (what) => () => { throw new Error(what); };
    const metrics = {
      counter: (name) => ({ inc: fail(name) }),
      gauge: fail('gauge'),
      observableGauge: (name) => ({ remove: fail(name) }),
      histogram: (name) => ({ observe: fail(name) }),
    };
    const queue = new DelayingQueue({ metrics });
    queue.add('a');
    queue.addAfter('b', 0);
    const { item } = await queue.get();
    queue.done(item);
    queue.shutDown();
    const seen = [];
    await queue.run((item) => seen.push(item));
    checkQueue(queue);
    console.log(item, seen.join());
  `);
  expect([stderr, status]).toEqual(['', 0]);
  expect(stdout.trim().split('\n').sort()).toEqual([
    'a b',
    ...[ADDS, ADDS, DEPTH, LONGEST, LATENCY, LATENCY, RETRIES, UNFINISHED, WORK, WORK].map(
      (name) => `uncaught ${name}`,
    ),
  ]);
});
