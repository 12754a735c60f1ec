import { defineConfig, type Options } from 'tsup';

const library: Options = {
  entry: {
    index: 'src/index.ts',
    testing: 'src/testing.ts',
    timers: 'src/timers.ts',
    'timers/promises': 'src/timers-promises.ts',
    diskqueue: 'src/diskqueue.ts',
    tasks: 'src/tasks.ts',
    'tasks/http': 'src/tasks-http.ts',
    'tasks/redis': 'src/tasks-redis.ts',
    'tasks/otel': 'src/tasks-otel.ts',
    'metrics/prometheus': 'src/metrics-prometheus.ts',
    'metrics/otel': 'src/metrics-otel.ts',
  },
  format: ['esm', 'cjs'],
  target: 'node20',
  platform: 'node',
  dts: { compilerOptions: { stripInternal: true } },
  // One copy of each class per module format, whatever subpaths a program imports.
  splitting: true,
  // The command is built at the same time, and may be there already.
  clean: ['!cli.js'],
  silent: true,
  treeshake: true,
  // No run-time dependency: what little we use is bundled. Peer dependencies stay outside, tsup sees to that.
  noExternal: ['tinyqueue', 'croner', '@bufbuild/protobuf'],
};

/** One file, with what it needs to talk to a terminal in it: the library has nothing of that. */
const command: Options = {
  entry: { cli: 'src/cli.ts' },
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  splitting: false,
  silent: true,
  noExternal: ['tinyqueue', 'commander', 'cli-table3', 'cli-progress'],
  // The package itself: only who names a Redis has its peer dependency loaded.
  external: ['escapement/tasks/redis'],
  // What is bundled asks for the host's modules as CommonJS does.
  banner: {
    js: "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);",
  },
};

export default defineConfig([library, command]);
