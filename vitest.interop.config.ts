import { defineConfig } from 'vitest/config';

/** Tests with other implementations, which have to be there: `npm test` does without. */
export default defineConfig({
  test: {
    include: ['test/interop/**/*.interop.ts'],
    globalSetup: ['test/redis/global-setup.ts', 'test/interop/asynq/support/build-drivers.ts'],
    pool: 'forks',
    // They wait for others, most of the time.
    maxWorkers: 6,
    testTimeout: 60_000,
  },
});
