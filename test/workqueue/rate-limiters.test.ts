import fc from 'fast-check';
import {
  BucketRateLimiter,
  defaultControllerRateLimiter,
  ItemExponentialFailureRateLimiter,
  ItemFastSlowRateLimiter,
  ManualClock,
  MaxOfRateLimiter,
  type RateLimiter,
  RateLimitingQueue,
  WithJitterRateLimiter,
  WithMaxWaitRateLimiter,
} from 'escapement';
import { expect, test } from 'vitest';
import { FailureCounts } from '../../src/workqueue/failure-counts.ts';
import { thrownBy } from '../timer/support/errors.ts';

/** What a limiter says to so many failures of one item in a row. */
const sequence = (limiter: RateLimiter<string>, length: number, item = 'a'): number[] =>
  Array.from({ length }, () => limiter.when(item));

/** A limiter that says what it is told to, and writes down what it is asked. */
function scripted(...delays: number[]): RateLimiter<string> & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    when: (item) => {
      asked.push(`when ${item}`);
      return delays[Math.min(asked.length, delays.length) - 1] as number;
    },
    forget: (item) => asked.push(`forget ${item}`),
    numRequeues: (item) => asked.push(`numRequeues ${item}`),
  };
}

test.each([
  [{ ratePerSecond: 0, burst: 1 }, 'options.ratePerSecond must be more than 0. Received 0'],
  [{ ratePerSecond: -1, burst: 1 }, 'options.ratePerSecond must be more than 0. Received -1'],
  [{ ratePerSecond: NaN, burst: 1 }, 'options.ratePerSecond must be more than 0. Received NaN'],
  [{ ratePerSecond: 1, burst: 0 }, 'options.burst must be an integer of at least 1. Received 0'],
  [{ ratePerSecond: 1, burst: -1 }, 'options.burst must be an integer of at least 1. Received -1'],
  [{ ratePerSecond: 1, burst: 0.5 }, 'options.burst must be an integer of at least 1. Received 0.5'],
  [{ ratePerSecond: 1, burst: NaN }, 'options.burst must be an integer of at least 1. Received NaN'],
])('a bucket refuses %o', (options, message) => {
  const error = thrownBy(() => new BucketRateLimiter(options));
  expect(error).toMatchObject({ name: 'RangeError', code: 'ERR_OUT_OF_RANGE', message });
});

test('a bucket of 10 per second and burst 100 delays the 101st call by 100 ms and the 102nd by 200 ms', () => {
  const bucket = new BucketRateLimiter<string>({ ratePerSecond: 10, burst: 100, clock: new ManualClock() });
  expect(sequence(bucket, 100)).toEqual(Array<number>(100).fill(0));
  expect(sequence(bucket, 5)).toEqual([100, 200, 300, 400, 500]);
});

test('tokens of a bucket return with the time of its clock, up to the burst', () => {
  const clock = new ManualClock();
  const bucket = new BucketRateLimiter<string>({ ratePerSecond: 10, burst: 2, clock });
  expect(sequence(bucket, 4)).toEqual([0, 0, 100, 200]);
  clock.advance(200); // the debt is paid
  expect(bucket.when('a')).toBe(100);
  clock.advance(150);
  expect(bucket.when('a')).toBe(50);
  clock.advance(1e9);
  expect(sequence(bucket, 4)).toEqual([0, 0, 100, 200]);
});

test('a bucket does not distinguish items, and remembers none', () => {
  const bucket = new BucketRateLimiter<string>({ ratePerSecond: 1, burst: 1, clock: new ManualClock() });
  expect(['a', 'b', 'a'].map((item) => bucket.when(item))).toEqual([0, 1_000, 2_000]);
  bucket.forget('a');
  expect([bucket.numRequeues('a'), bucket.when('a')]).toEqual([0, 3_000]);
});

test('a bucket with a rate of Infinity never delays', () => {
  const bucket = new BucketRateLimiter<string>({ ratePerSecond: Infinity, burst: 1 });
  expect(sequence(bucket, 1_000).every((delayMs) => delayMs === 0)).toBe(true);
});

test('a bucket gets no tokens when its clock moves backwards', () => {
  let nowMs = 1_000;
  const clock = { now: () => nowMs, wallNow: () => 0, setTimeout: () => expect.fail('it arms nothing') };
  const bucket = new BucketRateLimiter<string>({ ratePerSecond: 1, burst: 1, clock });
  bucket.when('a');
  nowMs = 0;
  expect(bucket.when('a')).toBe(1_000);
});

test('the exponential limiter returns 5, 10, … 655 360 ms, then 1 000 s, as in client-go', () => {
  const limiter = new ItemExponentialFailureRateLimiter<string>({ baseDelayMs: 5, maxDelayMs: 1_000_000 });
  expect(sequence(limiter, 22)).toEqual([
    ...[5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 5_120, 10_240, 20_480, 40_960, 81_920],
    ...[163_840, 327_680, 655_360],
    ...[1_000_000, 1_000_000, 1_000_000, 1_000_000],
  ]);
});

test('numRequeues counts beyond the longest delay, and forget starts anew', () => {
  const limiter = new ItemExponentialFailureRateLimiter<string>({ baseDelayMs: 1, maxDelayMs: 4 });
  expect(sequence(limiter, 2_000).slice(-2)).toEqual([4, 4]);
  expect([limiter.numRequeues('a'), limiter.numRequeues('b')]).toEqual([2_000, 0]);
  limiter.forget('a');
  expect([limiter.numRequeues('a'), limiter.when('a'), limiter.when('b')]).toEqual([0, 1, 1]);
});

test.each([
  [0, 10, 0],
  [20, 10, 10],
  [0, 0, 0],
  [2 ** -1_000, 10, 10],
  [2 ** -20, Number.MAX_VALUE, Number.MAX_SAFE_INTEGER],
  [Number.MAX_VALUE, 7, 7],
])(
  'an exponential limiter with a base of %d and a maximum of %d ends at %d',
  (baseDelayMs, maxDelayMs, last) => {
    const limiter = new ItemExponentialFailureRateLimiter<string>({ baseDelayMs, maxDelayMs });
    const delays = sequence(limiter, 2_100);
    expect(delays).toEqual(delays.toSorted((a, b) => a - b));
    expect(delays.at(-1)).toBe(last);
  },
);

const FAST_SLOW = { fastDelayMs: 5, slowDelayMs: 1_000 };

test('the fast delay is returned for maxFastAttempts failures, then the slow one', () => {
  const limiter = new ItemFastSlowRateLimiter<string>({ ...FAST_SLOW, maxFastAttempts: 3 });
  expect(sequence(limiter, 5)).toEqual([5, 5, 5, 1_000, 1_000]);
  expect([limiter.numRequeues('a'), limiter.when('b')]).toEqual([5, 5]);
  limiter.forget('a');
  expect([limiter.numRequeues('a'), limiter.when('a')]).toEqual([0, 5]);
});

test('with maxFastAttempts 0 the delay is always the slow one', () => {
  const limiter = new ItemFastSlowRateLimiter<string>({ ...FAST_SLOW, maxFastAttempts: 0 });
  expect(sequence(limiter, 3)).toEqual([1_000, 1_000, 1_000]);
});

const maxItems = 100;
const limiters = {
  exponential: new ItemExponentialFailureRateLimiter<number>({ baseDelayMs: 1, maxDelayMs: 1e9, maxItems }),
  'fast and slow': new ItemFastSlowRateLimiter<number>({ ...FAST_SLOW, maxFastAttempts: 3, maxItems }),
};

test.each(Object.entries(limiters))(
  'maxItems bounds the failures that a limiter remembers: %s (kubernetes#138743)',
  (_, limiter) => {
    for (let item = 0; item < 10_000; item++) {
      limiter.when(item);
      if (item % 20 === 0) limiter.when(-1); // it goes on failing
    }
    const counts = Array.from({ length: 10_000 }, (_, item) => limiter.numRequeues(item));
    const remembered = counts.filter((count) => count > 0).length + 1;
    expect(remembered).toBeLessThanOrEqual(100);
    expect(remembered).toBeGreaterThanOrEqual(50);
    expect(limiter.numRequeues(-1)).toBe(500);
  },
);

test('MaxOf calls every limiter each time, and returns the longest delay and the most failures', () => {
  const [first, second] = [scripted(5, 50), scripted(20, 3)];
  const limiter = new MaxOfRateLimiter<string>(first, second);
  expect(sequence(limiter, 2)).toEqual([20, 50]);
  expect([first.asked, second.asked]).toEqual([
    ['when a', 'when a'],
    ['when a', 'when a'],
  ]);
  second.numRequeues('b');
  expect(limiter.numRequeues('a')).toBe(4); // how often the second was asked by now
  limiter.forget('a');
  expect([first.asked.at(-1), second.asked.at(-1)]).toEqual(['forget a', 'forget a']);
});

test('MaxOf without limiters returns no delay and no failures', () => {
  const limiter = new MaxOfRateLimiter<string>();
  expect([limiter.when('a'), limiter.numRequeues('a')]).toEqual([0, 0]);
  limiter.forget('a');
});

test('for MaxOf an invalid delay is 0, and an infinite one is the longest', () => {
  expect(new MaxOfRateLimiter(scripted(NaN), scripted(5), scripted(-5)).when('a')).toBe(5);
  expect(new MaxOfRateLimiter(scripted(NaN), scripted(-5)).when('a')).toBe(0);
  expect(new MaxOfRateLimiter(scripted(Infinity), scripted(5)).when('a')).toBe(Number.MAX_SAFE_INTEGER);
});

test('the default limiter of controllers is the maximum of exponential and bucket', () => {
  const clock = new ManualClock();
  const limiter = defaultControllerRateLimiter<string>({ clock });
  expect(sequence(limiter, 4)).toEqual([5, 10, 20, 40]);
  for (let i = 0; i < 96; i++) expect(limiter.when(`other ${i}`)).toBe(5);
  expect(limiter.when('late')).toBe(100); // the bucket has run dry
  expect([limiter.numRequeues('a'), limiter.numRequeues('late')]).toEqual([4, 1]);
  limiter.forget('a');
  expect([limiter.numRequeues('a'), limiter.when('a')]).toEqual([0, 200]);
  clock.advance(1e6);
  limiter.forget('a');
  expect(limiter.when('a')).toBe(5);
});

test('a maximum shortens the delay of a bucket, and not its debt', () => {
  const bucket = new BucketRateLimiter<string>({ ratePerSecond: 10, burst: 1, clock: new ManualClock() });
  const limiter = new WithMaxWaitRateLimiter(bucket, 250);
  expect(sequence(limiter, 6)).toEqual([0, 100, 200, 250, 250, 250]);
  expect(bucket.when('a')).toBe(600);
});

test('a limiter with a maximum returns a valid delay for an invalid one', () => {
  const limiter = new WithMaxWaitRateLimiter(scripted(NaN, -5, Infinity, 7), 10);
  expect(sequence(limiter, 4)).toEqual([0, 0, 10, 7]);
});

const steps = [0, 0.25, 0.5, 1 - Number.EPSILON];
const jittered = (fraction: number | undefined): number[] =>
  steps.map((step) => {
    const options = { random: () => step, ...(fraction !== undefined && { fraction }) };
    return Math.round(new WithJitterRateLimiter(scripted(1_000), options).when('a'));
  });

test('jitter leaves half of the delay by default', () =>
  expect(jittered(undefined)).toEqual([1_000, 875, 750, 500]));

test.each([
  [0, [1_000, 1_000, 1_000, 1_000]],
  [0.1, [1_000, 975, 950, 900]],
  [1, [1_000, 750, 500, 0]],
])('jitter leaves a fraction of %d', (fraction, expected) => expect(jittered(fraction)).toEqual(expected));

test('jitter is random: between half and the whole delay', () => {
  const limiter = new WithJitterRateLimiter(scripted(1_000));
  const delays = sequence(limiter, 200);
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(500);
  expect(Math.max(...delays)).toBeLessThanOrEqual(1_000);
  expect(new Set(delays).size).toBeGreaterThan(100);
});

test.each<[what: string, around: (inner: RateLimiter<string>) => RateLimiter<string>]>([
  ['a maximum', (inner) => new WithMaxWaitRateLimiter(inner, 10)],
  ['jitter', (inner) => new WithJitterRateLimiter(inner)],
])('a limiter with %s forwards other calls', (_, around) => {
  const inner = scripted(5);
  const limiter = around(inner);
  expect(limiter.numRequeues('a')).toBe(1);
  limiter.forget('a');
  expect(inner.asked).toEqual(['numRequeues a', 'forget a']);
});

test.each([NaN, -5, Infinity, -Infinity, 2])(
  'a random number of %d does not make an invalid delay',
  (chance) => {
    const delayMs = new WithJitterRateLimiter(scripted(1_000), { random: () => chance }).when('a');
    expect(delayMs).toBeGreaterThanOrEqual(0);
    expect(delayMs).toBeLessThan(Infinity);
  },
);

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const remembered = (counts: FailureCounts<number>, items: number): number =>
  upTo(items).filter((item) => counts.get(item) > 0).length;

test.each([2, 3, 10, 101])('failure counts never remember more than %d items', (maxItems) => {
  const counts = new FailureCounts<number>(maxItems);
  for (const item of upTo(200)) {
    counts.increment(item);
    if (item % 7 === 0) counts.increment(item >> 1);
    expect(remembered(counts, 200)).toBeLessThanOrEqual(maxItems);
  }
});

test.each([2, 3, 10, 101])('of %d items those of the half that failed last are remembered', (maxItems) => {
  const half = Math.floor(maxItems / 2);
  const counts = new FailureCounts<number>(maxItems);
  for (const item of upTo(200)) {
    counts.increment(item);
    for (const last of upTo(Math.min(half, item))) expect(counts.get(item - last)).toBe(1);
  }
});

test.each([2, 3, 10])('half of %d items and one more, in turn, all keep their counts', (maxItems) => {
  const counts = new FailureCounts<number>(maxItems);
  const items = upTo(Math.floor(maxItems / 2) + 1);
  for (let round = 0; round < 20; round++) {
    for (const item of items) expect(counts.increment(item)).toBe(round);
  }
});

test('a count is forgotten in either generation', () => {
  for (let others = 0; others < 5; others++) {
    const counts = new FailureCounts<number>(10);
    for (const item of upTo(5 + others)) counts.increment(item);
    for (const item of upTo(5 + others)) {
      counts.forget(item);
      expect(counts.get(item)).toBe(0);
    }
  }
});

test('failure counts without a bound remember every item', () => {
  const operation = fc.tuple(fc.constantFrom('increment' as const, 'forget' as const), fc.nat({ max: 5 }));
  fc.assert(
    fc.property(fc.array(operation), (operations) => {
      const [counts, model] = [new FailureCounts<number>(Infinity), new Map<number, number>()];
      for (const [what, item] of operations) {
        if (what === 'forget') model.delete(item);
        else model.set(item, (model.get(item) ?? 0) + 1);
        counts[what](item);
        expect(counts.get(item)).toBe(model.get(item) ?? 0);
      }
    }),
  );
});

test('a queue drops an item after maxRetries retries although its limiter counts nothing', async () => {
  const clock = new ManualClock();
  const bucket = new BucketRateLimiter<string>({ ratePerSecond: 100, burst: 1, clock });
  const queue = new RateLimitingQueue(bucket, { clock });
  const counts: number[] = [];
  const dropped: string[] = [];
  const run = queue.run(
    (item, { numRequeues }) => {
      counts.push(numRequeues);
      throw new Error(item);
    },
    { maxRetries: 3, onDrop: (_, item) => dropped.push(item) },
  );
  queue.add('a');
  await clock.advanceAsync(15);
  expect([queue.numRequeues('a'), queue.inspect().retries]).toEqual([3, [{ key: 'a', retries: 3 }]]);
  await clock.advanceAsync(100);
  expect([counts, dropped, queue.numRequeues('a')]).toEqual([[0, 1, 2, 3], ['a'], 0]);
  queue.add('b');
  await clock.advanceAsync(0);
  expect(queue.numRequeues('b')).toBeGreaterThan(0);
  queue.forget('b');
  expect(queue.numRequeues('b')).toBe(0);
  queue.shutDown();
  await run;
});
