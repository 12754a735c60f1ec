import fc from 'fast-check';
import { afterAll, beforeAll, test } from 'vitest';
import { history, maxArchived } from './broker-actions.ts';
import { BrokerWorld } from './broker-world.ts';
import { RedisSides } from './redis-side.ts';
import { propertyRuns, timeoutOf } from '../runs.ts';

const RUNS = 60;

let sides: RedisSides;

beforeAll(async () => {
  sides = await RedisSides.start();
});
afterAll(() => sides[Symbol.asyncDispose]());

test(
  'the broker on Redis behaves like arrays that are searched, whatever is done to it',
  { timeout: timeoutOf(RUNS) },
  async () => {
    await fc.assert(
      fc.asyncProperty(maxArchived, history, (max, actions) => BrokerWorld.run(sides.open, max, actions)),
      propertyRuns(RUNS),
    );
  },
);
