import {
  BucketRateLimiter,
  DelayingQueue,
  ItemExponentialFailureRateLimiter,
  ManualClock,
  MaxOfRateLimiter,
  RateLimitingQueue,
  WorkQueue,
} from 'escapement';
import { checkQueue } from 'escapement/testing';
import { expect, test } from 'vitest';
import { rejectionOf, settled, watch } from './support/outcome.ts';
import { leaseNow, takeNow, queueOf, queueHolding } from './support/take.ts';

const END = { item: undefined, shutdown: true };

test('after shutdown nothing is queued, held or waiting', async () => {
  const clock = new ManualClock();
  const limiter = new ItemExponentialFailureRateLimiter({ baseDelayMs: 5, maxDelayMs: 10 });
  const queue = new RateLimitingQueue<string>(limiter, { clock });
  expect(queue.shuttingDown).toBe(false);
  queue.shutDown();
  expect(queue.shuttingDown).toBe(true);
  queue.add('a');
  queue.addAfter('b', 10);
  queue.addAfter('c', 0);
  queue.addAfter('d', Infinity);
  queue.addRateLimited('e');
  expect([queue.length, queue.waiting, clock.pendingWakeups]).toEqual([0, 0, 0]);
  clock.advance(100);
  expect(queue.length).toBe(0);
  expect(await queue.get()).toEqual(END);
  checkQueue(queue);
});

test('after shutdown no token or failure is counted', () => {
  const clock = new ManualClock();
  const exponential = new ItemExponentialFailureRateLimiter<string>({ baseDelayMs: 5, maxDelayMs: 10 });
  const bucket = new BucketRateLimiter<string>({ ratePerSecond: 1, burst: 1, clock });
  const queue = new RateLimitingQueue(new MaxOfRateLimiter(exponential, bucket), { clock });
  queue.shutDown();
  for (let i = 0; i < 10; i++) queue.addRateLimited('a');
  expect([queue.numRequeues('a'), bucket.when('a')]).toEqual([0, 0]);
});

test('after shutdown addWhenRoom rejects', async () => {
  const queue = new WorkQueue<string>({ name: 'pods' });
  queue.shutDown();
  expect(await rejectionOf(queue.addWhenRoom('a'))).toMatchObject({
    name: 'EscapementError',
    code: 'ERR_QUEUE_SHUT_DOWN',
    op: 'WorkQueue.addWhenRoom',
  });
});

test('addWhenRoom rejects if keyOf shuts the full queue down', async () => {
  let isLast = false;
  const queue = new WorkQueue<string>({
    maxSize: 1,
    keyOf: (item) => {
      if (isLast) queue.shutDown();
      return item;
    },
  });
  queue.add('a');
  isLast = true;
  expect(await rejectionOf(queue.addWhenRoom('b'))).toMatchObject({ code: 'ERR_QUEUE_SHUT_DOWN' });
});

test('a keyOf that shuts the queue down is inside an add that is ignored', () => {
  const clock = new ManualClock();
  const adds: ((queue: DelayingQueue<string>) => void)[] = [
    (queue) => queue.add('a'),
    (queue) => queue.addAfter('a', 50),
  ];
  for (const add of adds) {
    const queue = new DelayingQueue<string>({
      clock,
      keyOf: (item: string): string => {
        queue.shutDown();
        return item;
      },
    });
    add(queue);
    expect([queue.length, queue.waiting, clock.pendingWakeups]).toEqual([0, 0, 0]);
    checkQueue(queue);
  }
});

test('after shutdown queued items are still taken, by get, leases and run', async () => {
  const queue = queueOf('abc');
  queue.shutDown();
  expect(await takeNow(queue)).toBe('a');
  const leases = queue.leases();
  expect((await leaseNow(leases)).item).toBe('b');
  const seen: string[] = [];
  await queue.run((item) => seen.push(item));
  expect(seen).toEqual(['c']);
  expect(await leases.next()).toEqual({ done: true, value: undefined });
  for (let i = 0; i < 2; i++) expect(await queue.get()).toEqual(END);
  for (const item of 'ab') queue.done(item);
  checkQueue(queue);
});

test('shutdown ends every waiting call at once', async () => {
  const queue = new WorkQueue<string>();
  const gets = [watch(queue.get()), watch(queue.get({ signal: new AbortController().signal }))];
  const step = watch(queue.leases().next());
  const run = watch(queue.run(() => undefined, { concurrency: 3 }));
  await settled();
  queue.shutDown();
  queue.shutDown();
  await settled();
  expect(gets.map(({ value }) => value)).toEqual([END, END]);
  expect(step.value).toEqual({ done: true, value: undefined });
  expect(run.state).toBe('resolved');
  checkQueue(queue);
});

test('an item that was added again before the shutdown is taken once more, and waiting callers wait for it', async () => {
  const queue = await queueHolding('a');
  queue.add('a');
  const waiting = watch(queue.get());
  queue.shutDown();
  await settled();
  checkQueue(queue);
  expect(waiting.state).toBe('pending');
  queue.done('a');
  await settled();
  expect(waiting.value).toEqual({ item: 'a', shutdown: false });
  queue.done('a');
  expect(await queue.get()).toEqual(END);
});

test('a drain does not resolve while an item is queued, held, or queued again (kubernetes#141079)', async () => {
  const queue = queueOf('ab');
  await takeNow(queue);
  queue.add('a');
  const drain = watch(queue.shutDownWithDrain());
  const expectPending = async (): Promise<void> => {
    await settled();
    checkQueue(queue);
    expect(drain.state).toBe('pending');
  };
  await expectPending(); // b is queued; a is held, and was added again
  expect(await takeNow(queue)).toBe('b');
  queue.done('b');
  await expectPending();
  queue.done('a');
  await expectPending(); // a is queued again
  expect(await takeNow(queue)).toBe('a');
  await expectPending();
  queue.done('a');
  await settled();
  expect(drain.state).toBe('resolved');
});

test('a signal ends the wait for a drain, and not the shutdown', async () => {
  const reason = new Error('mine');
  const queue = queueOf('a');
  const controller = new AbortController();
  const drain = watch(queue.shutDownWithDrain(controller));
  controller.abort(reason);
  await settled();
  expect([drain.value, queue.shuttingDown]).toEqual([reason, true]);
});

test('shutDown() does not release a pending drain', async () => {
  const queue = await queueHolding('a');
  const drain = watch(queue.shutDownWithDrain());
  queue.shutDown();
  await settled();
  expect(drain.state).toBe('pending');
  queue.done('a');
  await settled();
  expect(drain.state).toBe('resolved');
});

test('shutDown returns waiting items once, in order of due times, with parked ones last', () => {
  const clock = new ManualClock();
  const queue = new DelayingQueue<string>({ clock });
  queue.addAfter('parked', Infinity);
  queue.addAfter('late', 20);
  queue.addAfter('soon', 10);
  queue.addAfter('also late', 20);
  queue.add('ready');
  expect(clock.pendingWakeups).toBe(1);
  expect(queue.shutDown()).toEqual(['soon', 'late', 'also late', 'parked']);
  expect([queue.waiting, queue.length, clock.pendingWakeups]).toEqual([0, 1, 0]);
  expect(queue.shutDown()).toEqual([]);
  clock.advance(100);
  expect(queue.length).toBe(1);
  checkQueue(queue);
});

test('a drain does not wait for waiting items, which shutDown returns afterwards', async () => {
  const clock = new ManualClock();
  const queue = new DelayingQueue<string>({ clock });
  queue.addAfter('a', 10);
  await queue.shutDownWithDrain();
  expect([queue.waiting, clock.pendingWakeups]).toEqual([0, 0]);
  expect(queue.shutDown()).toEqual(['a']);
  expect(queue.shutDown()).toEqual([]);
});

test('a drain with invalid options drops nothing', async () => {
  const queue = new DelayingQueue<string>({ clock: new ManualClock() });
  queue.addAfter('a', 10);
  const error = await rejectionOf(queue.shutDownWithDrain({ signal: 5 as never }));
  expect(error).toHaveProperty('code', 'ERR_INVALID_ARG_TYPE');
  expect([queue.waiting, queue.shuttingDown]).toEqual([1, false]);
  expect(queue.shutDown()).toEqual(['a']);
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

test('a shutdown from inside a worker ends the waiting workers at once', async () => {
  const queue = new WorkQueue<string>();
  const run = watch(queue.run(() => queue.shutDown(), { concurrency: 3 }));
  await settled();
  queue.add('a');
  await settled();
  expect(run.state).toBe('resolved');
});
