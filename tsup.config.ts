import { defineConfig } from 'tsup';

export default defineConfig({
  entry: {
    index: 'src/index.ts',
    testing: 'src/testing.ts',
    timers: 'src/timers.ts',
    'timers/promises': 'src/timers-promises.ts',
    diskqueue: 'src/diskqueue.ts',
    'metrics/prometheus': 'src/metrics-prometheus.ts',
    'metrics/otel': 'src/metrics-otel.ts',
  },
  format: ['esm', 'cjs'],
  target: 'node20',
  platform: 'node',
  dts: { compilerOptions: { stripInternal: true } },
  // One copy of each class per module format, whatever subpaths a program imports.
  splitting: true,
  clean: true,
  silent: true,
  treeshake: true,
  // No run-time dependency: what little we use is bundled. Peer dependencies stay outside, tsup sees to that.
  noExternal: ['tinyqueue'],
});
