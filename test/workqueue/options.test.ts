import {
  BucketRateLimiter,
  defaultControllerRateLimiter,
  DelayingQueue,
  ItemExponentialFailureRateLimiter,
  ItemFastSlowRateLimiter,
  ManualClock,
  MaxOfRateLimiter,
  parallelizeUntil,
  type RateLimiter,
  RateLimitingQueue,
  WithJitterRateLimiter,
  WithMaxWaitRateLimiter,
  WorkQueue,
} from 'escapement';
import { checkQueue } from 'escapement/testing';
import { expect, test } from 'vitest';
import { expectInvalid, RANGE, TYPE } from '../core/refused.ts';
import { thrownBy } from '../timer/support/errors.ts';
import { rejectionOf } from './support/outcome.ts';

type Case = readonly [argument: string, value: unknown, kind: typeof RANGE, shown: string];

function expectError(error: unknown, [argument, , kind, shown]: Case): void {
  expectInvalid(error, argument, kind, shown);
}

/** Checks that an action throws an error about an argument. */
function expectRefused(action: () => unknown, bad: Case): void {
  expectError(thrownBy(action), bad);
}

const limiter: RateLimiter<string> = { when: () => 0, forget: () => undefined, numRequeues: () => 0 };

const BAD_OPTIONS: readonly Case[] = [
  ['options', null, TYPE, 'null'],
  ['options', 'pods', TYPE, "'pods' (a string)"],
  ['options', 5, TYPE, '5'],
  ['name', { name: 5 }, TYPE, '5'],
  ['name', { name: null }, TYPE, 'null'],
  ['clock', { clock: {} }, TYPE, '[object Object]'],
  ['clock', { clock: null }, TYPE, 'null'],
  ['clock', { clock: { now: () => 0 } }, TYPE, '[object Object]'],
  ['metrics', { metrics: {} }, TYPE, '[object Object]'],
  ['metrics', { metrics: null }, TYPE, 'null'],
  ['keyOf', { keyOf: 'name' }, TYPE, "'name' (a string)"],
  ['keyOf', { keyOf: null }, TYPE, 'null'],
  ['maxSize', { maxSize: 0 }, RANGE, '0'],
  ['maxSize', { maxSize: -1 }, RANGE, '-1'],
  ['maxSize', { maxSize: 1.5 }, RANGE, '1.5'],
  ['maxSize', { maxSize: NaN }, RANGE, 'NaN'],
  ['maxSize', { maxSize: '10' }, TYPE, "'10' (a string)"],
];

const BAD_TIMERS: readonly Case[] = [
  ['timer', { timer: null }, TYPE, 'null'],
  ['timer', { timer: {} }, TYPE, '[object Object]'],
  ['timer', { timer: new ManualClock() }, TYPE, '[object Object]'],
];

test.each(BAD_OPTIONS)('the option %s refuses %o in each kind of queue', (...bad) => {
  const options = bad[1] as object;
  expectRefused(() => new WorkQueue(options), bad);
  expectRefused(() => new DelayingQueue(options), bad);
  expectRefused(() => new RateLimitingQueue(limiter, options), bad);
});

test.each(BAD_TIMERS)('the option %s of a DelayingQueue refuses %o', (...bad) =>
  expectRefused(() => new DelayingQueue(bad[1] as object), bad),
);

test('an undefined option has its default', () => {
  const queue = new DelayingQueue({ maxSize: Infinity });
  expect([queue.name, queue.length, queue.waiting, queue.shuttingDown]).toEqual(['workqueue', 0, 0, false]);
  expect(new WorkQueue({}).name).toBe('workqueue');
});

test.each([[undefined], [null], [{}], [{ when: () => 0, forget: () => 0 }], ['limiter'], [() => 0]])(
  'a rate limiter of %o is refused',
  (value) => {
    const message =
      /^(rateLimiter|limiter) must be a RateLimiter with when, forget and numRequeues. Received /;
    for (const make of [
      () => new RateLimitingQueue(value as never),
      () => new MaxOfRateLimiter(limiter, value as never),
      () => new WithMaxWaitRateLimiter(value as never, 5),
      () => new WithJitterRateLimiter(value as never),
    ]) {
      expect(thrownBy(make)).toMatchObject({ ...TYPE, message: expect.stringMatching(message) as unknown });
    }
  },
);

test.each([
  ['WorkQueue', (options: object) => new WorkQueue<string>(options)],
  ['DelayingQueue', (options: object) => new DelayingQueue<string>(options)],
  ['RateLimitingQueue', (options: object) => new RateLimitingQueue<string>(limiter, options)],
] as const)('the options of a %s may be inherited, as those of a class with getters are', (_, make) => {
  const queue = make(Object.create({ name: 'pods', keyOf: (item: string) => item.toLowerCase() }) as object);
  queue.add('a');
  queue.add('A');
  expect([queue.name, queue.length]).toEqual(['pods', 1]);
});

const queue = new RateLimitingQueue<string>(limiter, { clock: new ManualClock() });
queue.add('ready');
const expectUnchanged = (): void => {
  expect([queue.length, queue.waiting, queue.shuttingDown]).toEqual([1, 0, false]);
  checkQueue(queue);
};

test.each<Case>([
  ['delayMs', NaN, RANGE, 'NaN'],
  ['delayMs', '5', TYPE, "'5' (a string)"],
  ['delayMs', undefined, TYPE, 'undefined'],
  ['delayMs', null, TYPE, 'null'],
  ['delayMs', 5n, TYPE, '5n (a bigint)'],
  ['delayMs', new Date(0), TYPE, '[object Date]'],
])('addAfter refuses the %s %o', (...bad) => {
  expectRefused(() => queue.addAfter('a', bad[1] as number), bad);
  expectUnchanged();
});

const BAD_SIGNALS: readonly Case[] = [
  ['options', null, TYPE, 'null'],
  ['options', 5, TYPE, '5'],
  ['options.signal', { signal: null }, TYPE, 'null'],
  ['options.signal', { signal: {} }, TYPE, '[object Object]'],
  ['options.signal', { signal: new AbortController() }, TYPE, '[object AbortController]'],
];

test.each(BAD_SIGNALS)('get, addWhenRoom and shutDownWithDrain reject for the %s %o', async (...bad) => {
  const options = bad[1] as object;
  expectError(await rejectionOf(queue.get(options)), bad);
  expectError(await rejectionOf(queue.addWhenRoom('a', options)), bad);
  expectError(await rejectionOf(queue.shutDownWithDrain(options)), bad);
  expectRefused(() => queue.leases(options), bad);
  expectUnchanged();
});

test.each<Case>([
  ...BAD_SIGNALS,
  ['concurrency', { concurrency: 0 }, RANGE, '0'],
  ['concurrency', { concurrency: -1 }, RANGE, '-1'],
  ['concurrency', { concurrency: 1.5 }, RANGE, '1.5'],
  ['concurrency', { concurrency: 65_537 }, RANGE, '65537'],
  ['concurrency', { concurrency: Number.MAX_SAFE_INTEGER }, RANGE, '9007199254740991'],
  ['concurrency', { concurrency: Infinity }, RANGE, 'Infinity'],
  ['concurrency', { concurrency: NaN }, RANGE, 'NaN'],
  ['concurrency', { concurrency: '2' }, TYPE, "'2' (a string)"],
  ['onError', { onError: 5 }, TYPE, '5'],
  ['onError', { onError: null }, TYPE, 'null'],
])('run rejects for the %s %o in each kind of queue', async (...bad) => {
  const worker = (): never => expect.fail('it ran');
  expectError(await rejectionOf(queue.run(worker, bad[1] as object)), bad);
  expectError(await rejectionOf(new WorkQueue<string>().run(worker, bad[1] as object)), bad);
  expectUnchanged();
});

test.each<Case>([
  ['maxRetries', { maxRetries: -1 }, RANGE, '-1'],
  ['maxRetries', { maxRetries: 1.5 }, RANGE, '1.5'],
  ['maxRetries', { maxRetries: NaN }, RANGE, 'NaN'],
  ['maxRetries', { maxRetries: '5' }, TYPE, "'5' (a string)"],
  ['onDrop', { onDrop: 5 }, TYPE, '5'],
])('run of a queue with a rate limit rejects for the %s %o', async (...bad) => {
  expectError(await rejectionOf(queue.run(() => expect.fail('it ran'), bad[1] as object)), bad);
  expectUnchanged();
});

test.each([[undefined], [null], ['worker'], [{}]])('run rejects for a worker of %o', async (worker) => {
  for (const each of [queue, new WorkQueue<string>()]) {
    expect(await rejectionOf(each.run(worker as never))).toMatchObject(TYPE);
  }
  expectUnchanged();
});

const BAD_DELAYS = [
  [NaN, RANGE, 'NaN'],
  [-1, RANGE, '-1'],
  [Infinity, RANGE, 'Infinity'],
  ['5', TYPE, "'5' (a string)"],
  [undefined, TYPE, 'undefined'],
  [null, TYPE, 'null'],
] as const;

test.each(BAD_DELAYS)('a limiter refuses a delay of %o', (value, kind, shown) => {
  const bad = value as number;
  const attempts: Record<string, () => unknown> = {
    baseDelayMs: () => new ItemExponentialFailureRateLimiter({ baseDelayMs: bad, maxDelayMs: 1 }),
    maxDelayMs: () => new ItemExponentialFailureRateLimiter({ baseDelayMs: 1, maxDelayMs: bad }),
    fastDelayMs: () => new ItemFastSlowRateLimiter({ fastDelayMs: bad, slowDelayMs: 1, maxFastAttempts: 1 }),
    slowDelayMs: () => new ItemFastSlowRateLimiter({ fastDelayMs: 1, slowDelayMs: bad, maxFastAttempts: 1 }),
  };
  for (const [argument, make] of Object.entries(attempts))
    expectRefused(make, [argument, value, kind, shown]);
  expectRefused(() => new WithMaxWaitRateLimiter(limiter, bad), ['maxDelayMs', value, kind, shown]);
});

test.each([
  [1, RANGE, '1'],
  [0, RANGE, '0'],
  [2.5, RANGE, '2.5'],
  [NaN, RANGE, 'NaN'],
  ['5', TYPE, "'5' (a string)"],
])('a limiter refuses maxItems of %o', (value, kind, shown) => {
  const maxItems = value as number;
  const bad: Case = ['maxItems', value, kind, shown];
  expectRefused(
    () => new ItemExponentialFailureRateLimiter({ baseDelayMs: 1, maxDelayMs: 1, maxItems }),
    bad,
  );
  const fastSlow = { fastDelayMs: 1, slowDelayMs: 1, maxFastAttempts: 1 };
  expectRefused(() => new ItemFastSlowRateLimiter({ ...fastSlow, maxItems }), bad);
});

test.each([
  [-1, RANGE, '-1'],
  [0.5, RANGE, '0.5'],
  ['5', TYPE, "'5' (a string)"],
  [undefined, TYPE, 'undefined'],
])('a limiter refuses maxFastAttempts of %o', (value, kind, shown) => {
  const options = { fastDelayMs: 1, slowDelayMs: 1, maxFastAttempts: value as number };
  expectRefused(() => new ItemFastSlowRateLimiter(options), ['maxFastAttempts', value, kind, shown]);
});

test.each<Case>([
  ['fraction', { fraction: -0.1 }, RANGE, '-0.1'],
  ['fraction', { fraction: 1.1 }, RANGE, '1.1'],
  ['fraction', { fraction: NaN }, RANGE, 'NaN'],
  ['fraction', { fraction: '1' }, TYPE, "'1' (a string)"],
  ['random', { random: 0.5 }, TYPE, '0.5'],
  ['options', null, TYPE, 'null'],
])('the jitter refuses the %s %o', (...bad) =>
  expectRefused(() => new WithJitterRateLimiter(limiter, bad[1] as object), bad),
);

test.each([[undefined], [null], ['options']])('a limiter refuses %o as options', (options) => {
  for (const Limiter of [BucketRateLimiter, ItemExponentialFailureRateLimiter, ItemFastSlowRateLimiter]) {
    expect(thrownBy(() => new Limiter(options as never))).toMatchObject(TYPE);
  }
});

test.each([[null], [{}], [{ now: () => 0 }]])('a clock of %o is refused', (clock) => {
  const bad = clock as never;
  expect(thrownBy(() => new BucketRateLimiter({ ratePerSecond: 1, burst: 1, clock: bad }))).toMatchObject(
    TYPE,
  );
  expect(thrownBy(() => defaultControllerRateLimiter({ clock: bad }))).toMatchObject(TYPE);
});

const run = (): never => expect.fail('it ran');

test.each<[argument: string, kind: typeof RANGE, shown: string, args: unknown[]]>([
  ['workers', RANGE, '0', [0, 5, run]],
  ['workers', RANGE, '-1', [-1, 5, run]],
  ['workers', RANGE, 'NaN', [NaN, 5, run]],
  ['workers', RANGE, '1.5', [1.5, 5, run]],
  ['workers', TYPE, "'2' (a string)", ['2', 5, run]],
  ['workers', RANGE, '0', [0, 0, run]],
  ['pieces', RANGE, '-1', [1, -1, run]],
  ['pieces', RANGE, 'NaN', [1, NaN, run]],
  ['pieces', TYPE, 'undefined', [1, undefined, run]],
  ['run', TYPE, 'undefined', [1, 5, undefined]],
  ['options', TYPE, 'null', [1, 5, run, null]],
  ['chunkSize', RANGE, '0', [1, 5, run, { chunkSize: 0 }]],
  ['chunkSize', RANGE, '0.5', [1, 5, run, { chunkSize: 0.5 }]],
  ['options.signal', TYPE, '[object Object]', [1, 5, run, { signal: {} }]],
  ['onNotRun', TYPE, '5', [1, 5, run, { onNotRun: 5 }]],
])('parallelizeUntil refuses the argument %s with %o: received %s', async (argument, kind, shown, args) => {
  const error = await rejectionOf(parallelizeUntil(...(args as Parameters<typeof parallelizeUntil>)));
  expectError(error, [argument, undefined, kind, shown]);
});
