import fc from 'fast-check';
import { test } from 'vitest';

/*
 * How often a test that repeats itself does so.
 *
 *   npm test                       a tenth of the usual number
 *   npm run test:all               a quarter of it: with a fixed seed, that finds what a change breaks
 *   npm run test:slow              the same; in files that npm test has, as many as that has left of the quarter, with other seeds
 *   ESCAPEMENT_FUZZ_RUNS=20000     so many where 300 are usual, and other numbers in proportion; the nightly search has 3000
 *   ESCAPEMENT_FUZZ_SEED=random    other cases than those of the fixed seed, which are the same in every run: a change fails for what
 *                                  it changes, and new cases are searched for on purpose (nightly, by .github/workflows/fuzz.yml)
 *
 * A failure prints its seed (and, for fast-check, its path); ESCAPEMENT_FUZZ_SEED and ESCAPEMENT_FUZZ_PATH replay it.
 */
const { ESCAPEMENT_FUZZ_RUNS, ESCAPEMENT_FUZZ_SEED, ESCAPEMENT_FUZZ_PATH, ESCAPEMENT_TESTS } = process.env;

const USUAL_RUNS = 300;

/** Of the usual runs, by what `vitest.config.ts` sets: `rest` is what `npm test` has left of all. */
const SHARES: Readonly<Record<string, number>> = { all: 0.25, rest: 0.15 };
const FAST_SHARE = 0.1;

const SHARE =
  ESCAPEMENT_FUZZ_RUNS === undefined
    ? (SHARES[ESCAPEMENT_TESTS ?? ''] ?? FAST_SHARE)
    : Number(ESCAPEMENT_FUZZ_RUNS) / USUAL_RUNS;

/** Higher than the seeds of all loops of `npm test`. */
const FIRST_SEED_OF_REST = 1_001;

const FIXED_SEED = ESCAPEMENT_TESTS === 'rest' ? FIRST_SEED_OF_REST : 1;

/** The first seed of a loop over seeds, and the seed of properties. */
export const FIRST_SEED =
  ESCAPEMENT_FUZZ_SEED === 'random'
    ? Math.floor(Math.random() * 2 ** 31)
    : Number(ESCAPEMENT_FUZZ_SEED ?? FIXED_SEED);

/** Returns the number of repetitions, at least 1. */
export function runs(usual: number): number {
  return Math.max(1, Math.round(usual * SHARE));
}

/** The step of a loop over every byte of a file: `most` in `npm test`, a third of it in the slow tests, 1 with as many runs as usual. */
export function stepOf(most: number): number {
  if (SHARE <= FAST_SHARE) return most;
  return SHARE < 1 ? Math.ceil(most / 3) : 1;
}

/** Parameters of `fc.assert`. */
export function propertyRuns(usual: number = USUAL_RUNS): { numRuns: number; seed: number; path?: string } {
  return {
    numRuns: runs(usual),
    seed: FIRST_SEED,
    ...(ESCAPEMENT_FUZZ_PATH !== undefined && { path: ESCAPEMENT_FUZZ_PATH }),
  };
}

/**
 * A test of a property.
 *
 * @param usual - the number of runs, of which `npm run test:all` makes a quarter.
 * @param parameters - other parameters of `fc.assert`.
 */
export function testProperty<Values>(
  name: string,
  property: fc.IRawProperty<Values>,
  usual: number = USUAL_RUNS,
  parameters: fc.Parameters<Values> = {},
): void {
  test(name, { timeout: timeoutOf(usual) }, async () => {
    await fc.assert(property, { ...parameters, ...(propertyRuns(usual) as fc.Parameters<Values>) });
  });
}

/** Milliseconds that a property may take: generous, for a busy machine. */
export function timeoutOf(usual: number = USUAL_RUNS): number {
  return 60_000 + runs(usual) * 10_000;
}
