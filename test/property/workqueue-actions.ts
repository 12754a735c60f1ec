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

const someAction = weighted(
  [40, action('add', { key })],
  [25, action('get', { signal })],
  [20, action('next', { loop })],
  [25, action(['doneHeld', 'doneHeld', 'leaseDone'], { pick })],
  [6, action('done', { key })],
  [12, action('abort', { pick })],
  [3, action(['return', 'abortLoop'], { loop })],
  [15, action('addWhenRoom', { key, signal })],
  [20, action('addAfter', { key, delayMs })],
  [15, action(['addRateLimited', 'addRateLimited', 'forget'], { key })],
  [6, action('cancelDelayed', { key })],
  [20, action('pass', { ms: fc.integer({ min: 0, max: 15 }) })],
  [1, action('shutDown')],
  [2, action('drain', { signal })],
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
