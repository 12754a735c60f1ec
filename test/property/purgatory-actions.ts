import fc from 'fast-check';
import { action, weighted, type ValueOf } from './actions.ts';

/** One of the two purgatories of a world. */
export type Which = 0 | 1;

/** What happens in a world, from outside or inside an operation. */
export type Action = ValueOf<typeof step> | ValueOf<typeof scripted>;

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

const on = fc.constantFrom<Which>(0, 0, 1);
/** Chooses among all there ever was. */
const pick = fc.nat({ max: 1_000 });
const key = fc.constantFrom('a', 'b', 'c', 'd');
const keys = fc.array(key, { minLength: 1, maxLength: 4 });

/** Short enough for the finest wheel, where what is due at one time runs in order of arrival. */
const delayMs = weighted(
  [6, fc.integer({ min: 1, max: 40 })],
  [1, fc.constantFrom(0, -3)],
  [2, fc.constant(Infinity)],
);

const entering = action(['watch', 'watch', 'watch', 'wait'], {
  ...{ on, keys, delayMs, holds: fc.constantFrom(false, false, false, true), script: fc.nat({ max: 5 }) },
});
const again = action('watchAgain', { pick, on, keys });
const checking = action('check', { on, key });
const cancelling = action('cancelForKey', { on, key });
const changing = action('change', { pick, holds: fc.constantFrom(true, true, false) });
const picking = action(['force', 'cancel', 'maybe', 'abort'], { pick });
const closing = action('close', { on, pending: fc.constantFrom('complete', 'drop') });
const passing = action('pass', { ms: fc.integer({ min: 0, max: 12 }) });

const step = weighted(
  [60, entering],
  [15, again],
  [50, checking],
  [8, cancelling],
  [50, changing],
  [25, picking],
  [30, passing],
  [1, closing],
);

const scripted = weighted(
  [12, entering],
  [8, again],
  [30, checking],
  [5, cancelling],
  [15, changing],
  [15, picking],
  [6, action('throw')],
  [1, closing],
);

const actions = fc.array(scripted, { maxLength: 3 });
const script = fc.record({ onTry: actions, onComplete: actions, onExpiration: actions });

export const scenario: fc.Arbitrary<Scenario> = fc.record({
  scripts: fc.array(script, { minLength: 6, maxLength: 6 }),
  steps: fc.array(step, { maxLength: 80, size: 'max' }),
});
