import {
  DelayingQueue,
  ManualClock,
  type MetricsProvider,
  RateLimitingQueue,
  SystemTimer,
  WorkQueue,
} from 'escapement';
import { checkQueue } from 'escapement/testing';
import { expect, test } from 'vitest';
import { throwing, thrownBy } from '../timer/support/errors.ts';
import { RecordingMetrics } from '../metrics/recording-metrics.ts';
import { uncaughtErrors } from '../uncaught-errors.ts';
import { settled } from './support/outcome.ts';
import { takeNow } from './support/take.ts';
import { runningOn } from './support/workbench.ts';

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

test('the metrics have the names of Kubernetes, and the name of the queue as a label', () => {
  const { metrics } = make();
  expect([...metrics.counts.keys()].sort()).toEqual([ADDS, RETRIES]);
  expect([...metrics.readers.keys()].sort()).toEqual([DEPTH, LONGEST, UNFINISHED]);
  expect([...metrics.observed.keys()].sort()).toEqual([LATENCY, WORK]);
  expect(metrics.labels).toEqual(Array(7).fill({ name: 'pods' }));
  for (const help of metrics.helps.values()) expect(help).toMatch(/^[A-Z].+\.$/);
});

test('both histograms have ten buckets, from 1e-8 to 10 seconds', () => {
  const { metrics } = make();
  const buckets = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10];
  expect([...metrics.buckets.values()]).toEqual([buckets, buckets]);
});

test('no timer runs for the metrics', async () => {
  const { queue, clock } = make();
  queue.add('a');
  await takeNow(queue);
  expect(clock.pendingWakeups).toBe(0);
  queue.done('a');
  queue.shutDown();
  expect(clock.pendingWakeups).toBe(0);
});

test('a queue without a provider measures nothing and reads no clock', async () => {
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

test('adds count each accepted item once, and once more if it was added again while it was held', async () => {
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

test('retries count calls of addAfter and addRateLimited before the shutdown, whatever the delay', () => {
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
  queue.addAfter('e', 0);
  queue.addRateLimited('e');
  expect(metrics.counts.get(RETRIES)).toBe(4);
});

test('depth includes items that were added again while they are held, and no delayed items', async () => {
  const { queue, metrics } = make();
  const expectDepth = (depth: number, length: number): void =>
    expect([metrics.read(DEPTH), queue.length]).toEqual([depth, length]);
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

test('the queue duration starts at the first accepted add and ends when the item is taken', async () => {
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

test('the queue duration of an item that was added again while it was held starts at that add', async () => {
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

test('the queue duration of a delayed item starts when its delay ends', async () => {
  const { queue, metrics, clock } = make();
  queue.addAfter('a', 1_000);
  clock.advance(1_200);
  await takeNow(queue);
  expect(metrics.observed.get(LATENCY)).toEqual([0.2]);
});

test('a queue measures on the clock of its timer', async () => {
  const metrics = new RecordingMetrics();
  const clock = new ManualClock();
  const queue = new DelayingQueue<string>({ metrics, timer: new SystemTimer({ clock }) });
  queue.add('a');
  clock.advance(100);
  await takeNow(queue);
  expect(metrics.observed.get(LATENCY)).toEqual([0.1]);
});

test('the work duration ends with done, whichever caller calls it', async () => {
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

test('the work duration does not include an item that was not held', () => {
  const { queue, metrics } = make();
  queue.add('a');
  thrownBy(() => queue.done('a'));
  expect(metrics.observed.get(WORK)).toEqual([]);
});

test('unfinished work and the longest running processor are the sum and the maximum over held items, computed when they are read', async () => {
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

test('the gauges remain while items of a queue that was shut down are held, and are removed then', async () => {
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
  'the gauges are removed at once by %s of an idle queue',
  async (how) => {
    const { queue, metrics } = make();
    await queue[how]();
    expect(metrics.readers.size).toBe(0);
    await queue[how]();
  },
);

test('an interrupted item has no work duration, and waits again', async () => {
  const { queue, metrics, clock } = make();
  queue.add('a');
  const { bench, run, abort } = await runningOn(queue, {});
  bench.interruptible('a');
  clock.advance(1_000);
  abort();
  await run.promise;
  expect([metrics.counts.get(ADDS), metrics.read(DEPTH), metrics.read(UNFINISHED)]).toEqual([1, 1, 0]);
  clock.advance(300);
  await takeNow(queue);
  expect([metrics.observed.get(WORK), metrics.observed.get(LATENCY)]).toEqual([[], [0, 0.3]]);
});

test('an interrupted item that was added again meanwhile has waited since then', async () => {
  const { queue, metrics, clock } = make();
  queue.add('a');
  const { bench, run, abort } = await runningOn(queue, {});
  bench.interruptible('a');
  queue.add('a');
  clock.advance(1_000);
  abort();
  await run.promise;
  await takeNow(queue);
  expect([metrics.counts.get(ADDS), metrics.observed.get(LATENCY)]).toEqual([2, [0, 1]]);
});

test('a provider that throws in the constructor leaves no gauge behind', () => {
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

test('a provider that throws later stops nothing, and its errors are uncaught exceptions', async () => {
  const uncaught = uncaughtErrors();
  const observableGauge = (name: string) => ({ remove: throwing(new Error(`${name} is broken`)) });
  const metrics = Object.assign(new RecordingMetrics(), { observableGauge });
  const queue = new DelayingQueue<string>({ metrics });
  for (const name of [ADDS, RETRIES, LATENCY, WORK]) metrics.broken.add(name);
  queue.add('a');
  queue.addAfter('b', 0);
  queue.done(await takeNow(queue));
  queue.shutDown();
  const seen: string[] = [];
  await queue.run((item) => seen.push(item));
  checkQueue(queue);
  await settled();
  expect(seen).toEqual(['b']);
  const broken = [ADDS, ADDS, DEPTH, LONGEST, LATENCY, LATENCY, RETRIES, UNFINISHED, WORK, WORK];
  expect(uncaught.map(({ message }) => message).sort()).toEqual(broken.map((name) => `${name} is broken`));
});
