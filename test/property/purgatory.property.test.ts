import fc from 'fast-check';
import { test } from 'vitest';
import { scenario } from './purgatory-actions.ts';
import { PurgatoryWorld } from './purgatory-world.ts';
import { propertyRuns, timeoutOf } from '../runs.ts';

test(
  'two purgatories behave like maps of arrays, whatever is done to them, from outside and from inside operations',
  { timeout: timeoutOf() },
  async () => {
    await fc.assert(
      fc.asyncProperty(scenario, (world) => new PurgatoryWorld(world).run()),
      propertyRuns(),
    );
  },
);
