import fc from 'fast-check';
import type { SystemTimerOptions } from 'escapement';

/** A delay in milliseconds, or one that lies at the edge of a wheel's turn: `span of the level + deltaMs`. */
export type Delay = number | { readonly level: number; readonly deltaMs: number };

/** One of the two timers of a world. */
export type Which = 0 | 1;

/** What happens in a world, from outside or inside a running task. `pick` chooses among all there ever was. */
export type Action =
  | {
      readonly kind: 'add' | 'schedule' | 'sleep';
      readonly on: Which;
      readonly delay: Delay;
      readonly script: number;
      /** Whether the delay is given as a deadline: now + delay. A sleep has none. */
      readonly isAbsolute: boolean;
    }
  | { readonly kind: 'cancel'; readonly pick: number }
  | {
      readonly kind: 'move';
      readonly pick: number;
      readonly on: Which;
      readonly delay: Delay;
      readonly isAbsolute: boolean;
    }
  | { readonly kind: 'poll' | 'advanceClock' | 'fire' | 'next' | 'execute'; readonly on: Which }
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'close'; readonly on: Which; readonly pending: 'drop' | 'run' }
  | { readonly kind: 'throw' };

/** None, one that runs what it is given and once more, one that throws, and one that runs it on `execute`. */
export type ExecutorKind = 'none' | 'twice' | 'throws' | 'later';

/** The options of a timer that the model must know. */
export interface TimerSetup extends Required<
  Pick<SystemTimerOptions, 'tickMs' | 'wheelSize' | 'rounding' | 'autoStart' | 'maxTasksPerTurn'>
> {
  readonly executorKind: ExecutorKind;
  /** How many entries a turn of at most `maxTasksPerTurn` moves. */
  readonly movesPerTurn: number;
}

/** A whole run: two timers, what their tasks do, and what happens to them. */
export interface Scenario {
  readonly startMs: number;
  readonly idleMs: number;
  readonly setups: readonly [TimerSetup, TimerSetup];
  /** What a task does when it runs: `script` of an action is an index into this. */
  readonly scripts: readonly (readonly Action[])[];
  readonly steps: readonly Action[];
}

/** Below this, in milliseconds, half of a number may be nothing: no clock and no timer can tell it from 0. */
const LEAST_MS = 2 ** -1_000;

function milliseconds(max: number): fc.Arbitrary<number> {
  return fc.double({ min: 0, max, noNaN: true }).map((ms) => (ms < LEAST_MS ? 0 : ms));
}

const which = fc.constantFrom<Which>(0, 1);
const pick = fc.nat({ max: 1_000 });

const delay: fc.Arbitrary<Delay> = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: -2, max: 30 }) },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 2_000 }) },
  { weight: 3, arbitrary: milliseconds(100) },
  {
    weight: 3,
    arbitrary: fc.record({
      level: fc.integer({ min: 1, max: 6 }),
      deltaMs: fc.constantFrom(-1, -0.5, 0, 0.5, 1),
    }),
  },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 5_000_000 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      ...[2 ** 31 - 1, 2 ** 31, 2 ** 33 + 0.5, 1e12, 1e15, 2 ** 53 - 1, Number.MAX_VALUE, LEAST_MS],
      ...[-1e9, -Number.MAX_VALUE, -0],
    ),
  },
);

const passingMs = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 0, max: 8 }) },
  { weight: 3, arbitrary: milliseconds(50) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 3_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(1e6, 2 ** 31, 2 ** 33, 1e12) },
);

const entering = fc.record({
  kind: fc.constantFrom('add' as const, 'schedule' as const, 'sleep' as const),
  on: which,
  delay,
  script: fc.nat({ max: 7 }),
  isAbsolute: fc.boolean(),
});
const cancelling = fc.record({ kind: fc.constant('cancel' as const), pick });
const moving = fc.record({
  kind: fc.constant('move' as const),
  ...{ pick, on: which, delay, isAbsolute: fc.boolean() },
});
const pumping = fc.record({ kind: fc.constantFrom('poll' as const, 'advanceClock' as const), on: which });
const waking = fc.record({
  kind: fc.constantFrom('fire' as const, 'next' as const, 'execute' as const),
  on: which,
});
const passing = fc.record({ kind: fc.constant('pass' as const), ms: passingMs });
const closing = fc.record({
  kind: fc.constant('close' as const),
  on: which,
  pending: fc.constantFrom('drop' as const, 'run' as const),
});
const throwing = fc.constant({ kind: 'throw' as const });

const step: fc.Arbitrary<Action> = fc.oneof(
  { weight: 100, arbitrary: entering },
  { weight: 30, arbitrary: cancelling },
  { weight: 40, arbitrary: moving },
  { weight: 20, arbitrary: pumping },
  { weight: 50, arbitrary: waking },
  { weight: 50, arbitrary: passing },
  { weight: 1, arbitrary: closing },
);

const scripted: fc.Arbitrary<Action> = fc.oneof(
  { weight: 20, arbitrary: entering },
  { weight: 15, arbitrary: cancelling },
  { weight: 20, arbitrary: moving },
  { weight: 8, arbitrary: pumping },
  { weight: 4, arbitrary: waking },
  { weight: 6, arbitrary: passing },
  { weight: 10, arbitrary: throwing },
  { weight: 1, arbitrary: closing },
);

const setup: fc.Arbitrary<TimerSetup> = fc.record({
  tickMs: fc.integer({ min: 1, max: 12 }),
  wheelSize: fc.oneof(fc.integer({ min: 2, max: 6 }), fc.integer({ min: 2, max: 70 })),
  rounding: fc.constantFrom('up' as const, 'up' as const, 'down' as const),
  autoStart: fc.oneof(
    { weight: 3, arbitrary: fc.constant(true) },
    { weight: 1, arbitrary: fc.constant(false) },
  ),
  maxTasksPerTurn: fc.constantFrom(1, 2, 3, 5, 10_000, Infinity),
  movesPerTurn: fc.constantFrom(1, 2, 3, 10, 2 ** 16, 2 ** 16),
  executorKind: fc.constantFrom<ExecutorKind>(
    'none',
    'none',
    'none',
    'none',
    'twice',
    'throws',
    'later',
    'later',
  ),
});

export const scenario: fc.Arbitrary<Scenario> = fc.record({
  startMs: fc.oneof(fc.constantFrom(0, 0.25, 999.75, 1e6 + 0.1, 2 ** 31, 1.7e12 + 0.5), milliseconds(1e5)),
  idleMs: fc.oneof(fc.constant(0), milliseconds(1e5)),
  setups: fc.tuple(setup, setup),
  scripts: fc.array(fc.array(scripted, { maxLength: 5 }), { minLength: 8, maxLength: 8 }),
  steps: fc.array(step, { maxLength: 220, size: 'max' }),
});
