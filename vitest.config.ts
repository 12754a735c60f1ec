import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import { findRedis } from './test/redis/find-redis.ts';

const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

const ALIASES = [
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
  { find: /^escapement\/dashboard$/, replacement: source('./src/dashboard.ts') },
];

/** Left out without Redis. Other files run what they can. */
const NEED_REDIS = [
  'test/tasks/broker/redis/**',
  'test/property/redis.property.test.ts',
  'test/redis/{redis-case,redis-process.slow}.test.ts',
  'test/bench/redis/**',
  'test/bench/scaling/hash-slot.test.ts',
  'test/tasks/server/blocked-loop.slow.test.ts',
  'test/dashboard/{redis,redis.slow}.test.ts',
  'test/cli/tasks/{copy.slow,dash.slow,redis,redis.slow}.test.ts',
];

/** Files of tests that match. */
function testsWith(pattern: RegExp): string[] {
  const files = readdirSync(source('./test'), { recursive: true, encoding: 'utf8' });
  const tests = files
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => `test/${path.replaceAll('\\', '/')}`);
  return tests.filter((path) => pattern.test(readFileSync(source(`./${path}`), 'utf8')));
}

function hasSlowTests(mode: string): boolean {
  return mode === 'all' || mode === 'slow';
}

const SLOW = 'test/**/*.slow.test.ts';

/** Files of tests that repeat themselves less often in `npm test`. */
const REPEATING = testsWith(/import \{.*(runs|Runs|Property|stepOf).*\} from '.*\/runs\.ts';/);

/** Files whose tests measure memory or collections of it, or replace modules that other files have loaded. */
const SENSITIVE = testsWith(/\/(collect|collector)\.ts';|vi\.mock\(/);

/** Files that run for long have a process of their own, too: the memory of a process that has run many files slows them down. */
function inOwnProcess(mode: string): string[] {
  return [SLOW, ...SENSITIVE, ...(mode === 'all' ? REPEATING : [])];
}

/**
 * `npm test` runs what is fast. `npm run test:all` (`--mode all`) adds `*.slow.test.ts`, and repeats more often what repeats itself;
 * see test/runs.ts. `npm run test:slow` (`--mode slow`) runs what `npm test` has left for that.
 *
 * Fast files share a process with the files that were run in it before them, in `npm run test:slow` too: starting one and loading the
 * library takes longer than the tests of most of them. So a test puts back what it changes in its process, and does not rely on being
 * the first.
 */
export default defineConfig(({ mode }) => {
  const exclude = [
    ...configDefaults.exclude,
    ...(hasSlowTests(mode) ? [] : [SLOW]),
    ...('lack' in findRedis() ? NEED_REDIS : []),
  ];
  const env: Record<string, string> = hasSlowTests(mode) ? { ESCAPEMENT_TESTS: 'all' } : {};
  const settings = {
    env,
    pool: 'forks' as const,
    execArgv: ['--expose-gc'],
    // Generous: the machine may be busy with something else.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000, interval: 20 } },
  };
  const resolve = { alias: ALIASES };
  return {
    test: {
      projects: [
        {
          resolve,
          test: {
            ...settings,
            name: 'shared process',
            isolate: false,
            env: mode === 'slow' ? { ESCAPEMENT_TESTS: 'rest' } : env,
            include: mode === 'slow' ? REPEATING : ['test/**/*.test.ts'],
            exclude: [...exclude, ...inOwnProcess(mode)],
          },
        },
        {
          resolve,
          test: {
            ...settings,
            name: 'own process',
            include:
              mode === 'slow'
                ? [SLOW, ...REPEATING.filter((file) => SENSITIVE.includes(file))]
                : inOwnProcess(mode),
            exclude,
          },
        },
      ],
      env,
      globalSetup: ['test/redis/global-setup.ts', 'test/temporary-folder.ts'],
      // A Redis that is not ours has one database for all of us.
      fileParallelism: (process.env['REDIS_URL'] ?? '') === '',
      // Slow tests mostly wait: for processes, outages and leases.
      maxWorkers: mode === 'slow' ? 2 * availableParallelism() : '100%',
      coverage: {
        provider: 'custom',
        customProviderModule: source('./tools/node_modules/@vitest/coverage-v8/dist/index.js'),
        include: ['src/**/*.ts'],
        reporter: ['text-summary', 'text'],
      },
    },
  };
});
