import fc from 'fast-check';
import { expect, test } from 'vitest';
import { scenario } from './timer-actions.ts';
import { TimerWorld } from './timer-world.ts';

const RUNS = Number(process.env['ESCAPEMENT_FUZZ_RUNS'] ?? 300);

test(
  'two timers behave like naive sorted lists, whatever is done to them, from outside and from inside tasks',
  { timeout: 60_000 + RUNS * 200 },
  async () => {
    expect(RUNS).toBeGreaterThan(0);
    await fc.assert(
      fc.asyncProperty(scenario, (world) => new TimerWorld(world).run()),
      { numRuns: RUNS, endOnFailure: false },
    );
  },
);
