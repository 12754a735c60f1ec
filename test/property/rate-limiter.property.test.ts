import fc from 'fast-check';
import {
  BucketRateLimiter,
  ItemExponentialFailureRateLimiter,
  ItemFastSlowRateLimiter,
  MaxOfRateLimiter,
  WithJitterRateLimiter,
  WithMaxWaitRateLimiter,
  type RateLimiter,
} from 'escapement';
import { expect } from 'vitest';
import { testProperty } from '../runs.ts';
import { action, weighted } from './actions.ts';

/** How to make a limiter on a clock: fast-check shows it as it is. */
type Recipe =
  | { readonly kind: 'bucket'; readonly ratePerSecond: number; readonly burst: number }
  | {
      readonly kind: 'exponential';
      readonly baseDelayMs: number;
      readonly maxDelayMs: number;
      readonly maxItems: number;
    }
  | {
      readonly kind: 'fastSlow';
      readonly fastDelayMs: number;
      readonly slowDelayMs: number;
      readonly maxFastAttempts: number;
      readonly maxItems: number;
    }
  | { readonly kind: 'foreign'; readonly delays: readonly number[] }
  | { readonly kind: 'maxOf'; readonly limiters: readonly Recipe[] }
  | { readonly kind: 'maxWait'; readonly limiter: Recipe; readonly maxDelayMs: number }
  | {
      readonly kind: 'jitter';
      readonly limiter: Recipe;
      readonly fraction: number;
      readonly chances: readonly number[];
    };

const delayMs = fc.oneof(
  fc.constantFrom(0, -0, Number.MIN_VALUE, 1, 2 ** 31, 2 ** 53, 1e300, Number.MAX_VALUE),
  fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }),
  fc.integer({ min: 0, max: 10_000 }),
);
const rate = fc.oneof(
  fc.constantFrom(Number.MIN_VALUE, 1e-300, 1, 10, 1e300, Number.MAX_VALUE, Infinity),
  fc.double({ min: Number.MIN_VALUE, noNaN: true }),
);
const maxItems = fc.oneof(
  fc.constant(Infinity),
  fc.integer({ min: 2, max: 6 }),
  fc.constant(Number.MAX_SAFE_INTEGER),
);
const count = fc.oneof(fc.nat({ max: 5 }), fc.constant(Number.MAX_SAFE_INTEGER));

const { limiter } = fc.letrec<{ limiter: Recipe }>((tie) => ({
  limiter: fc.oneof(
    { maxDepth: 3 },
    action('bucket', { ratePerSecond: rate, burst: count.map((n) => Math.max(n, 1)) }),
    action('exponential', { baseDelayMs: delayMs, maxDelayMs: delayMs, maxItems }),
    action('fastSlow', { fastDelayMs: delayMs, slowDelayMs: delayMs, maxFastAttempts: count, maxItems }),
    action('maxOf', { limiters: fc.array(tie('limiter'), { maxLength: 3 }) }),
    action('maxWait', { limiter: tie('limiter'), maxDelayMs: delayMs }),
    action('jitter', {
      limiter: tie('limiter'),
      fraction: fc.double({ min: 0, max: 1, noNaN: true }),
      chances: fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), { minLength: 1 }),
    }),
  ),
}));

/** One that wraps somebody else's, who may say anything. */
const foreign = action('foreign', { delays: fc.array(fc.double(), { minLength: 1 }) });
const wrapper = action('maxOf', { limiters: fc.array(foreign, { maxLength: 3 }) });

/** A recipe without its kind, which is not an option. */
function optionsOf<R extends Recipe>(recipe: R): Omit<R, 'kind'> {
  return Object.fromEntries(Object.entries(recipe).filter(([name]) => name !== 'kind')) as Omit<R, 'kind'>;
}

function make(recipe: Recipe, now: () => number): RateLimiter<number> {
  switch (recipe.kind) {
    case 'bucket':
      return new BucketRateLimiter({
        ...optionsOf(recipe),
        clock: { now, wallNow: now, setTimeout: () => expect.fail('a limiter arms nothing') },
      });
    case 'exponential':
      return new ItemExponentialFailureRateLimiter(optionsOf(recipe));
    case 'fastSlow':
      return new ItemFastSlowRateLimiter(optionsOf(recipe));
    case 'foreign': {
      let calls = 0;
      const when = (): number => recipe.delays[calls++ % recipe.delays.length] ?? 0;
      return { when, forget: () => undefined, numRequeues: () => 0 };
    }
    case 'maxOf':
      return new MaxOfRateLimiter(...recipe.limiters.map((inner) => make(inner, now)));
    case 'maxWait':
      return new WithMaxWaitRateLimiter(make(recipe.limiter, now), recipe.maxDelayMs);
    case 'jitter': {
      let calls = 0;
      const random = (): number => recipe.chances[calls++ % recipe.chances.length] ?? 0;
      return new WithJitterRateLimiter(make(recipe.limiter, now), { fraction: recipe.fraction, random });
    }
  }
}

const step = fc.record({
  what: fc.constantFrom('when' as const, 'when' as const, 'when' as const, 'forget' as const),
  item: fc.nat({ max: 4 }),
  times: weighted([10, fc.constant(1)], [1, fc.constantFrom(100, 1_100)]),
  passMs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e6, noNaN: true }), fc.constant(1e15)),
});

testProperty(
  'no limiter returns NaN, a negative or an infinite delay, whatever its valid options and its history',
  fc.property(fc.oneof(limiter, wrapper), fc.array(step, { maxLength: 30 }), (recipe, steps) => {
    let nowMs = 0;
    const subject = make(recipe, () => nowMs);
    const isDelay = (delay: number): boolean => delay >= 0 && delay < Infinity;
    for (const { what, item, times, passMs } of steps) {
      nowMs += passMs;
      for (let i = 0; i < times; i++) {
        if (what === 'forget') subject.forget(item);
        else {
          const delay = subject.when(item);
          if (!isDelay(delay)) expect.fail(`it says ${delay}`);
        }
      }
      const failures = subject.numRequeues(item);
      if (!(failures >= 0 && Number.isInteger(failures))) expect.fail(`it counts ${failures}`);
    }
  }),
);
