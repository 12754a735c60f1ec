import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^escapement$/, replacement: source('./src/index.ts') },
      { find: /^escapement\/testing$/, replacement: source('./src/testing.ts') },
      { find: /^escapement\/timers$/, replacement: source('./src/timers.ts') },
      { find: /^escapement\/timers\/promises$/, replacement: source('./src/timers-promises.ts') },
      { find: /^escapement\/diskqueue$/, replacement: source('./src/diskqueue.ts') },
      { find: /^escapement\/tasks$/, replacement: source('./src/tasks.ts') },
      { find: /^escapement\/tasks\/http$/, replacement: source('./src/tasks-http.ts') },
      { find: /^escapement\/tasks\/redis$/, replacement: source('./src/tasks-redis.ts') },
      { find: /^escapement\/tasks\/otel$/, replacement: source('./src/tasks-otel.ts') },
      { find: /^escapement\/metrics\/prometheus$/, replacement: source('./src/metrics-prometheus.ts') },
      { find: /^escapement\/metrics\/otel$/, replacement: source('./src/metrics-otel.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    typecheck: { enabled: true, include: ['test/types/**/*.test-d.ts'] },
    globalSetup: ['test/redis/global-setup.ts'],
    // A Redis that is not ours has one database for all of us.
    fileParallelism: (process.env['REDIS_URL'] ?? '') === '',
    pool: 'forks',
    execArgv: ['--expose-gc'],
    testTimeout: 30_000,
    coverage: { provider: 'v8', include: ['src/**/*.ts'], reporter: ['text-summary', 'text'] },
  },
});
