import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import { findRedis } from './test/redis/find-redis.ts';

const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Left out without Redis. Other files run what they can. */
const NEED_REDIS = [
  'test/tasks/broker/redis/**',
  'test/property/redis-*.test.ts',
  'test/redis/{redis-case,redis-process.slow}.test.ts',
  'test/bench/redis/**',
  'test/bench/scaling/hash-slot.test.ts',
  'test/tasks/server/blocked-loop.slow.test.ts',
  'test/cli/tasks/{dash.slow,redis,redis.slow}.test.ts',
];

/** Tests that `npm test` runs less often than the others. */
function repeatingTests(): string[] {
  const files = readdirSync(source('./test'), { recursive: true, encoding: 'utf8' });
  const tests = files
    .map((path) => `test/${path.replaceAll('\\', '/')}`)
    .filter((path) => path.endsWith('.test.ts'));
  return tests.filter((path) => readFileSync(source(`./${path}`), 'utf8').includes("/runs.ts';"));
}

function hasSlowTests(mode: string): boolean {
  return mode === 'all' || mode === 'slow';
}

/**
 * `npm test` runs what is fast. `npm run test:all` (`--mode all`) adds `*.slow.test.ts`, and repeats more often what repeats itself;
 * see test/runs.ts. `npm run test:slow` (`--mode slow`) runs what `npm test` has left for that.
 */
export default defineConfig(({ mode }) => ({
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
    include: mode === 'slow' ? ['test/**/*.slow.test.ts', ...repeatingTests()] : ['test/**/*.test.ts'],
    exclude: [
      ...configDefaults.exclude,
      ...(hasSlowTests(mode) ? [] : ['test/**/*.slow.test.ts']),
      ...('lack' in findRedis() ? NEED_REDIS : []),
    ],
    env: hasSlowTests(mode) ? { ESCAPEMENT_TESTS: 'all' } : {},
    globalSetup: ['test/redis/global-setup.ts', 'test/temporary-folder.ts'],
    // A Redis that is not ours has one database for all of us.
    fileParallelism: (process.env['REDIS_URL'] ?? '') === '',
    pool: 'forks',
    maxWorkers: '100%',
    execArgv: ['--expose-gc'],
    testTimeout: hasSlowTests(mode) ? 120_000 : 30_000,
    coverage: {
      provider: 'custom',
      customProviderModule: source('./tools/node_modules/@vitest/coverage-v8/dist/index.js'),
      include: ['src/**/*.ts'],
      reporter: ['text-summary', 'text'],
    },
  },
}));
