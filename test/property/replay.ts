/*
 * ESCAPEMENT_FUZZ_RUNS=20000 makes a property a fuzzer. A failure prints its seed and path; ESCAPEMENT_FUZZ_SEED and
 * ESCAPEMENT_FUZZ_PATH replay it.
 */
const { ESCAPEMENT_FUZZ_RUNS, ESCAPEMENT_FUZZ_SEED, ESCAPEMENT_FUZZ_PATH } = process.env;

/** Parameters of `fc.assert`. */
export function runs(byDefault: number): { numRuns: number; seed?: number; path?: string } {
  return {
    numRuns: Number(ESCAPEMENT_FUZZ_RUNS ?? byDefault),
    ...(ESCAPEMENT_FUZZ_SEED !== undefined && { seed: Number(ESCAPEMENT_FUZZ_SEED) }),
    ...(ESCAPEMENT_FUZZ_PATH !== undefined && { path: ESCAPEMENT_FUZZ_PATH }),
  };
}

/** Milliseconds that a property may take. */
export function timeoutOf(byDefault: number): number {
  return 60_000 + runs(byDefault).numRuns * 1_000;
}
