import {
  ItemExponentialFailureRateLimiter,
  ManualClock,
  type RateLimiter,
  RateLimitingQueue,
  type RetryOptions,
  WorkQueue,
} from 'escapement';
import { checkQueue } from 'escapement/testing';
import { expect, onTestFinished, test } from 'vitest';
import { throwing, thrownBy } from '../timer/support/errors.ts';
import { settled, watch } from './support/outcome.ts';
import { takeNow } from './support/take.ts';
import { runningOn } from './support/workbench.ts';

const mine = new Error('mine');

/** A queue that is shut down after the test, and in `log` what onError and onDrop were told. */
function make(limiter?: RateLimiter<string>) {
  const clock = new ManualClock();
  const used =
    limiter ?? new ItemExponentialFailureRateLimiter<string>({ baseDelayMs: 10, maxDelayMs: 1_000 });
  const queue = new RateLimitingQueue<string>(used, { clock });
  onTestFinished(() => void queue.shutDown());
  const log: string[] = [];
  const note = (what: string, item: string, error: unknown): void => {
    log.push(`${what} ${item}: ${(error as Error).message} at ${clock.now()}`);
    checkQueue(queue);
  };
  const options: RetryOptions<string> = {
    onError: (error, item) => note('error', item, error),
    onDrop: (error, item) => note('drop', item, error),
  };
  return { clock, limiter: used, queue, log, options };
}

type Fixture = ReturnType<typeof make>;

const fail = throwing(mine);

test('an item is retried five times by default, with the delays of the limiter', async () => {
  const { queue, clock, log, options, limiter } = make();
  const run = watch(queue.run(fail, options));
  queue.add('a');
  for (let i = 0; i < 50; i++) await clock.advanceAsync(10);
  expect(log).toEqual([
    ...[0, 10, 30, 70, 150, 310].map((atMs) => `error a: mine at ${atMs}`),
    'drop a: mine at 310',
  ]);
  expect([limiter.numRequeues('a'), queue.waiting, queue.length]).toEqual([0, 0, 0]);
  expect(run.state).toBe('pending');
  queue.shutDown();
  await run.promise;
});

test.each([
  [0, ['error a: mine at 0', 'drop a: mine at 0']],
  [1, ['error a: mine at 0', 'error a: mine at 10', 'drop a: mine at 10']],
])('an item is retried maxRetries times: %d', async (maxRetries, expected) => {
  const { queue, clock, log, options } = make();
  void queue.run(fail, { ...options, maxRetries });
  queue.add('a');
  await clock.advanceAsync(100);
  expect(log).toEqual(expected);
});

test('with maxRetries Infinity an item is retried for ever', async () => {
  const { queue, clock, log, options } = make();
  void queue.run(fail, { ...options, maxRetries: Infinity });
  queue.add('a');
  for (let i = 0; i < 100; i++) await clock.advanceAsync(1_000);
  expect(log.length).toBeGreaterThan(90);
  expect(log.some((line) => line.startsWith('drop'))).toBe(false);
});

test('an item that was dropped starts anew when it is added again', async () => {
  const { queue, clock, log, options } = make();
  void queue.run(fail, { ...options, maxRetries: 1 });
  queue.add('a');
  await clock.advanceAsync(10);
  log.length = 0;
  queue.add('a');
  await clock.advanceAsync(10);
  expect(log).toEqual(['error a: mine at 10', 'error a: mine at 20', 'drop a: mine at 20']);
});

test('a retry has the newest object', async () => {
  const clock = new ManualClock();
  const limiter = new ItemExponentialFailureRateLimiter<{ key: string; version: number }>({
    baseDelayMs: 10,
    maxDelayMs: 10,
  });
  const queue = new RateLimitingQueue(limiter, { clock, keyOf: ({ key }) => key });
  const seen: number[] = [];
  const run = queue.run(({ version }) => {
    seen.push(version);
    if (version === 1) queue.add({ key: 'a', version: 2 });
    if (seen.length === 1) throw mine;
  });
  queue.add({ key: 'a', version: 1 });
  await clock.advanceAsync(10);
  expect(seen).toEqual([1, 2, 2]); // queued while it was held, and its retry
  queue.shutDown();
  await run;
});

test('an interruption is not a failure', async () => {
  const { queue, log, options, limiter } = make();
  queue.add('a');
  const { bench, run, abort } = await runningOn(queue, options);
  bench.interruptible('a');
  abort();
  await run.promise;
  expect([log, limiter.numRequeues('a'), queue.length, queue.waiting]).toEqual([[], 0, 1, 0]);
});

test('a failure after the abort waits for its retry', async () => {
  const { queue, log, options } = make();
  queue.add('a');
  const { bench, run, abort } = await runningOn(queue, options);
  abort();
  await bench.fail('a', mine);
  await run.promise;
  expect([log, queue.numRequeues('a'), queue.waiting]).toEqual([['error a: mine at 0'], 1, 1]);
  expect(queue.shutDown()).toEqual(['a']);
});

test('an item that fails after shutdown is dropped', async () => {
  const { queue, log, options, limiter } = make();
  queue.add('a');
  const { bench, run } = await runningOn(queue, options);
  queue.shutDown();
  await bench.fail('a', mine);
  await run.promise;
  expect(log).toEqual(['error a: mine at 0', 'drop a: mine at 0']);
  expect(limiter.numRequeues('a')).toBe(0);
  await queue.shutDownWithDrain();
});

test('success forgets the failures of an item', async () => {
  const { queue, clock, options, limiter } = make();
  let failures = 3;
  const seen: number[] = [];
  void queue.run((_, { numRequeues }) => {
    seen.push(numRequeues);
    if (failures-- > 0) fail();
  }, options);
  queue.add('a');
  await clock.advanceAsync(70);
  expect(seen).toEqual([0, 1, 2, 3]);
  expect(limiter.numRequeues('a')).toBe(0);
  queue.add('a');
  await clock.advanceAsync(0);
  expect(seen.at(-1)).toBe(0);
});

test('forget and numRequeues use the limiter', () => {
  const { queue } = make();
  for (let i = 0; i < 3; i++) queue.addRateLimited('a');
  expect([queue.numRequeues('a'), queue.waiting, queue.length]).toEqual([3, 1, 0]);
  queue.forget('a');
  expect([queue.numRequeues('a'), queue.waiting]).toEqual([0, 1]); // it stays where it is
});

test('onDrop may add its item again, which is processed once more', async () => {
  const { queue } = make();
  const dropped: string[] = [];
  let calls = 0;
  queue.add('a');
  await queue.run(
    () => {
      if (++calls < 3) throw mine;
      queue.shutDown();
    },
    {
      maxRetries: 0,
      onDrop: (_error, item) => {
        dropped.push(item);
        queue.add(item);
        checkQueue(queue);
      },
    },
  );
  expect([dropped, calls]).toEqual([['a', 'a'], 3]);
});

test('onError may call done and forget for its item', async () => {
  const { queue, clock } = make();
  void queue.run(fail, {
    onError: (_, item) => {
      queue.done(item);
      queue.forget(item);
    },
  });
  queue.add('a');
  await settled();
  checkQueue(queue);
  expect(queue.waiting).toBe(1);
  expect(queue.cancelDelayed('a')).toBe(true);
  clock.advance(100);
  expect(queue.length).toBe(0);
});

test('an item whose worker calls done itself and fails is retried, and no other', async () => {
  const { queue, clock } = make();
  const seen: unknown[] = [];
  void queue.run((item) => {
    seen.push(item);
    queue.done(item);
    if (seen.length === 1) throw mine;
  });
  queue.add('a');
  await clock.advanceAsync(10);
  expect(seen).toEqual(['a', 'a']);
});

const withDelay = (when: () => number): Fixture =>
  make({ when, forget: () => undefined, numRequeues: () => 0 });

test.each([
  ['NaN', NaN, 'RangeError', 'ERR_OUT_OF_RANGE'],
  ['a string', '5', 'TypeError', 'ERR_INVALID_ARG_TYPE'],
  ['undefined', undefined, 'TypeError', 'ERR_INVALID_ARG_TYPE'],
  ['a bigint', 5n, 'TypeError', 'ERR_INVALID_ARG_TYPE'],
])('addRateLimited throws if the limiter returns %s, and nothing waits', (_, delay, name, code) => {
  const { queue } = withDelay(() => delay as number);
  expect(thrownBy(() => queue.addRateLimited('a'))).toMatchObject({ name, code });
  expect([queue.length, queue.waiting]).toEqual([0, 0]);
  checkQueue(queue);
});

test.each([-1, -Infinity, 0, -0])('addRateLimited adds at once if the limiter returns %d', (delayMs) => {
  const { queue } = withDelay(() => delayMs);
  queue.addRateLimited('a');
  expect([queue.length, queue.waiting]).toEqual([1, 0]);
});

test('addRateLimited parks the item if the limiter returns Infinity', () => {
  const { queue, clock } = withDelay(() => Infinity);
  queue.addRateLimited('a');
  expect([queue.length, queue.waiting, clock.pendingWakeups]).toEqual([0, 1, 0]);
  expect(queue.shutDown()).toEqual(['a']);
});

test('an error of the limiter is thrown to the caller', () => {
  const { queue } = withDelay(fail);
  expect(thrownBy(() => queue.addRateLimited('a'))).toBe(mine);
  expect(queue.waiting).toBe(0);
});

test('a limiter may shut the queue down, and the item is not waiting', () => {
  const fixture: Fixture = withDelay(() => {
    fixture.queue.shutDown();
    return 10;
  });
  fixture.queue.addRateLimited('a');
  expect([fixture.queue.waiting, fixture.clock.pendingWakeups]).toEqual([0, 0]);
});

test('a limiter may add the item itself, which waits all the same', () => {
  const fixture: Fixture = withDelay(() => {
    fixture.queue.add('a');
    return 10;
  });
  fixture.queue.addRateLimited('a');
  expect([fixture.queue.length, fixture.queue.waiting]).toEqual([1, 1]);
  checkQueue(fixture.queue);
});

test('a snapshot of a queue has the items that failed, those that failed most often first', async () => {
  const { queue } = make();
  for (const item of ['waiting', 'waiting', 'ready', 'ready', 'ready', 'held']) queue.addRateLimited(item);
  queue.add('ready');
  queue.add('new');
  queue.add('held');
  await takeNow(queue);
  expect(queue.inspect()).toEqual({
    ...{ name: 'workqueue', depth: 2, inProgress: 1, waiting: 1 },
    retries: [
      { key: 'ready', retries: 3 },
      { key: 'waiting', retries: 2 },
      { key: 'held', retries: 1 },
    ],
  });
});

test('a snapshot of a queue without a limiter has no retries', () => {
  const queue = new WorkQueue<string>({ name: 'pods' });
  queue.add('a');
  expect(queue.inspect()).toEqual({ name: 'pods', depth: 1, inProgress: 0, waiting: 0, retries: [] });
});

test('a snapshot reads a limited number of items', () => {
  const asked = new Set<string>();
  const limiter: RateLimiter<string> = {
    when: () => 1_000,
    forget: () => undefined,
    numRequeues: (item) => asked.add(item).size,
  };
  const { queue } = make(limiter);
  for (let nth = 0; nth < 5_000; nth++) {
    queue.addRateLimited(`waiting ${nth}`);
    queue.add(`ready ${nth}`);
  }
  expect(queue.inspect().retries).toHaveLength(100);
  expect(asked.size).toBe(2_000);
});
