import { afterAll, afterEach, beforeAll, describe, test } from 'vitest';
import { GO_VERSIONS, type GoVersion } from './go-versions.ts';
import { World } from './world.ts';

let lastQueue = 0;

/** A test with the name of a queue that no other test has used. */
export const it = test.extend('queue', () => `queue-of-test-${++lastQueue}`);

/** The same tests with each version of asynq, or with some. */
export function describeEachGo(
  tests: (world: () => World, version: GoVersion) => void,
  versions: readonly GoVersion[] = GO_VERSIONS,
): void {
  describe.each(versions)('asynq %s', (version) => {
    let world: World;
    beforeAll(async () => {
      world = await World.start(version);
    });
    afterEach(() => world.endTest());
    afterAll(() => world.stop());
    tests(() => world, version);
  });
}
