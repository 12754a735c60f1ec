import { transform } from 'esbuild';
import { defineConfig, type Options } from 'tsup';
import { inlinePage } from './build-page.ts';
import { thirdPartyLicenses } from './third-party-licenses.ts';

/**
 * esbuild writes a class that refers to itself as `var Name = class _Name`. The inner name is the one that a user sees, in
 * an uncaught error for one, so it loses its underscore.
 */
const ownNames: NonNullable<Options['plugins']>[number] = {
  name: 'own-names',
  renderChunk(code) {
    const renamed = [...code.matchAll(/\b(\w+) = class (_\1)\b/g)].map(([, , inner = '']) => inner);
    if (renamed.length === 0) return undefined;
    const names = new RegExp(`\\b(${renamed.join('|')})\\b`, 'g');
    return { code: code.replaceAll(names, (inner) => inner.slice(1)) };
  },
};

/** Evaluates an expression of numbers and known constants, such as `2 ** BITS - 1`; undefined for any other expression. */
function valueOf(expression: string, constants: Readonly<Record<string, string>>): string | undefined {
  const numbers = expression.replace(/\b[A-Z]\w*\b/g, (name) => constants[name] ?? name);
  // From left to right, so the operators must come in the order of their precedence.
  if (!/^-?[\d.e]+( \*\* [\d.e]+)?( \* [\d.e]+)*( [+-] [\d.e]+)*$/.test(numbers)) return undefined;
  const [first = '', ...rest] = numbers.split(/ (?=[*+-])/);
  const apply = (value: number, operation: string): number => {
    const [operator = '', operand = ''] = operation.split(' ');
    if (operator === '**') return value ** Number(operand);
    if (operator === '*') return value * Number(operand);
    return operator === '+' ? value + Number(operand) : value - Number(operand);
  };
  return String(rest.reduce(apply, Number(first)));
}

/**
 * esbuild makes a variable of every constant, which no bundler writes where it is used. In numbers this saves a program 0.15 kB for
 * a timer, and V8 a load each.
 */
const ownConstants: NonNullable<Options['plugins']>[number] = {
  name: 'own-constants',
  async renderChunk(code) {
    const exported = /^export \{[^}]*\};$/m.exec(code)?.[0] ?? '';
    const define: Record<string, string> = {};
    const rest = code.replace(
      /^var ([A-Z][A-Z0-9_]*) = (.+);\n/gm,
      (line, name: string, expression: string) => {
        const value = new RegExp(`\\b${name}\\b`).test(exported) ? undefined : valueOf(expression, define);
        if (value === undefined) return line;
        define[name] = value;
        return '';
      },
    );
    const { code: inlined } = await transform(rest, { define, target: 'node20', charset: 'utf8' });
    return { code: inlined };
  },
};

/** Jest rejects an `import()` in a module of CommonJS. */
const ownRequire: NonNullable<Options['plugins']>[number] = {
  name: 'own-require',
  renderChunk(code) {
    if (this.format !== 'cjs') return undefined;
    return {
      code: code.replace(/\bimport\((["'][^"']+["'])\)/g, 'Promise.resolve().then(() => require($1))'),
    };
  },
};

const subpaths = {
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
  dashboard: 'src/dashboard.ts',
};

/**
 * Not exported. Each part is a file of its own, so that a bundler leaves out the parts that a program does not import. A class
 * with a method that is named by a symbol of ours, or a table of options, is left out only with its file.
 */
const parts = {
  'parts/errors': 'src/core/errors.ts',
  'parts/clock': 'src/core/clock.ts',
  'parts/manual-clock': 'src/core/manual-clock.ts',
  'parts/timer-task': 'src/timer/timer-task.ts',
  'parts/timer': 'src/timer/system-timer.ts',
  'parts/purgatory': 'src/purgatory/purgatory.ts',
  'parts/work-queue': 'src/workqueue/work-queue.ts',
  'parts/rate-limiting-queue': 'src/workqueue/rate-limiting-queue.ts',
  'parts/rate-limiters': 'src/workqueue/max-of-rate-limiter.ts',
  'parts/fast-slow': 'src/workqueue/item-fast-slow-rate-limiter.ts',
  'parts/with-jitter': 'src/workqueue/with-jitter-rate-limiter.ts',
  'parts/parallelize-until': 'src/workqueue/parallelize-until.ts',
  'parts/with-max-wait': 'src/workqueue/with-max-wait-rate-limiter.ts',
};

/** The declarations name `Symbol.dispose`, which a program's own `lib` may lack. */
const DECLARATIONS: Options['dts'] = {
  entry: subpaths,
  compilerOptions: { stripInternal: true },
  banner: '/// <reference lib="esnext.disposable" />',
};

const library: Options = {
  entry: { ...subpaths, ...parts },
  format: ['esm', 'cjs'],
  target: 'node20',
  platform: 'node',
  // BUILD_TYPES=off leaves them out, as `--no-dts` does, where npm runs the build.
  dts: process.env['BUILD_TYPES'] === 'off' ? false : DECLARATIONS,
  // One copy of each class per module format, whatever subpaths a program imports.
  splitting: true,
  // The others are built at the same time, and may be there already.
  clean: ['!cli.js', '!tasks/redis-lease-thread.js', '!THIRD-PARTY-LICENSES'],
  silent: true,
  treeshake: true,
  plugins: [ownRequire, ownConstants, ownNames],
  esbuildPlugins: [inlinePage, thirdPartyLicenses],
  // No run-time dependency: what little we use is bundled. Peer dependencies stay outside, tsup sees to that.
  noExternal: ['tinyqueue', 'croner', '@bufbuild/protobuf'],
};

/** One file, with what it needs to talk to a terminal in it: the library has nothing of that. */
const command: Options = {
  plugins: [ownNames],
  esbuildPlugins: [inlinePage, thirdPartyLicenses],
  entry: { cli: 'src/cli.ts' },
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  splitting: false,
  silent: true,
  noExternal: ['tinyqueue', 'croner', 'commander', 'cli-table3', 'cli-progress', 'string-width'],
  // The package itself: only a program that names a Redis server loads its peer dependency.
  external: ['escapement/tasks/redis'],
  // Bundled packages require the host's modules, as CommonJS does.
  banner: {
    js: "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);",
  },
};

/** One file: threads load it, whichever build has started them. */
const thread: Options = {
  plugins: [ownNames],
  esbuildPlugins: [thirdPartyLicenses],
  entry: { 'tasks/redis-lease-thread': 'src/tasks/broker/redis/lease-thread-main.ts' },
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  splitting: false,
  silent: true,
  treeshake: true,
};

export default defineConfig([library, command, thread]);
