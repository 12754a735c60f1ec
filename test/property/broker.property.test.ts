import fc from 'fast-check';
import { test } from 'vitest';
import { history, maxArchived } from './broker-actions.ts';
import { openEmbeddedSide } from './broker-side.ts';
import { BrokerWorld } from './broker-world.ts';
import { propertyRuns, timeoutOf } from '../runs.ts';

const RUNS = 300;

test(
  'the embedded broker behaves like arrays that are searched, whatever is done to it',
  { timeout: timeoutOf(RUNS) },
  async () => {
    await fc.assert(
      fc.asyncProperty(maxArchived, history, (max, actions) =>
        BrokerWorld.run(openEmbeddedSide, max, actions),
      ),
      propertyRuns(RUNS),
    );
  },
);
