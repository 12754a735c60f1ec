import fc from 'fast-check';

/** One of the two purgatories of a world. */
export type Which = 0 | 1;

/** What happens in a world, from outside or inside an operation. `pick` chooses among all there ever was. */
export type Action =
  | {
      readonly kind: 'watch' | 'wait';
      readonly on: Which;
      readonly keys: readonly string[];
      readonly delayMs: number;
      readonly holds: boolean;
      readonly script: number;
    }
  | {
      readonly kind: 'watchAgain';
      readonly pick: number;
      readonly on: Which;
      readonly keys: readonly string[];
    }
  | { readonly kind: 'check' | 'cancelForKey'; readonly on: Which; readonly key: string }
  | { readonly kind: 'change'; readonly pick: number; readonly holds: boolean }
  | { readonly kind: 'force' | 'cancel' | 'maybe' | 'abort'; readonly pick: number }
  | { readonly kind: 'close'; readonly on: Which; readonly pending: 'complete' | 'drop' }
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'throw' };

/** What an operation does besides. */
export interface Script {
  readonly onTry: readonly Action[];
  readonly onComplete: readonly Action[];
  readonly onExpiration: readonly Action[];
}

/** A whole run. */
export interface Scenario {
  /** `script` of an action is an index into this. */
  readonly scripts: readonly Script[];
  readonly steps: readonly Action[];
}

const which = fc.constantFrom<Which>(0, 0, 1);
const pick = fc.nat({ max: 1_000 });
const key = fc.constantFrom('a', 'b', 'c', 'd');
const keys = fc.array(key, { minLength: 1, maxLength: 4 });

/** Short enough for the finest wheel, where what is due at one time runs in order of arrival. */
const delayMs = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 40 }) },
  { weight: 1, arbitrary: fc.constantFrom(0, -3) },
  { weight: 2, arbitrary: fc.constant(Infinity) },
);

const entering = fc.record({
  kind: fc.constantFrom('watch' as const, 'watch' as const, 'watch' as const, 'wait' as const),
  on: which,
  keys,
  delayMs,
  holds: fc.constantFrom(false, false, false, true),
  script: fc.nat({ max: 5 }),
});
const again = fc.record({ kind: fc.constant('watchAgain' as const), pick, on: which, keys });
const checking = fc.record({ kind: fc.constant('check' as const), on: which, key });
const cancelling = fc.record({ kind: fc.constant('cancelForKey' as const), on: which, key });
const changing = fc.record({
  kind: fc.constant('change' as const),
  pick,
  holds: fc.constantFrom(true, true, false),
});
const picking = fc.record({
  kind: fc.constantFrom('force' as const, 'cancel' as const, 'maybe' as const, 'abort' as const),
  pick,
});
const closing = fc.record({
  kind: fc.constant('close' as const),
  on: which,
  pending: fc.constantFrom('complete' as const, 'drop' as const),
});
const passing = fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 12 }) });
const throwing = fc.constant({ kind: 'throw' as const });

const step: fc.Arbitrary<Action> = fc.oneof(
  { weight: 60, arbitrary: entering },
  { weight: 15, arbitrary: again },
  { weight: 50, arbitrary: checking },
  { weight: 8, arbitrary: cancelling },
  { weight: 50, arbitrary: changing },
  { weight: 25, arbitrary: picking },
  { weight: 30, arbitrary: passing },
  { weight: 1, arbitrary: closing },
);

const scripted: fc.Arbitrary<Action> = fc.oneof(
  { weight: 12, arbitrary: entering },
  { weight: 8, arbitrary: again },
  { weight: 30, arbitrary: checking },
  { weight: 5, arbitrary: cancelling },
  { weight: 15, arbitrary: changing },
  { weight: 15, arbitrary: picking },
  { weight: 6, arbitrary: throwing },
  { weight: 1, arbitrary: closing },
);

const actions = fc.array(scripted, { maxLength: 3 });

export const scenario: fc.Arbitrary<Scenario> = fc.record({
  scripts: fc.array(fc.record({ onTry: actions, onComplete: actions, onExpiration: actions }), {
    minLength: 6,
    maxLength: 6,
  }),
  steps: fc.array(step, { maxLength: 80, size: 'max' }),
});
