import { expectTypeOf, test } from 'vitest';
import {
  BucketRateLimiter,
  defaultControllerRateLimiter,
  DelayedOperationPurgatory,
  DelayingQueue,
  ItemExponentialFailureRateLimiter,
  ItemFastSlowRateLimiter,
  ManualClock,
  MaxOfRateLimiter,
  parallelizeUntil,
  RateLimitingQueue,
  SystemTimer,
  WithJitterRateLimiter,
  WithMaxWaitRateLimiter,
  WorkQueue,
  type DelayedOperation,
  type Lease,
  type MetricsProvider,
  type RateLimiter,
} from 'escapement';
import { dashboard } from 'escapement/dashboard';
import { DiskQueue } from 'escapement/diskqueue';
import { EmbeddedBroker } from 'escapement/tasks';
import { checkQueue } from 'escapement/testing';

interface Pod {
  readonly name: string;
}

test('a queue gives back the items that it takes', () => {
  const queue = new WorkQueue<Pod>({ name: 'pods', keyOf: ({ name }) => name });
  expectTypeOf<(typeof queue)['add']>().toEqualTypeOf<(item: Pod) => void>();
  expectTypeOf<(typeof queue)['done']>().toEqualTypeOf<(item: Pod) => void>();
  expectTypeOf(queue.length).toEqualTypeOf<number>();
  expectTypeOf(queue.shuttingDown).toEqualTypeOf<boolean>();
  expectTypeOf<(typeof queue)['shutDown']>().returns.toBeVoid();
  expectTypeOf(queue.shutDownWithDrain()).toEqualTypeOf<Promise<void>>();
  expectTypeOf(queue.addWhenRoom({ name: 'a' })).toEqualTypeOf<Promise<void>>();
  checkQueue(queue);
  // @ts-expect-error -- another item
  queue.add('a');
  // @ts-expect-error -- the gauges are read, not written
  queue.length = 5;
  // @ts-expect-error -- an option that there is not
  new WorkQueue<Pod>({ size: 5 });
});

test('shutdown distinguishes what get resolves with', async () => {
  const queue = new WorkQueue<Pod>();
  const { signal } = new AbortController();
  const taken = await queue.get({ signal });
  expectTypeOf(taken.item).toEqualTypeOf<Pod | undefined>();
  if (taken.shutdown) expectTypeOf(taken.item).toEqualTypeOf<undefined>();
  else expectTypeOf(taken.item).toEqualTypeOf<Pod>();
  expectTypeOf<Awaited<ReturnType<typeof queue.get>>>().toExtend<
    { readonly item: Pod; readonly shutdown: false } | { readonly item: undefined; readonly shutdown: true }
  >();
});

test('a loop over the queue is one over leases', async () => {
  const queue = new WorkQueue<Pod>();
  expectTypeOf(queue[Symbol.asyncIterator]()).toExtend<AsyncIterator<Lease<Pod>>>();
  expectTypeOf(queue).toExtend<AsyncIterable<Lease<Pod>>>();
  for await (const lease of queue) {
    expectTypeOf(lease).toEqualTypeOf<Lease<Pod>>();
    expectTypeOf(lease).toExtend<Disposable>();
    expectTypeOf(lease.item).toEqualTypeOf<Pod>();
    expectTypeOf<(typeof lease)['done']>().returns.toBeVoid();
    // @ts-expect-error -- it is what it is
    lease.item = { name: 'b' };
  }
});

test('a worker gets the item and its context, and returns what it likes', () => {
  const queue = new WorkQueue<Pod>();
  const run = queue.run(
    (item, { signal, numRequeues }) => {
      expectTypeOf(item).toEqualTypeOf<Pod>();
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      expectTypeOf(numRequeues).toEqualTypeOf<number>();
      return Promise.resolve(5);
    },
    {
      concurrency: 4,
      signal: new AbortController().signal,
      onError: (error, item) => {
        expectTypeOf(error).toEqualTypeOf<unknown>();
        expectTypeOf(item).toEqualTypeOf<Pod>();
      },
    },
  );
  expectTypeOf(run).toEqualTypeOf<Promise<void>>();
  void queue.run(() => undefined);
  // @ts-expect-error -- a queue without a rate limit does not try again
  void queue.run(() => undefined, { maxRetries: 5 });
  // @ts-expect-error -- a worker of another item
  void queue.run((item: string) => item);
});

test('a delaying queue is a queue, and its shutdown returns what was dropped', () => {
  const queue = new DelayingQueue<Pod>({ timer: new SystemTimer({ clock: new ManualClock() }) });
  expectTypeOf(queue).toExtend<WorkQueue<Pod>>();
  expectTypeOf<(typeof queue)['addAfter']>().toEqualTypeOf<(item: Pod, delayMs: number) => void>();
  expectTypeOf<(typeof queue)['cancelDelayed']>().toEqualTypeOf<(item: Pod) => boolean>();
  expectTypeOf(queue.waiting).toEqualTypeOf<number>();
  expectTypeOf(queue.shutDown()).toEqualTypeOf<Pod[]>();
  // @ts-expect-error -- a timer for queues only
  new WorkQueue<Pod>({ timer: new SystemTimer() });
});

test('a rate limiting queue is a delaying queue', () => {
  const queue = new RateLimitingQueue<Pod>(defaultControllerRateLimiter(), { keyOf: ({ name }) => name });
  expectTypeOf(queue).toExtend<DelayingQueue<Pod>>();
  expectTypeOf<(typeof queue)['addRateLimited']>().toEqualTypeOf<(item: Pod) => void>();
  expectTypeOf<(typeof queue)['forget']>().toEqualTypeOf<(item: Pod) => void>();
  expectTypeOf<(typeof queue)['numRequeues']>().toEqualTypeOf<(item: Pod) => number>();
  void queue.run(() => undefined, {
    maxRetries: Infinity,
    onDrop: (error, item) => {
      expectTypeOf(item).toEqualTypeOf<Pod>();
      expectTypeOf(error).toEqualTypeOf<unknown>();
    },
  });
  const byName = new ItemExponentialFailureRateLimiter<string>({ baseDelayMs: 5, maxDelayMs: 50 });
  expectTypeOf(new RateLimitingQueue(byName, { keyOf: ({ name }: Pod) => name })).toEqualTypeOf(queue);
  // @ts-expect-error -- a limiter of keys, and no keys
  new RateLimitingQueue<Pod>(byName);
  // @ts-expect-error -- without a limiter
  new RateLimitingQueue<Pod>();
  // @ts-expect-error -- the delay of a limiter is a number
  new RateLimitingQueue<Pod>({ when: () => '5', forget: () => undefined, numRequeues: () => 0 });
});

test('every limiter of the package is a RateLimiter of any item', () => {
  expectTypeOf<BucketRateLimiter<Pod>>().toExtend<RateLimiter<Pod>>();
  const bucket = new BucketRateLimiter<Pod>({ ratePerSecond: 5, burst: 5 });
  expectTypeOf(new RateLimitingQueue(bucket)).toEqualTypeOf<RateLimitingQueue<Pod>>();
  expectTypeOf(new MaxOfRateLimiter(bucket)).toEqualTypeOf<MaxOfRateLimiter<Pod>>();
  expectTypeOf<ItemExponentialFailureRateLimiter<Pod>>().toExtend<RateLimiter<Pod>>();
  expectTypeOf<ItemFastSlowRateLimiter<Pod>>().toExtend<RateLimiter<Pod>>();
  expectTypeOf<MaxOfRateLimiter<Pod>>().toExtend<RateLimiter<Pod>>();
  expectTypeOf<WithMaxWaitRateLimiter<Pod>>().toExtend<RateLimiter<Pod>>();
  expectTypeOf<WithJitterRateLimiter<Pod>>().toExtend<RateLimiter<Pod>>();
  expectTypeOf(defaultControllerRateLimiter<Pod>({ clock: new ManualClock() })).toEqualTypeOf<
    RateLimiter<Pod>
  >();
  expectTypeOf<RateLimiter<Pod>>().toEqualTypeOf<{
    when(item: Pod): number;
    forget(item: Pod): void;
    numRequeues(item: Pod): number;
  }>();
  // @ts-expect-error -- a bucket without a burst
  new BucketRateLimiter({ ratePerSecond: 5 });
  new MaxOfRateLimiter(new BucketRateLimiter<Pod>({ ratePerSecond: 5, burst: 5 }));
  new WithMaxWaitRateLimiter(new MaxOfRateLimiter<Pod>(), 5);
});

test('parallelizeUntil gives pieces by number', () => {
  const { signal } = new AbortController();
  const all = parallelizeUntil(
    4,
    100,
    (piece) => {
      expectTypeOf(piece).toEqualTypeOf<number>();
    },
    { chunkSize: 10, signal, onNotRun: (pieces) => expectTypeOf(pieces).toEqualTypeOf<number[]>() },
  );
  expectTypeOf(all).toEqualTypeOf<Promise<void>>();
});

test('optional values may be passed on as they are', () => {
  const signal = undefined as AbortSignal | undefined;
  const queue = new RateLimitingQueue<Pod>(new MaxOfRateLimiter());
  void queue.get({ signal });
  queue.leases({ signal });
  void queue.run(() => undefined, {
    signal,
    concurrency: undefined,
    onError: undefined,
    maxRetries: undefined,
  });
  const metrics = undefined as MetricsProvider | undefined;
  new WorkQueue<Pod>({ metrics });
  new SystemTimer({ name: undefined, metrics });
  new DelayedOperationPurgatory<DelayedOperation>('fetch', { keyOf: undefined, metrics });
  void DiskQueue.open({ name: 'spool', dataPath: '.', format: undefined, metrics });
  void EmbeddedBroker.open({ dataPath: process.env['DATA_PATH'], metrics });
  dashboard({ broker: undefined, title: process.env['TITLE'] });
});
