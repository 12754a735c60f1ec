import fc from 'fast-check';
import { expect, test } from 'vitest';
import { scenario } from './workqueue-actions.ts';
import { WorkQueueWorld } from './workqueue-world.ts';

/*
 * ESCAPEMENT_FUZZ_RUNS=20000 makes it a fuzzer. A failure prints its seed and path; ESCAPEMENT_FUZZ_SEED and
 * ESCAPEMENT_FUZZ_PATH replay it.
 */
const { ESCAPEMENT_FUZZ_RUNS, ESCAPEMENT_FUZZ_SEED, ESCAPEMENT_FUZZ_PATH } = process.env;

const RUNS = Number(ESCAPEMENT_FUZZ_RUNS ?? 300);
const replay = {
  ...(ESCAPEMENT_FUZZ_SEED !== undefined && { seed: Number(ESCAPEMENT_FUZZ_SEED) }),
  ...(ESCAPEMENT_FUZZ_PATH !== undefined && { path: ESCAPEMENT_FUZZ_PATH }),
};

test(
  'a queue behaves like arrays and maps, whatever is done to it',
  { timeout: 60_000 + RUNS * 400 },
  async () => {
    expect(RUNS).toBeGreaterThan(0);
    await fc.assert(
      fc.asyncProperty(scenario, (world) => new WorkQueueWorld(world).run()),
      { numRuns: RUNS, ...replay },
    );
  },
);
