import fc from 'fast-check';
import { action, weighted, type ValueOf } from './actions.ts';
import type { WheelShape } from './timer-model.ts';

/** A delay in milliseconds, or one that lies at the edge of a wheel's turn: `span of the level + deltaMs`. */
export type Delay = number | { readonly level: number; readonly deltaMs: number };

/** One of the two timers of a world. */
export type Which = 0 | 1;

/** What happens in a world, from outside or inside a running task. */
export type Action = ValueOf<typeof step> | ValueOf<typeof scripted>;

/** None, one that runs what it is given and once more, one that throws, and one that runs it on `execute`. */
export type ExecutorKind = 'none' | 'twice' | 'throws' | 'later';

/** The options of a timer that the model must know. */
export interface TimerSetup extends WheelShape {
  readonly autoStart: boolean;
  readonly maxTasksPerTurn: number;
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

const on = fc.constantFrom<Which>(0, 1);
/** Chooses among all there ever was. */
const pick = fc.nat({ max: 1_000 });

const delay: fc.Arbitrary<Delay> = weighted(
  [6, fc.integer({ min: -2, max: 30 })],
  [3, fc.integer({ min: 0, max: 2_000 })],
  [3, milliseconds(100)],
  [3, fc.record({ level: fc.integer({ min: 1, max: 6 }), deltaMs: fc.constantFrom(-1, -0.5, 0, 0.5, 1) })],
  [1, fc.integer({ min: 0, max: 5_000_000 })],
  [
    1,
    fc.constantFrom(2 ** 31 - 1, 2 ** 31, 2 ** 33 + 0.5, 1e12, 1e15, 2 ** 53 - 1, Number.MAX_VALUE, LEAST_MS),
  ],
  [1, fc.constantFrom(-1e9, -Number.MAX_VALUE, -0)],
);

const passingMs = weighted(
  [5, fc.integer({ min: 0, max: 8 })],
  [3, milliseconds(50)],
  [2, fc.integer({ min: 0, max: 3_000 })],
  [1, fc.constantFrom(1e6, 2 ** 31, 2 ** 33, 1e12)],
);

/** Whether the delay is given as a deadline: now + delay. A sleep has none. */
const isAbsolute = fc.boolean();
const entering = action(['add', 'schedule', 'sleep'], { on, delay, script: fc.nat({ max: 7 }), isAbsolute });
const cancelling = action('cancel', { pick });
const moving = action('move', { pick, on, delay, isAbsolute });
const pumping = action(['poll', 'advanceClock'], { on });
const waking = action(['fire', 'next', 'execute'], { on });
const passing = action('pass', { ms: passingMs });
const closing = action('close', { on, pending: fc.constantFrom('drop', 'run') });

const step = weighted(
  [100, entering],
  [30, cancelling],
  [40, moving],
  [20, pumping],
  [50, waking],
  [50, passing],
  [1, closing],
);

const scripted = weighted(
  [20, entering],
  [15, cancelling],
  [20, moving],
  [8, pumping],
  [4, waking],
  [6, passing],
  [10, action('throw')],
  [1, closing],
);

const EXECUTORS: readonly ExecutorKind[] = [
  'none',
  'none',
  'none',
  'none',
  'twice',
  'throws',
  'later',
  'later',
];

const setup: fc.Arbitrary<TimerSetup> = fc.record({
  tickMs: fc.integer({ min: 1, max: 12 }),
  wheelSize: fc.oneof(fc.integer({ min: 2, max: 6 }), fc.integer({ min: 2, max: 70 })),
  rounding: fc.constantFrom('up', 'up', 'down'),
  autoStart: fc.constantFrom(true, true, true, false),
  maxTasksPerTurn: fc.constantFrom(1, 2, 3, 5, 10_000, Infinity),
  movesPerTurn: fc.constantFrom(1, 2, 3, 10, 2 ** 16, 2 ** 16),
  executorKind: fc.constantFrom(...EXECUTORS),
});

export const scenario: fc.Arbitrary<Scenario> = fc.record({
  startMs: fc.oneof(fc.constantFrom(0, 0.25, 999.75, 1e6 + 0.1, 2 ** 31, 1.7e12 + 0.5), milliseconds(1e5)),
  idleMs: fc.oneof(fc.constant(0), milliseconds(1e5)),
  setups: fc.tuple(setup, setup),
  scripts: fc.array(fc.array(scripted, { maxLength: 5 }), { minLength: 8, maxLength: 8 }),
  steps: fc.array(step, { maxLength: 220, size: 'max' }),
});
