import {
  BucketRateLimiter,
  DelayingQueue,
  ItemExponentialFailureRateLimiter,
  ManualClock,
  MaxOfRateLimiter,
  RateLimitingQueue,
  SystemTimer,
  WorkQueue,
} from 'escapement';
import { checkQueue } from 'escapement/testing';
import { describe, expect, test } from 'vitest';
import { thrownBy } from '../timer/support/errors.ts';
import { settled, watch } from './support/outcome.ts';
import { processAll, takeAll, takeNow } from './support/take.ts';

/** What client-go's workqueue does, and this one does not: each test names it. */
describe('unlike client-go, in the queue', () => {
  test('a drain waits for queued items, not only for those in processing (kubernetes#141079)', async () => {
    const queue = new WorkQueue<string>();
    for (const item of 'ab') queue.add(item);
    const drain = watch(queue.shutDownWithDrain());
    await settled();
    expect([drain.state, queue.length]).toEqual(['pending', 2]); // there: returns at once
    queue.done(await takeNow(queue));
    await settled();
    expect(drain.state).toBe('pending'); // there: returns with the last done, one is left
    queue.done(await takeNow(queue));
    await settled();
    expect(drain.state).toBe('resolved');
  });

  test('two drains at once both resolve', async () => {
    const queue = new WorkQueue<string>();
    queue.add('a');
    await takeNow(queue);
    const drains = [queue.shutDownWithDrain(), queue.shutDownWithDrain()];
    queue.done('a');
    await Promise.all(drains);
  });

  test('a second done of a queued item is an error, and adds no second entry', async () => {
    const queue = new WorkQueue<string>();
    queue.add('a');
    expect(thrownBy(() => queue.done('a'))).toHaveProperty('code', 'ERR_NOT_PROCESSING');
    await takeNow(queue);
    queue.add('a');
    queue.done('a');
    expect(thrownBy(() => queue.done('a'))).toHaveProperty('code', 'ERR_NOT_PROCESSING');
    expect(queue.length).toBe(1);
    expect(await processAll(queue)).toEqual(['a']);
  });

  test('done of an unknown item is an error', () =>
    expect(thrownBy(() => new WorkQueue<string>().done('a'))).toHaveProperty('code', 'ERR_NOT_PROCESSING'));

  test('a worker that fails without done does not block its key for ever', async () => {
    const queue = new WorkQueue<string>();
    queue.add('a');
    const run = queue.run(
      () => {
        throw new Error('panic');
      },
      { onError: () => undefined },
    );
    await settled();
    await queue.shutDownWithDrain();
    await run;
  });

  test('a get can be aborted without a shutdown (kubernetes#131185)', async () => {
    const queue = new WorkQueue<string>();
    const controller = new AbortController();
    const waiting = watch(queue.get(controller));
    controller.abort();
    await settled();
    expect([waiting.state, queue.shuttingDown]).toEqual(['rejected', false]);
  });

  test('NaN is equal to itself as an item', async () => {
    const queue = new WorkQueue<number>();
    queue.add(NaN);
    queue.add(NaN);
    expect(await processAll(queue)).toEqual([NaN]);
  });

  test('with keyOf objects are deduplicated by their keys (solo-kit#353)', async () => {
    const queue = new WorkQueue<{ name: string }>({ keyOf: ({ name }) => name });
    for (let i = 0; i < 3; i++) queue.add({ name: 'a' });
    expect(await takeAll(queue)).toHaveLength(1);
  });

  test('a new get is served after the callers that wait', async () => {
    const queue = new WorkQueue<string>();
    const gets = Array.from({ length: 3 }, () => watch(queue.get()));
    queue.add('a');
    const late = watch(queue.get());
    for (const item of 'bcd') queue.add(item);
    await settled();
    expect([...gets, late].map(({ value }) => (value as { item: string }).item)).toEqual([
      'a',
      'b',
      'c',
      'd',
    ]);
  });

  test('shutDown and shutDownWithDrain in any order release and lose no drain', async () => {
    const queue = new WorkQueue<string>();
    queue.add('a');
    await takeNow(queue);
    queue.shutDown();
    const first = watch(queue.shutDownWithDrain());
    queue.shutDown();
    const second = watch(queue.shutDownWithDrain());
    queue.shutDown();
    await settled();
    expect([first.state, second.state]).toEqual(['pending', 'pending']);
    queue.done('a');
    await settled();
    expect([first.state, second.state]).toEqual(['resolved', 'resolved']);
  });

  test('shutDown from several callers at once blocks none of them (kubernetes#119554)', async () => {
    const queue = new WorkQueue<number>();
    for (let i = 0; i < 20; i++) queue.add(i);
    const drains: Promise<void>[] = [];
    await queue.run(
      async (item) => {
        await settled();
        if (item % 2 === 0) queue.shutDown();
        else drains.push(queue.shutDownWithDrain());
      },
      { concurrency: 5 },
    );
    await Promise.all(drains);
    expect(drains).toHaveLength(10);
  });

  test('get after the end resolves, however often it is called', async () => {
    const queue = new WorkQueue<string>();
    queue.shutDown();
    const taken = await Promise.all(Array.from({ length: 5 }, () => queue.get()));
    expect(taken.every(({ shutdown }) => shutdown)).toBe(true);
  });
});

describe('unlike client-go, with delays', () => {
  test('an add of a waiting item does not deliver it twice (kubernetes#126027)', async () => {
    const clock = new ManualClock();
    const queue = new DelayingQueue<string>({ clock });
    queue.addAfter('a', 10);
    queue.addAfter('a', 0);
    expect(await processAll(queue)).toEqual(['a']);
    clock.advance(100);
    expect(queue.length).toBe(0);
  });

  test('waiting items with equal due times are first in, first out', async () => {
    const clock = new ManualClock();
    const queue = new DelayingQueue<number>({ clock });
    for (let i = 0; i < 8; i++) queue.addAfter(i, 10);
    clock.advance(10);
    expect(await processAll(queue)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test('a waiting item can be cancelled (kubernetes#133560), and postponed that way', () => {
    const clock = new ManualClock();
    const queue = new DelayingQueue<string>({ clock });
    queue.addAfter('a', 10);
    expect(queue.cancelDelayed('a')).toBe(true);
    queue.addAfter('a', 20);
    clock.advance(19);
    expect(queue.length).toBe(0);
    clock.advance(1);
    expect(queue.length).toBe(1);
    queue.shutDown();
  });

  test('shutdown returns waiting items, and a drain leaves no timer behind', async () => {
    const clock = new ManualClock();
    const queue = new DelayingQueue<string>({ clock });
    for (const item of 'ab') queue.addAfter(item, 10);
    await queue.shutDownWithDrain();
    expect(clock.pendingWakeups).toBe(0);
    expect(queue.shutDown()).toEqual(['a', 'b']);
  });

  test('a queue has no heartbeat, and one wake-up for any number of delays (kubernetes#83895)', () => {
    const clock = new ManualClock();
    const queue = new DelayingQueue<number>({ clock });
    expect(clock.pendingWakeups).toBe(0);
    for (let i = 1; i <= 5_000; i++) queue.addAfter(i, i * 1e6); // more than the 1000 that fit there
    expect([clock.pendingWakeups, queue.waiting]).toEqual([1, 5_000]);
    clock.advance(1e9);
    expect([clock.pendingWakeups, queue.waiting, queue.length]).toEqual([1, 4_000, 1_000]);
    queue.shutDown();
    expect(clock.pendingWakeups).toBe(0);
  });

  test('an infinite delay arms nothing', () => {
    const clock = new ManualClock();
    const queue = new DelayingQueue<string>({ clock });
    queue.addAfter('a', Infinity);
    expect([clock.pendingWakeups, queue.waiting]).toEqual([0, 1]);
  });

  test('a delay of more than 24.8 days does not end at once', () => {
    const clock = new ManualClock();
    const queue = new DelayingQueue<string>({ timer: new SystemTimer({ clock }) });
    queue.addAfter('a', 30 * 86_400_000);
    clock.advance(30 * 86_400_000 - 1);
    expect(queue.length).toBe(0);
    clock.advance(1);
    expect(queue.length).toBe(1);
  });
});

describe('unlike client-go, with limiters', () => {
  const OVER = 2_000;

  test('an exponential limiter with a base of 0 does not overflow', () => {
    const limiter = new ItemExponentialFailureRateLimiter<string>({ baseDelayMs: 0, maxDelayMs: 10 });
    for (let i = 0; i < OVER; i++) expect(limiter.when('a')).toBe(0);
  });

  test('an exponential limiter with a power of two as its base never returns a shorter delay', () => {
    const limiter = new ItemExponentialFailureRateLimiter<string>({ baseDelayMs: 1e-6, maxDelayMs: 1e6 });
    const nanosecond = new ItemExponentialFailureRateLimiter<string>({
      baseDelayMs: 2 ** -20,
      maxDelayMs: 2 ** 40,
    });
    for (const each of [limiter, nanosecond]) {
      let last = 0;
      for (let i = 0; i < OVER; i++) {
        const delayMs = each.when('a');
        expect(delayMs).toBeGreaterThanOrEqual(last);
        last = delayMs;
      }
    }
  });

  test('after a shutdown no failure is counted, and no token is used', () => {
    const clock = new ManualClock();
    const bucket = new BucketRateLimiter<string>({ ratePerSecond: 1, burst: 1, clock });
    const failures = new ItemExponentialFailureRateLimiter<string>({ baseDelayMs: 1, maxDelayMs: 1 });
    const queue = new RateLimitingQueue(new MaxOfRateLimiter(bucket, failures), { clock });
    queue.shutDown();
    queue.addRateLimited('a');
    expect([failures.numRequeues('a'), bucket.when('a')]).toEqual([0, 0]);
  });

  test('the bucket uses the clock that it is given', () => {
    const clock = new ManualClock();
    const bucket = new BucketRateLimiter<string>({ ratePerSecond: 1, burst: 1, clock });
    expect([bucket.when(), bucket.when()]).toEqual([0, 1_000]); // exactly
    clock.advance(2_000);
    expect(bucket.when()).toBe(0);
  });

  test('the number of remembered failures can be bounded (kubernetes#138743)', () => {
    const limiter = new ItemExponentialFailureRateLimiter<number>({
      baseDelayMs: 1,
      maxDelayMs: 1,
      maxItems: 1_000,
    });
    for (let item = 0; item < 10_000; item++) limiter.when(item);
    let remembered = 0;
    for (let item = 0; item < 10_000; item++) remembered += limiter.numRequeues(item);
    expect(remembered).toBeLessThanOrEqual(1_000);
  });

  test('the first retry waits, and further calls do not postpone it, as in client-go', () => {
    const clock = new ManualClock();
    const limiter = new ItemExponentialFailureRateLimiter<string>({ baseDelayMs: 5, maxDelayMs: 1_000 });
    const queue = new RateLimitingQueue(limiter, { clock });
    for (let i = 0; i < 3; i++) queue.addRateLimited('a');
    clock.advance(4);
    expect(queue.length).toBe(0);
    clock.advance(1);
    expect([queue.length, queue.numRequeues('a')]).toEqual([1, 3]);
    checkQueue(queue);
  });
});
