import fc from 'fast-check';
import { action, weighted, type ValueOf } from './actions.ts';

export type Action = ValueOf<typeof someAction>;

/** None, one that may fire later, and one that has fired. */
export type SignalKind = 'none' | 'later' | 'fired';

/** What the queue of a world is like. */
export interface QueueSetup {
  readonly layer: 'work' | 'delaying' | 'limited';
  readonly maxSize: number;
  readonly isTimerShared: boolean;
  /** Keys that somebody holds all the time: idle keys are kept only where there are many. */
  readonly busyKeys: number;
}

/** A whole run: each step is several actions in one turn. */
export interface Scenario {
  readonly setup: QueueSetup;
  readonly steps: readonly (readonly Action[])[];
}

/** Loops over leases in a world. The first one has no signal. */
export const LOOPS = 3;

const key = fc.constantFrom<string>('a', 'b', 'c', 'd', 'e');
/** Chooses among all there ever was. */
const pick = fc.nat({ max: 1_000 });
/** A signal that may fire. */
const signal = fc.constantFrom<SignalKind>('none', 'none', 'later', 'later', 'later', 'fired');
const loop = fc.nat({ max: LOOPS - 1 });

/** Short enough for the finest wheel, where what is due at one time comes in order of arrival. */
const delayMs = weighted(
  [8, fc.integer({ min: 1, max: 40 })],
  [1, fc.constantFrom(0, -0, -3, -Infinity)],
  [2, fc.constant(Infinity)],
);

const someAction = fc.oneof(
  { weight: 40, arbitrary: action('add', { key }) },
  { weight: 25, arbitrary: action('get', { signal }) },
  { weight: 20, arbitrary: action('next', { loop }) },
  { weight: 25, arbitrary: action(['doneHeld', 'doneHeld', 'leaseDone'], { pick }) },
  { weight: 6, arbitrary: action('done', { key }) },
  { weight: 12, arbitrary: action('abort', { pick }) },
  { weight: 3, arbitrary: action(['return', 'abortLoop'], { loop }) },
  { weight: 15, arbitrary: action('addWhenRoom', { key, signal }) },
  { weight: 20, arbitrary: action('addAfter', { key, delayMs }) },
  { weight: 15, arbitrary: action(['addRateLimited', 'addRateLimited', 'forget'], { key }) },
  { weight: 6, arbitrary: action('cancelDelayed', { key }) },
  { weight: 20, arbitrary: action('pass', { ms: fc.integer({ min: 0, max: 15 }) }) },
  { weight: 1, arbitrary: action('shutDown') },
  { weight: 2, arbitrary: action('drain', { signal }) },
);

const setup: fc.Arbitrary<QueueSetup> = fc.record({
  layer: fc.constantFrom('work', 'delaying', 'limited', 'limited'),
  maxSize: fc.constantFrom(Infinity, Infinity, 1, 2, 3),
  isTimerShared: fc.boolean(),
  busyKeys: fc.constantFrom(0, 0, 0, 150),
});

export const scenario: fc.Arbitrary<Scenario> = fc.record({
  setup,
  steps: fc.array(fc.array(someAction, { minLength: 1, maxLength: 4 }), { maxLength: 80, size: 'max' }),
});
