import fc from 'fast-check';
import { test } from 'vitest';
import { scenario } from './timer-actions.ts';
import { TimerWorld } from './timer-world.ts';
import { propertyRuns, timeoutOf } from '../runs.ts';

test(
  'two timers behave like naive sorted lists, whatever is done to them, from outside and from inside tasks',
  { timeout: timeoutOf() },
  async () => {
    await fc.assert(
      fc.asyncProperty(scenario, (world) => new TimerWorld(world).run()),
      propertyRuns(),
    );
  },
);
