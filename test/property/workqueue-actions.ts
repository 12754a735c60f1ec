import fc from 'fast-check';

/** What happens to a queue. `pick` chooses among all there ever was; `abortable` gives a signal that may fire. */
export type Action =
  | { readonly kind: 'add' | 'done' | 'cancelDelayed' | 'addRateLimited' | 'forget'; readonly key: string }
  | { readonly kind: 'addAfter'; readonly key: string; readonly delayMs: number }
  | { readonly kind: 'addWhenRoom'; readonly key: string; readonly signal: SignalKind }
  | { readonly kind: 'get' | 'drain'; readonly signal: SignalKind }
  | { readonly kind: 'next' | 'return' | 'abortLoop'; readonly loop: number }
  | { readonly kind: 'abort' | 'leaseDone' | 'doneHeld'; readonly pick: number }
  | { readonly kind: 'shutDown' }
  | { readonly kind: 'pass'; readonly ms: number };

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

const key = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const pick = fc.nat({ max: 1_000 });
const signal = fc.constantFrom<SignalKind>('none', 'none', 'later', 'later', 'later', 'fired');
const loop = fc.nat({ max: LOOPS - 1 });

/** Short enough for the finest wheel, where what is due at one time comes in order of arrival. */
const delayMs = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 1, max: 40 }) },
  { weight: 1, arbitrary: fc.constantFrom(0, -0, -3, -Infinity) },
  { weight: 2, arbitrary: fc.constant(Infinity) },
);

const kinds = <Kind extends string>(...names: Kind[]): fc.Arbitrary<Kind> => fc.constantFrom(...names);

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 40, arbitrary: fc.record({ kind: kinds('add'), key }) },
  { weight: 25, arbitrary: fc.record({ kind: kinds('get'), signal }) },
  { weight: 20, arbitrary: fc.record({ kind: kinds('next'), loop }) },
  { weight: 25, arbitrary: fc.record({ kind: kinds('doneHeld', 'doneHeld', 'leaseDone'), pick }) },
  { weight: 6, arbitrary: fc.record({ kind: kinds('done'), key }) },
  { weight: 12, arbitrary: fc.record({ kind: kinds('abort'), pick }) },
  { weight: 3, arbitrary: fc.record({ kind: kinds('return', 'abortLoop'), loop }) },
  { weight: 15, arbitrary: fc.record({ kind: kinds('addWhenRoom'), key, signal }) },
  { weight: 20, arbitrary: fc.record({ kind: kinds('addAfter'), key, delayMs }) },
  { weight: 15, arbitrary: fc.record({ kind: kinds('addRateLimited', 'addRateLimited', 'forget'), key }) },
  { weight: 6, arbitrary: fc.record({ kind: kinds('cancelDelayed'), key }) },
  { weight: 20, arbitrary: fc.record({ kind: kinds('pass'), ms: fc.integer({ min: 0, max: 15 }) }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'shutDown' as const }) },
  { weight: 2, arbitrary: fc.record({ kind: kinds('drain'), signal }) },
);

const setup: fc.Arbitrary<QueueSetup> = fc.record({
  layer: kinds('work', 'delaying', 'limited', 'limited'),
  maxSize: fc.constantFrom(Infinity, Infinity, 1, 2, 3),
  isTimerShared: fc.boolean(),
  busyKeys: fc.constantFrom(0, 0, 0, 150),
});

export const scenario: fc.Arbitrary<Scenario> = fc.record({
  setup,
  steps: fc.array(fc.array(action, { minLength: 1, maxLength: 4 }), { maxLength: 80, size: 'max' }),
});
