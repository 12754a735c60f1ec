import fc from 'fast-check';
import { test } from 'vitest';
import { scenario } from './workqueue-actions.ts';
import { WorkQueueWorld } from './workqueue-world.ts';
import { propertyRuns, timeoutOf } from '../runs.ts';

test('a queue behaves like arrays and maps, whatever is done to it', { timeout: timeoutOf() }, async () => {
  await fc.assert(
    fc.asyncProperty(scenario, (world) => new WorkQueueWorld(world).run()),
    propertyRuns(),
  );
});
