import { afterAll, afterEach, beforeAll, describe } from 'vitest';
import { GO_VERSIONS, type GoVersion } from './go-versions.ts';
import { World } from './world.ts';

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
