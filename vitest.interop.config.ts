import { defineConfig } from 'vitest/config';

/** Tests with other implementations, which have to be there: `npm test` does without. */
export default defineConfig({
  test: {
    pool: 'forks',
    testTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'go',
          include: ['test/interop/**/*.interop.ts'],
          exclude: ['test/interop/node-timers/**'],
          env: { ESCAPEMENT_TESTS: 'all' },
          globalSetup: [
            'test/redis/global-setup.ts',
            'test/temporary-folder.ts',
            'test/interop/asynq/support/build-drivers.ts',
          ],
          // They wait for others, most of the time.
          maxWorkers: 6,
          isolate: false, // loading the library takes longer than most of their own work
        },
      },
      {
        extends: true,
        test: { name: 'node', include: ['test/interop/node-timers/*.interop.ts'], maxWorkers: 1 },
      },
    ],
  },
});
